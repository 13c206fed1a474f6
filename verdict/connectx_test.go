package verdict_test

import (
	"testing"

	"gdr-features/source/pci"
	"gdr-features/test/sample"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// otherNIC makes a NIC one of a family that the GPU Operator does not load its client
// for, and otherGPU a GPU.
func otherNIC(fn *pci.Function) {
	other := *fn.NIC
	other.GPUOperator = false
	fn.NIC = &other
}

func otherGPU(fn *pci.Function) {
	other := *fn.GPU
	other.GPUOperator = false
	fn.GPU = &other
}

// TestConnectX: NICs and GPUs of other families are left out. Whatever else is not
// known leaves it open.
func TestConnectX(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*sample.Node)
		edit   func(*verdict.Node)
		want   tristate.State
		open   bool
	}{
		{"all in place", nil, nil, yes, false},
		{"no driver, no RDMA device", func(n *sample.Node) { n.NIC().Driver, n.GPU().Driver, n.RDMA.Devices = "", "", nil }, nil, yes, false},
		{"ConnectX-3", connectX3, nil, yes, false},
		{"a NIC of another family", nil, func(f *verdict.Node) { otherNIC(&f.PCI.Functions[sample.NIC]) }, no, false},
		{"NICs of both", (*sample.Node).AddNIC, func(f *verdict.Node) { otherNIC(&f.PCI.Functions[sample.NIC]) }, yes, false},
		{"a GPU of another family", nil, func(f *verdict.Node) { otherGPU(&f.PCI.Functions[sample.GPU]) }, unknown, false},
		{"no NIC", func(n *sample.Node) { n.Drop(sample.NIC); n.RDMA.Devices = nil }, nil, no, false},
		{"no GPU", func(n *sample.Node) { n.Drop(sample.GPU) }, nil, unknown, false},
		{"a GeForce", func(n *sample.Node) { n.GPU().Device = 0x2684 }, nil, no, false},
		{"management of NVLink switches", func(n *sample.Node) { n.NIC().NVLinkManagement = true }, nil, no, false},
		{"the CPU forbids it", func(n *sample.Node) { addAltra(n); n.NIC().Bridges = nil; n.Platform.Virtual = tristate.False }, nil, no, false},
		{"the CPU may forbid it", func(n *sample.Node) { addAltra(n); n.NIC().Bridges = nil }, nil, unknown, true},
		{"no bus", func(n *sample.Node) { n.PCIRead = false }, nil, unknown, true},
		{"a function that may be the GPU", func(n *sample.Node) { n.GPU().Vendor, n.GPU().Eligible = 0, pci.IDsUnread }, nil, unknown, true},
		{"a function that may be the NIC", func(n *sample.Node) { n.NIC().Vendor, n.NIC().Eligible = 0, pci.IDsUnread }, nil, unknown, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := sample.Ready()
			if tc.change != nil {
				tc.change(n)
			}
			f := n.Judge()
			if tc.edit != nil {
				tc.edit(f)
			}
			v := verdict.Judge(f)
			if v.ConnectX != tc.want || v.Undecided.ConnectX != tc.open {
				t.Errorf("%v, open %v; want %v, %v", v.ConnectX, v.Undecided.ConnectX, tc.want, tc.open)
			}
			if tc.edit == nil && v.ConnectX != tristate.Unknown && v.ConnectX != v.Capable {
				t.Errorf("%v, but capable %v", v.ConnectX, v.Capable)
			}
		})
	}
}
