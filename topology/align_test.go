package topology_test

import (
	"testing"

	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/test/sample"
	"gdr-features/topology"
	"gdr-features/verdict"
)

// TestAlign: the narrowest attribute that gives each GPU a NIC, and none where that is not
// known.
func TestAlign(t *testing.T) {
	const a, b = "pci0000:00", "pci0000:80"
	gpu, nic := sample.PlacedGPU, sample.PlacedNIC
	virtual := func(f pci.Function, of uint8) pci.Function {
		f.Address.Function, f.PhysFn = 1, &pci.Address{Bus: of}
		return f
	}
	in := func(domain uint32, f pci.Function) pci.Function {
		f.Address.Domain = domain
		return f
	}
	below := func(top string, f pci.Function) pci.Function {
		f.Top = top
		return f
	}
	geforce := sample.Placed(9, b, 1, family.IDs{Vendor: 0x10de, Device: 0x2684, Class: 0x030000})
	for _, tt := range []struct {
		name      string
		functions []pci.Function
		want      topology.Attribute
	}{
		{"on one root", []pci.Function{gpu(1, a, 0), nic(2, a, 0)}, topology.PCIeRoot},
		{"two GPUs share a NIC", []pci.Function{gpu(1, a, 0), gpu(2, a, 0), nic(3, a, 0)}, topology.PCIeRoot},
		{"one of two GPUs has a NIC on its root", []pci.Function{gpu(1, a, 0), nic(2, a, 0), gpu(0x81, b, 0)}, topology.NUMANode},
		{"another node", []pci.Function{gpu(1, a, 0), nic(2, a, 0), gpu(0x81, b, 1)}, topology.NoAttribute},
		{"no node on one root", []pci.Function{gpu(1, a, pci.None), nic(2, a, pci.None)}, topology.PCIeRoot},
		{"no node on two roots", []pci.Function{gpu(1, a, pci.None), nic(0x81, b, pci.None)}, topology.NoAttribute},
		{"a GPU that does not count is far", []pci.Function{gpu(1, a, 0), nic(2, a, 0), geforce}, topology.PCIeRoot},
		{"only GPUs that do not count", []pci.Function{nic(0x82, b, 1), geforce}, ""},
		{"no NIC", []pci.Function{gpu(1, a, 0)}, ""},
		{"behind VMBus", []pci.Function{below("LNXSYSTM:00", gpu(1, a, 0)), below("LNXSYSTM:00", nic(2, a, 0))}, topology.NUMANode},
		{"behind VMBus without nodes", []pci.Function{below("ACPI0004:00", gpu(1, a, -1)), below("ACPI0004:00", nic(2, a, -1))}, topology.NoAttribute},
		{"root buses inside one root bus", []pci.Function{below(a, gpu(1, "pci0001:00", 0)), below(a, nic(2, "pci0002:00", 0))}, topology.PCIeRoot},
		{"domains of five digits", []pci.Function{in(0x10000, gpu(1, a, 0)), in(0x10000, nic(2, a, 0))}, topology.NoAttribute},
		{"the largest domain of four digits", []pci.Function{in(0xffff, gpu(1, a, 0)), in(0xffff, nic(2, a, 0))}, topology.PCIeRoot},
		{"a virtual function without its physical one", []pci.Function{gpu(1, a, 0), virtual(nic(2, a, 0), 7)}, topology.PCIeRoot},
		{"a virtual function beside its physical one", []pci.Function{gpu(1, a, 0), nic(2, b, 1), virtual(nic(2, a, 0), 2)}, topology.NoAttribute},

		{"a place unread", []pci.Function{gpu(1, a, 0), nic(2, "?", 0)}, ""},
		{"the place of a GPU unread", []pci.Function{gpu(1, "?", 0), nic(2, a, 0)}, ""},
		{"a place unread that does not matter", []pci.Function{gpu(1, a, 0), nic(2, a, 0), nic(3, "?", 0)}, topology.PCIeRoot},
		{"a node unread", []pci.Function{gpu(1, a, 0), nic(0x81, b, pci.Unread)}, ""},
		{"a node unread that does not matter", []pci.Function{gpu(1, a, 0), nic(0x81, b, pci.Unread), nic(0x82, b, 0)}, topology.NUMANode},
		{"a node unread on one root", []pci.Function{gpu(1, a, pci.Unread), nic(2, a, 0)}, topology.PCIeRoot},
		{"a function unidentified", []pci.Function{gpu(1, a, 0), nic(2, a, 0), {Address: pci.Address{Bus: 3}, Eligible: pci.IDsUnread}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			node := verdict.Node{PCI: pci.Inventory{Functions: tt.functions, NUMANodes: 2}}
			node.Matrix = topology.Build(topology.Inputs{PCI: &node.PCI, RDMA: &node.RDMA})
			if got := node.Matrix.Align(&node.PCI, nil); got != tt.want {
				t.Errorf("Align() = %q, want %q", got, tt.want)
			}
		})
	}
}
