package features

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/test/sample"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// TestUnknown: an unknown fact has no attribute. Package nfdsource tests known ones.
func TestUnknown(t *testing.T) {
	above, physical := pci.Address{Bus: 1}, pci.Address{Bus: 2}
	for _, tc := range []struct {
		name string
		got  attrs
		want attrs
	}{
		{
			"function not readable",
			function(&pci.Function{NUMA: pci.None, IOMMUGroup: pci.None}),
			attrs{"address": "0000:00:00.0"},
		},
		{
			"function on a root bus without driver",
			function(&pci.Function{RootBus: "pci0000:00", DriverKnown: true, NUMA: pci.None, IOMMUGroup: pci.None}),
			attrs{"address": "0000:00:00.0", "pcieRoot": "pci0000:00", "parent": "", "driver": ""},
		},
		{
			"bridge with ACS",
			function(&pci.Function{
				Vendor: 0x1000, Device: 0xc030, Class: 0x060400, RootBus: "pci0000:00", Bridges: []pci.Address{above},
				NUMA: 0, IOMMUGroup: pci.None, ACS: &pci.ACS{Present: true, Control: 0x1d}, Link: &pci.Link{Speed: 2.5, MaxWidth: 16},
			}),
			attrs{
				"address": "0000:00:00.0", "vendor": "1000", "device": "c030", "class": "060400", "numaNode": "0",
				"pcieRoot": "pci0000:00", "parent": "0000:01:00.0", "acs": "001d", "linkSpeed": "2.5", "maxLinkWidth": "16",
			},
		},
		{
			"virtual function",
			function(classified(pci.Function{
				Vendor: 0x15b3, Device: 0xfffe, Class: 0x020700, PhysFn: &physical,
				NUMA: pci.None, IOMMUGroup: 7, ACS: &pci.ACS{}, NVLinkManagement: true,
			})),
			attrs{
				"address": "0000:00:00.0", "vendor": "15b3", "device": "fffe", "class": "020700", "physfn": "0000:02:00.0",
				"iommuGroup": "7", "family": "mlx5", "eligible": "false",
			},
		},
		{
			"NIC that may be a virtual function",
			function(classified(pci.Function{Vendor: 0x15b3, Device: 0xfffe, Class: 0x020700, Eligible: pci.IDsUnread, NUMA: pci.None, IOMMUGroup: pci.None})),
			attrs{"address": "0000:00:00.0", "vendor": "15b3", "device": "fffe", "class": "020700", "family": "mlx5"},
		},
		{
			"NIC of a family that does not count",
			function(classified(pci.Function{Vendor: 0x1fff, Device: 0x0001, Class: 0x020000, NUMA: pci.None, IOMMUGroup: pci.None})),
			attrs{"address": "0000:00:00.0", "vendor": "1fff", "device": "0001", "class": "020000", "family": "example"},
		},
		{"NIC for other traffic", nic(&topology.NIC{Role: topology.NorthSouth}), attrs{"address": "", "rdma": "", "role": "north-south"}},
		{
			"NIC that the user excludes", nic(&topology.NIC{Role: topology.NorthSouth, RDMA: &rdma.Device{Name: "mlx5_0", Excluded: true}}),
			attrs{"address": "", "rdma": "mlx5_0", "role": "excluded"},
		},
		{"RDMA device without function", device(&rdma.Device{Name: "rxe0"}), attrs{"rdma": "rxe0"}},
		{"drivers", drivers(&kmod.State{}, &platform.State{}, family.Known()), attrs{}},
		{"driver absent", drivers(&kmod.State{Drivers: map[string]kmod.Driver{"nvidia": {Loaded: tristate.False}}}, &platform.State{}, family.Known()), attrs{"driverLoaded": "false"}},
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

func classified(f pci.Function) *pci.Function {
	f.Classify(sample.Families())
	return &f
}

// TestUnlistedVendor: of a NIC that no table has, the vendor is told, which no family tells.
func TestUnlistedVendor(t *testing.T) {
	a := ofFunction(&pci.Function{Vendor: 0xfade, Device: 1, Other: family.Unlisted()})
	if a["family"] != "other" || a["vendor"] != "fade" || a["device"] != "0001" {
		t.Errorf("%v", a)
	}
	if a := ofFunction(&pci.Function{Vendor: 0x15b3, Device: 0x1021, NIC: family.Known().NICs[0]}); a["vendor"] != "" {
		t.Errorf("%v", a)
	}
}
