package dra_test

import (
	"testing"

	"gdr-features/internal/dra"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/test/sample"
	"gdr-features/topology"
	"gdr-features/verdict"
)

// at makes a function of a GPU or NIC: root is its root bus, "?" where its path could not be
// read.
func at(bus uint8, root string, numa int, ids family.IDs) pci.Function {
	f := pci.Function{Address: pci.Address{Bus: bus}, Vendor: ids.Vendor, Device: ids.Device, Class: ids.Class, RootBus: root, Top: root, NUMA: numa, NearNUMA: numa}
	if root == "?" {
		f.RootBus, f.Top = "", ""
	}
	f.Classify(sample.Families())
	return f
}

func gpu(bus uint8, root string, numa int) pci.Function {
	return at(bus, root, numa, family.IDs{Vendor: 0x10de, Device: 0x2330, Class: 0x030200})
}

func nic(bus uint8, root string, numa int) pci.Function {
	return at(bus, root, numa, family.IDs{Vendor: 0x15b3, Device: 0x1021, Class: 0x020700})
}

// TestAlign: the narrowest attribute that gives each GPU a NIC, and none where that is not
// known.
func TestAlign(t *testing.T) {
	const a, b = "pci0000:00", "pci0000:80"
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
	geforce := at(9, b, 1, family.IDs{Vendor: 0x10de, Device: 0x2684, Class: 0x030000})
	for _, tt := range []struct {
		name      string
		functions []pci.Function
		want      dra.Attribute
	}{
		{"on one root", []pci.Function{gpu(1, a, 0), nic(2, a, 0)}, dra.PCIeRoot},
		{"two GPUs share a NIC", []pci.Function{gpu(1, a, 0), gpu(2, a, 0), nic(3, a, 0)}, dra.PCIeRoot},
		{"one of two GPUs has a NIC on its root", []pci.Function{gpu(1, a, 0), nic(2, a, 0), gpu(0x81, b, 0)}, dra.NUMANode},
		{"another node", []pci.Function{gpu(1, a, 0), nic(2, a, 0), gpu(0x81, b, 1)}, dra.None},
		{"no node on one root", []pci.Function{gpu(1, a, pci.None), nic(2, a, pci.None)}, dra.PCIeRoot},
		{"no node on two roots", []pci.Function{gpu(1, a, pci.None), nic(0x81, b, pci.None)}, dra.None},
		{"a GPU that does not count is far", []pci.Function{gpu(1, a, 0), nic(2, a, 0), geforce}, dra.PCIeRoot},
		{"only GPUs that do not count", []pci.Function{nic(0x82, b, 1), geforce}, ""},
		{"no NIC", []pci.Function{gpu(1, a, 0)}, ""},
		{"behind VMBus", []pci.Function{below("LNXSYSTM:00", gpu(1, a, 0)), below("LNXSYSTM:00", nic(2, a, 0))}, dra.NUMANode},
		{"behind VMBus without nodes", []pci.Function{below("ACPI0004:00", gpu(1, a, -1)), below("ACPI0004:00", nic(2, a, -1))}, dra.None},
		{"root buses inside one root bus", []pci.Function{below(a, gpu(1, "pci0001:00", 0)), below(a, nic(2, "pci0002:00", 0))}, dra.PCIeRoot},
		{"domains of five digits", []pci.Function{in(0x10000, gpu(1, a, 0)), in(0x10000, nic(2, a, 0))}, dra.None},
		{"the largest domain of four digits", []pci.Function{in(0xffff, gpu(1, a, 0)), in(0xffff, nic(2, a, 0))}, dra.PCIeRoot},
		{"a virtual function without its physical one", []pci.Function{gpu(1, a, 0), virtual(nic(2, a, 0), 7)}, dra.PCIeRoot},
		{"a virtual function beside its physical one", []pci.Function{gpu(1, a, 0), nic(2, b, 1), virtual(nic(2, a, 0), 2)}, dra.None},

		{"a place unread", []pci.Function{gpu(1, a, 0), nic(2, "?", 0)}, ""},
		{"the place of a GPU unread", []pci.Function{gpu(1, "?", 0), nic(2, a, 0)}, ""},
		{"a place unread that does not matter", []pci.Function{gpu(1, a, 0), nic(2, a, 0), nic(3, "?", 0)}, dra.PCIeRoot},
		{"a node unread", []pci.Function{gpu(1, a, 0), nic(0x81, b, pci.Unread)}, ""},
		{"a node unread that does not matter", []pci.Function{gpu(1, a, 0), nic(0x81, b, pci.Unread), nic(0x82, b, 0)}, dra.NUMANode},
		{"a node unread on one root", []pci.Function{gpu(1, a, pci.Unread), nic(2, a, 0)}, dra.PCIeRoot},
		{"a function unidentified", []pci.Function{gpu(1, a, 0), nic(2, a, 0), {Address: pci.Address{Bus: 3}, Eligible: pci.IDsUnread}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			node := verdict.Node{PCI: pci.Inventory{Functions: tt.functions, NUMANodes: 2}}
			node.Matrix = topology.Build(topology.Inputs{PCI: &node.PCI, RDMA: &node.RDMA})
			if got := dra.Align(&node); got != tt.want {
				t.Errorf("Align() = %q, want %q", got, tt.want)
			}
		})
	}
}
