package verdict_test

import (
	"slices"
	"testing"

	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/test/sample"
)

// rated returns a port in a state, of InfiniBand, with a rate.
func rated(state string, gbps float64) rdma.Port {
	return rdma.Port{Number: 1, State: state, LinkLayer: "InfiniBand", RateGbps: gbps}
}

// twoGPUs returns a machine with the GPU 10:00.0 beside the NICs 20:00.0 and 21:00.0, and
// the GPU 90:00.0 beside the NIC a0:00.0 below another root bus. Each NIC has an active port of
// 400 Gbit/s.
func twoGPUs() *sample.Node {
	n := sample.Ready()
	n.AddNIC()
	gpu := sample.Function(0x90, 0x10de, 0x2330, 0x030200, "nvidia")
	nic := sample.Function(0xa0, 0x15b3, 0x1021, 0x020700, "mlx5_core")
	for _, f := range []*pci.Function{&gpu, &nic} {
		f.RootBus, f.Bridges = "pci0000:80", []pci.Address{{Bus: 0x80, Device: 1}, {Bus: 0x81}, {Bus: 0x82, Device: f.Address.Bus & 0x1f}}
	}
	n.PCI.Functions = append(n.PCI.Functions, gpu, nic)
	n.RDMA.Devices = append(n.RDMA.Devices, rdma.Device{Name: "mlx5_2", PCI: &nic.Address, PortsRead: true})
	for i := range n.RDMA.Devices {
		n.RDMA.Devices[i].Ports = []rdma.Port{rated("ACTIVE", 400)}
	}
	return n
}

