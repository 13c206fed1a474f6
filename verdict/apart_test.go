package verdict_test

import (
	"testing"

	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/test/sample"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// altra is an Ampere Altra with a GPU and a NIC below one switch, and a GPU and a NIC below root
// ports of their own, which only the first pair's common bridge lets reach each other.
func altra() *sample.Node {
	n := sample.Ready()
	n.Platform.Virtual = no
	n.AddNIC()
	n.RDMA.Devices[1].Ports = []rdma.Port{{Number: 1, State: "ACTIVE", LinkLayer: "InfiniBand"}}
	n.PCI.Functions = append(n.PCI.Functions, sample.Function(0x30, 0x10de, 0x2330, 0x030200, "nvidia"))
	for i, port := range map[int]uint8{farNIC: 5, farGPU: 6} {
		n.PCI.Functions[i].Bridges = []pci.Address{{Bus: 0, Device: port}}
	}
	addAltra(n)
	return n
}

// Places of functions in altra, after those of sample.Ready.
const (
	farNIC = iota + 2
	farGPU
	root
)

// TestApart: what makes a node ready must be of one GPU and one NIC that reach each other.
func TestApart(t *testing.T) {
	down := func(n *sample.Node) { n.Port().State = "DOWN" }
	hidden := func(n *sample.Node) { n.RDMA.Devices = n.RDMA.Devices[1:] }
	for _, tc := range []struct {
		name   string
		change func(*sample.Node)
		ready  tristate.State
		reason verdict.Reason
	}{
		{"all in place", func(*sample.Node) {}, yes, ""},
		{"far NIC down", func(n *sample.Node) { n.RDMA.Devices[1].Ports[0].State = "DOWN" }, yes, ""},
		{"far NIC and far GPU unbound", func(n *sample.Node) { n.PCI.Functions[farNIC].Driver, n.PCI.Functions[farGPU].Driver = "", "" }, yes, ""},
		{"far NIC at an unknown place", func(n *sample.Node) { n.PCI.Functions[farNIC].RootBus = "" }, yes, ""},
		{"near NIC down", down, no, "NoActivePort"},
		{"near port unreadable", func(n *sample.Node) { n.Port().State = "" }, unknown, "Unreadable"},
		{"near NIC without RDMA device", hidden, no, "NoRDMADevice"},
		{"near NIC's RDMA device hidden", func(n *sample.Node) { hidden(n); n.RDMA.Complete = false }, unknown, "Unreadable"},
		{"near NIC down, others hidden", func(n *sample.Node) { down(n); n.RDMA.Complete = false }, unknown, "Unreadable"},
		{"near NIC unbound", func(n *sample.Node) { n.NIC().Driver = ""; hidden(n) }, no, "NICDriverNotLoaded"},
		{"near NIC's driver unreadable", func(n *sample.Node) { n.NIC().DriverKnown = false }, unknown, "Unreadable"},
		{"near GPU passed through", func(n *sample.Node) { n.GPU().Driver = "vfio-pci" }, no, "GPUDriverNotLoaded"},
		{"near GPU unbound", func(n *sample.Node) { n.GPU().Driver = "" }, no, "GPUDriverNotLoaded"},
		{"near GPU excluded by the driver", excluded(0x10, yes), no, "GPUDriverNotLoaded"},
		{"far GPU excluded by the driver", excluded(0x30, yes), yes, ""},
		{"near GPU's driver unreadable", func(n *sample.Node) { n.GPU().DriverKnown = false }, unknown, "Unreadable"},
		{"near NIC down, far NIC at an unknown place", func(n *sample.Node) { down(n); n.PCI.Functions[farNIC].RootBus = "" }, unknown, "Unreadable"},
		{"near NIC down, a function unidentified", func(n *sample.Node) {
			down(n)
			n.PCI.Functions = append(n.PCI.Functions, pci.Function{Address: pci.Address{Domain: 1}, Eligible: pci.IDsUnread})
		}, unknown, "Unreadable"},
		{"near NIC down, in a virtual machine", func(n *sample.Node) { down(n); n.Platform.Virtual = yes }, yes, ""},
		{"near NIC down, far GPU coherent", func(n *sample.Node) { down(n); n.PCI.Functions[farGPU].Device = 0x2941 }, yes, ""},
		{"near NIC down, perhaps another CPU", func(n *sample.Node) { down(n); n.PCI.Functions[root].Vendor = 0x8086 }, unknown, "Unreadable"},
		{"nothing is active", func(n *sample.Node) { down(n); n.RDMA.Devices[1].Ports[0].State = "DOWN" }, no, "NoActivePort"},
		{"near NIC unbound, far NIC down", func(n *sample.Node) {
			n.NIC().Driver = ""
			hidden(n)
			n.RDMA.Devices[0].Ports[0].State = "DOWN"
		}, no, "NICDriverNotLoaded"},
		{"two pairs, each lacks what the other has", func(n *sample.Node) {
			n.PCI.Functions[farGPU].Bridges = n.PCI.Functions[farNIC].Bridges
			down(n)
			n.PCI.Functions[farGPU].Driver = "vfio-pci"
		}, no, "NoActivePort"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := altra()
			tc.change(n)
			v := n.Judge().Verdict
			if v.Capable != yes || v.Ready != tc.ready || v.Reason != tc.reason {
				t.Errorf("capable %v, ready %v, reason %q; want true, %v, %q", v.Capable, v.Ready, v.Reason, tc.ready, tc.reason)
			}
		})
	}
}

// TestApartUnread: where no pair is known to reach each other, nothing that a pair lacks is named,
// and the answer is unknown: the pair whose place was not read may be another than it seems.
func TestApartUnread(t *testing.T) {
	n := altra()
	n.NIC().RootBus, n.Port().State = "", "DOWN"
	if v := n.Judge().Verdict; v.Capable != unknown || v.Ready != unknown || v.Reason != "Unreadable" || len(v.Lack.Reason) > 0 && v.Lack.Met != yes {
		t.Errorf("capable %v, ready %v, reason %q, lack %+v", v.Capable, v.Ready, v.Reason, v.Lack)
	}
}

// TestApartPairs: the pairs that lack only this are those that come furthest, all of them and no
// others. Where the CPU lets all pairs reach each other, none is named.
func TestApartPairs(t *testing.T) {
	n := altra()
	n.PCI.Functions[farNIC].Bridges = n.NIC().Bridges // both NICs beside the near GPU
	n.Port().State, n.RDMA.Devices[1].Ports[0].State = "DOWN", "DOWN"
	if v := n.Judge().Verdict; len(v.Apart) != 2 || v.Apart[0].NIC != 0 || v.Apart[1].NIC != 1 || v.Apart[0].GPU != 0 || v.Apart[1].GPU != 0 || v.Lack.Reason != "NoActivePort" {
		t.Errorf("%d pairs lack %v", len(v.Apart), v.Lack)
	}
	for name, change := range map[string]func(*sample.Node){
		"one switch": func(*sample.Node) {},
		"a guest":    func(n *sample.Node) { *n = *altra(); n.Platform.Virtual = yes },
	} {
		n := sample.Ready()
		change(n)
		n.Port().State = "DOWN"
		if v := n.Judge().Verdict; len(v.Apart) != 0 {
			t.Errorf("%s: %d pairs are named", name, len(v.Apart))
		}
	}
}
