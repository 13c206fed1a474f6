package nfdsource

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/features"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/test/sample"
	"gdr-features/tristate"
)

// TestUnknown: an unknown fact has no attribute.
func TestUnknown(t *testing.T) {
	type attrs = features.Attrs
	above, physical := pci.Address{Bus: 1}, pci.Address{Bus: 2}
	for _, tc := range []struct {
		name      string
		got, want attrs
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

func classified(f pci.Function) *pci.Function {
	f.Classify(sample.Families())
	return &f
}
