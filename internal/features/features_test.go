package features

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/topology"
)

// TestRole: a NIC that is not for GPUs says why.
func TestRole(t *testing.T) {
	for _, tc := range []struct {
		name string
		got  Attrs
		want Attrs
	}{
		{"NIC for other traffic", nic(&topology.NIC{Role: topology.NorthSouth}), Attrs{"address": "", "rdma": "", "role": "north-south"}},
		{
			"NIC that the user excludes", nic(&topology.NIC{Role: topology.NorthSouth, RDMA: &rdma.Device{Name: "mlx5_0", Excluded: true}}),
			Attrs{"address": "", "rdma": "mlx5_0", "role": "excluded"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("attributes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBridge: a pair has the deepest bridge above both, "" without one, and no such
// attribute where a place is not known.
func TestBridge(t *testing.T) {
	port, deepest := pci.Address{Bus: 1}, pci.Address{Bus: 2}
	at := func(root string, bridges ...pci.Address) *pci.Function {
		return &pci.Function{RootBus: root, Bridges: bridges}
	}
	gpu := at("pci0000:00", port, deepest, pci.Address{Bus: 3})
	for _, tc := range []struct {
		nic   *pci.Function
		want  string
		known bool
	}{
		{at("pci0000:00", port, deepest, pci.Address{Bus: 4}), "0000:02:00.0", true},
		{at("pci0000:00", pci.Address{Bus: 9}), "", true},
		{at("pci0000:40"), "", true},
		{at(""), "", false},
		{nil, "", false},
	} {
		m := topology.Matrix{GPUs: []topology.GPU{{Function: gpu}}, NICs: []topology.NIC{{Function: tc.nic}}}
		p := topology.Pair{}
		if tc.nic != nil {
			p.Bridge = gpu.CommonBridge(tc.nic)
		}
		if got, ok := pair(&m, &p)["bridge"]; got != tc.want || ok != tc.known {
			t.Errorf("NIC %+v: bridge %q, known %v; want %q, %v", tc.nic, got, ok, tc.want, tc.known)
		}
	}
}

// TestPortOf: the port that represents a device in gdr.nic is the first active one.
func TestPortOf(t *testing.T) {
	down, up := rdma.Port{Number: 1, State: "DOWN", LinkLayer: "InfiniBand"}, rdma.Port{Number: 2, State: "ACTIVE", LinkLayer: "InfiniBand"}
	for _, tc := range []struct {
		ports []rdma.Port
		want  int // 0 for none
	}{{nil, 0}, {[]rdma.Port{down}, 1}, {[]rdma.Port{down, up}, 2}, {[]rdma.Port{up, down}, 2}} {
		got := 0
		if p := portOf(tc.ports); p != nil {
			got = p.Number
		}
		if got != tc.want {
			t.Errorf("portOf(%v) = %d, want %d", tc.ports, got, tc.want)
		}
	}
}

// TestUnlistedVendor: of a NIC that no table has, the vendor is told, which no family tells.
func TestUnlistedVendor(t *testing.T) {
	a := OfFunction(&pci.Function{Vendor: 0xfade, Device: 1, Other: family.Unlisted()})
	if a["family"] != "other" || a["vendor"] != "fade" || a["device"] != "0001" {
		t.Errorf("%v", a)
	}
	if a := OfFunction(&pci.Function{Vendor: 0x15b3, Device: 0x1021, NIC: family.Known().NICs[0]}); a["vendor"] != "" {
		t.Errorf("%v", a)
	}
}
