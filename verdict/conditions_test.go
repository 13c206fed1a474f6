package verdict_test

import (
	"testing"

	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/test/sample"
	"gdr-features/tristate"
)

// TestIOMMU: one translated device is enough, and what a group that was not read may be is open.
func TestIOMMU(t *testing.T) {
	const gpu, nic = 0, 7 // groups; 0 is one, too
	both := func(n *sample.Node) { n.GPU().IOMMUGroup, n.NIC().IOMMUGroup = gpu, nic }
	for _, tt := range []struct {
		name   string
		groups tristate.State
		types  map[int]string
		change func(*sample.Node)
		want   string
		open   bool
	}{
		{"no group, and none there", no, nil, func(*sample.Node) {}, "off", false},
		{"no group, and others there", yes, nil, func(*sample.Node) {}, "off", false},
		{"no group, and no list", unknown, nil, func(*sample.Node) {}, "", true},
		{"identity", yes, map[int]string{gpu: "identity", nic: "identity"}, both, "passthrough", false},
		{"the NIC is translated", yes, map[int]string{gpu: "identity", nic: "DMA"}, both, "translated", false},
		{"the GPU is translated", yes, map[int]string{gpu: "DMA-FQ", nic: "identity"}, both, "translated", false},
		{"one is translated, the other unread", yes, map[int]string{gpu: "DMA"}, both, "translated", false},
		{"one was not read", yes, map[int]string{gpu: "identity"}, both, "", true},
		{"another type", yes, map[int]string{gpu: "identity", nic: "blocked"}, both, "", true},
		{"only the GPU has a group", yes, map[int]string{gpu: "identity"}, func(n *sample.Node) { n.GPU().IOMMUGroup = gpu }, "passthrough", false},
		{"only the NIC has a group, with its list unread", unknown, map[int]string{nic: "identity"}, func(n *sample.Node) { n.NIC().IOMMUGroup = nic }, "passthrough", false},
		{"a function that does not count is translated", yes, map[int]string{9: "DMA"}, func(n *sample.Node) {
			bridge := sample.Function(0x50, 0x1000, 0xc030, 0x060400, "")
			bridge.IOMMUGroup = 9
			n.PCI.Functions = append(n.PCI.Functions, bridge)
		}, "off", false},
		{"nothing that counts", no, nil, func(n *sample.Node) { n.PCI.Functions, n.RDMA.Devices = nil, nil }, "", false},
		{"a function without ids", no, nil, func(n *sample.Node) {
			n.PCI.Functions = append(n.PCI.Functions, pci.Function{Address: sample.At(0x50), Eligible: pci.IDsUnread, IOMMUGroup: pci.None})
		}, "", true},
	} {
		n := sample.Ready()
		n.Platform.IOMMU.Groups, n.Platform.IOMMU.Types = tt.groups, tt.types
		tt.change(n)
		if v := n.Judge().Verdict; v.IOMMU != tt.want || v.Undecided.IOMMU != tt.open {
			t.Errorf("%s: %q, open %v; want %q, %v", tt.name, v.IOMMU, v.Undecided.IOMMU, tt.want, tt.open)
		}
	}
}