// TestRate: what becomes of the rate when something changes.
func TestRate(t *testing.T) {
	const open, none = -1, -2
	port := func(n *sample.Node, device int) *rdma.Port { return &n.RDMA.Devices[device].Ports[0] }
	set := func(device int, state string, gbps float64) func(*sample.Node) {
		return func(n *sample.Node) { *port(n, device) = rated(state, gbps) }
	}
	unread := func(device int) func(*sample.Node) {
		return func(n *sample.Node) { n.RDMA.Devices[device].PortsRead, n.RDMA.Devices[device].Ports = false, nil }
	}
	// virtual adds the RDMA device of a virtual function of another device's, and gone removes that.
	virtual := func(device int, state string, gbps float64) func(*sample.Node) {
		return func(n *sample.Node) {
			vf := *n.PCI.Find(*n.RDMA.Devices[device].PCI)
			vf.PhysFn = n.RDMA.Devices[device].PCI
			vf.Address.Function = 2
			n.PCI.Functions = append(n.PCI.Functions, vf)
			slices.SortFunc(n.PCI.Functions, func(a, b pci.Function) int { return a.Address.Compare(b.Address) })
			n.RDMA.Devices = slices.Insert(n.RDMA.Devices, device+1, rdma.Device{
				Name: "vf", PCI: &vf.Address, PortsRead: true, Ports: []rdma.Port{rated(state, gbps)},
			})
		}
	}
	gone := func(device int) func(*sample.Node) {
		return func(n *sample.Node) { n.RDMA.Devices = slices.Delete(n.RDMA.Devices, device, device+1) }
	}
	for _, tc := range []struct {
		name   string
		change []func(*sample.Node)
		want   int
	}{
		{"every port at 400", nil, 400},
		{"a rate is rounded down", []func(*sample.Node){set(2, "ACTIVE", 2.5)}, 2},
		{"the slower of two nearest NICs does not count", []func(*sample.Node){set(0, "ACTIVE", 100)}, 400},
		{"both nearest NICs are slow", []func(*sample.Node){set(0, "ACTIVE", 100), set(1, "ACTIVE", 200)}, 200},
		{"the worst GPU counts", []func(*sample.Node){set(2, "ACTIVE", 100)}, 100},
		{"a nearest NIC without an active port adds nothing", []func(*sample.Node){set(0, "DOWN", 800)}, 400},
		{"a second port of a NIC", []func(*sample.Node){func(n *sample.Node) {
			set(2, "ACTIVE", 100)(n)
			n.RDMA.Devices[2].Ports = append(n.RDMA.Devices[2].Ports, rated("ACTIVE", 200))
		}}, 200},
		{"a GPU without an active port, and a farther NIC with one", []func(*sample.Node){set(2, "DOWN", 400)}, 0},
		{"a link layer that carries no traffic", []func(*sample.Node){func(n *sample.Node) { port(n, 2).LinkLayer = "Unspecified" }}, 0},
		{"no RDMA device at all", []func(*sample.Node){func(n *sample.Node) { n.RDMA.Devices = nil }}, 0},

		{"a rate that could not be read", []func(*sample.Node){set(2, "ACTIVE", 0)}, open},
		{"a state that could not be read", []func(*sample.Node){set(2, "", 400)}, open},
		{"ports that could not be read", []func(*sample.Node){unread(2)}, open},
		{"one of two could not be read, and may be the faster", []func(*sample.Node){unread(0), set(2, "ACTIVE", 800)}, open},
		{"a GPU that may get more does not matter if another gets less", []func(*sample.Node){unread(0), set(2, "ACTIVE", 100)}, 100},
		{"or as much", []func(*sample.Node){unread(0)}, 400},
		{"or as much, the other way round", []func(*sample.Node){func(n *sample.Node) {
			n.RDMA.Devices[2].Ports = append(n.RDMA.Devices[2].Ports, rated("", 0))
		}}, 400},
		{"the rate of a port that is down", []func(*sample.Node){set(0, "DOWN", 0), set(2, "ACTIVE", 800)}, 400},
		{"devices may be hidden", []func(*sample.Node){func(n *sample.Node) { n.RDMA.Complete = false }}, open},
		{"a place that is not known", []func(*sample.Node){func(n *sample.Node) { n.PCI.Functions[4].RootBus = "" }}, open},
		{"a function that could not be identified", []func(*sample.Node){func(n *sample.Node) { n.PCI.Functions[4].Eligible = pci.IDsUnread }}, open},

		{"a function that manages NVLink is no NIC", []func(*sample.Node){func(n *sample.Node) {
			n.RDMA.Devices[0].NVLinkManagement = true
			unread(0)(n)
		}}, 400},
		{"virtual functions whose physical one has no RDMA device here", []func(*sample.Node){virtual(2, "ACTIVE", 200), gone(2)}, 200},
		{"those of one of the nearest NICs", []func(*sample.Node){virtual(0, "ACTIVE", 200), gone(0), set(1, "ACTIVE", 100), set(2, "ACTIVE", 800)}, 200},
		{"those of a farther NIC", []func(*sample.Node){virtual(0, "ACTIVE", 200), set(3, "DOWN", 400)}, 0},
		{"without an active port", []func(*sample.Node){virtual(2, "DOWN", 200), gone(2)}, 0},
		{"slower than the physical one", []func(*sample.Node){virtual(2, "ACTIVE", 200)}, 400},
		{"one whose ports could not be read", []func(*sample.Node){virtual(2, "ACTIVE", 200), gone(2), unread(2)}, open},
		{"no eligible GPU", []func(*sample.Node){func(n *sample.Node) { n.GPU().Device, n.PCI.Functions[3].Device = 0x2684, 0x2684 }}, none},
		{"no eligible NIC", []func(*sample.Node){func(n *sample.Node) {
			n.PCI.Functions = []pci.Function{n.PCI.Functions[0], n.PCI.Functions[3]}
		}}, none},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := twoGPUs()
			for _, change := range tc.change {
				change(n)
			}
			v := n.Judge().Verdict
			got := none
			switch {
			case v.Rate != nil && v.Undecided.Rate:
				t.Fatalf("%d and open", *v.Rate)
			case v.Rate != nil:
				got = *v.Rate
			case v.Undecided.Rate:
				got = open
			}
			if got != tc.want {
				t.Errorf("rate %d, want %d (%d: unknown, %d: none)", got, tc.want, open, none)
			}
		})
	}
}