// TestACS: one bridge that redirects is enough, and one that was not read is not clear.
func TestACS(t *testing.T) {
	gpu, nic := pci.Address{Bus: 2, Device: 0x10}, pci.Address{Bus: 2, Device: 0x20} // the ports above them
	open, redirect := &pci.ACS{Present: true}, &pci.ACS{Present: true, Control: 1 << 2}
	type registers = map[pci.Address]*pci.ACS
	for _, tt := range []struct {
		name   string
		read   registers
		change func(*sample.Node)
		want   string
		open   bool
	}{
		{"clear", registers{gpu: open, nic: open}, func(*sample.Node) {}, "clear", false},
		{"no register", registers{gpu: {}, nic: {}}, func(*sample.Node) {}, "clear", false},
		{"the GPU's port redirects", registers{gpu: redirect, nic: open}, func(*sample.Node) {}, "redirect", false},
		{"the NIC's port redirects", registers{gpu: open, nic: redirect}, func(*sample.Node) {}, "redirect", false},
		{"one redirects, the other was not read", registers{nic: redirect}, func(*sample.Node) {}, "redirect", false},
		{"one was not read", registers{gpu: open}, func(*sample.Node) {}, "", true},
		{"none may be read", nil, func(*sample.Node) {}, "", false},
		{"reading took too long", nil, func(n *sample.Node) { n.ACSUnread = true }, "", true},
		{"a bridge elsewhere", registers{gpu: open, nic: open, {Bus: 9}: redirect}, func(*sample.Node) {}, "clear", false},
		{"no GPU that counts", registers{gpu: open, nic: redirect}, func(n *sample.Node) { n.GPU().Device = 0x2684 }, "", false},
		{"no NIC", registers{gpu: redirect}, func(n *sample.Node) { n.Drop(sample.NIC); n.RDMA.Devices = nil }, "", false},
		{"a GPU at an unknown place", registers{gpu: open, nic: open, {Bus: 2, Device: 0x30}: open}, func(n *sample.Node) { addGPU(n, 0x2330); n.GPU().RootBus = "" }, "", false},
		{"a GeForce beside redirects", registers{gpu: open, nic: open, {Bus: 2, Device: 0x30}: redirect}, func(n *sample.Node) { addGPU(n, 0x2684) }, "clear", false},
		{"a function without ids", registers{gpu: open, nic: redirect}, func(n *sample.Node) {
			n.PCI.Functions = append(n.PCI.Functions, pci.Function{Address: sample.At(0x50), Eligible: pci.IDsUnread})
		}, "", true},
	} {
		n := sample.Ready()
		n.ACS = tt.read
		tt.change(n)
		if v := n.Judge().Verdict; v.ACS != tt.want || v.Undecided.ACS != tt.open {
			t.Errorf("%s: %q, open %v; want %q, %v", tt.name, v.ACS, v.Undecided.ACS, tt.want, tt.open)
		}
	}
}

// TestLink: the link layer of all active ports of NICs that count, where all were read.
func TestLink(t *testing.T) {
	second := func(n *sample.Node) *rdma.Device {
		n.AddNIC()
		d := &n.RDMA.Devices[1]
		d.Ports = []rdma.Port{{Number: 1, State: "ACTIVE", LinkLayer: "Ethernet"}}
		return d
	}
	for _, tt := range []struct {
		name   string
		change func(*sample.Node)
		want   string
		open   bool
	}{
		{"one port", func(*sample.Node) {}, "infiniband", false},
		{"it is down", func(n *sample.Node) { n.Port().State = "DOWN" }, "", false},
		{"two layers", func(n *sample.Node) { second(n) }, "mixed", false},
		{"two layers, and more may be hidden", func(n *sample.Node) { second(n); n.RDMA.Complete = false }, "mixed", false},
		{"the other layer is down", func(n *sample.Node) { second(n).Ports[0].State = "DOWN" }, "infiniband", false},
		{"the other NIC does not count", func(n *sample.Node) { second(n); n.PCI.Functions[sample.NIC+1].Device = 0x673c }, "infiniband", false},
		{"a second port with a state that was not read", func(n *sample.Node) { second(n).Ports[0].State = "" }, "", true},
		{"ports that were not read", func(n *sample.Node) { d := second(n); d.Ports, d.PortsRead = nil, false }, "", true},
		{"devices may be hidden", func(n *sample.Node) { n.RDMA.Complete = false }, "", true},
		{"a function without ids", func(n *sample.Node) {
			n.PCI.Functions = append(n.PCI.Functions, pci.Function{Address: sample.At(0x50), Eligible: pci.IDsUnread})
		}, "", true},
	} {
		n := sample.Ready()
		tt.change(n)
		if v := n.Judge().Verdict; v.Link != tt.want || v.Undecided.Link != tt.open {
			t.Errorf("%s: %q, open %v; want %q, %v", tt.name, v.Link, v.Undecided.Link, tt.want, tt.open)
		}
	}
}
