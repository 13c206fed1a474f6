package features

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/finding"
	"gdr-features/internal/report"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/source/verbs"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// TestState: what is known of the software, and the codes of what is wrong.
func TestState(t *testing.T) {
	r := report.Report{Node: verdict.Node{
		Platform: platform.State{Kernel: "6.8.0-45-generic"},
		Kmod:     kmod.State{Drivers: map[string]kmod.Driver{"nvidia": {Loaded: tristate.True, Open: tristate.True, Version: "570.86.15"}}},
	}, Findings: []finding.Finding{
		{Status: finding.StatusWarn, Code: "B"}, {Status: finding.StatusOK}, {Status: finding.StatusFail, Code: "A"}, {Status: finding.StatusUnknown, Code: "C"}, {Status: finding.StatusWarn, Code: "B"},
	}}
	want := map[string]string{"kernel": "6.8.0-45-generic", "driverVersion": "570.86.15", "driverOpen": "true", "findings": "A,B"}
	if diff := cmp.Diff(want, State(&r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Findings[0].Check, r.Findings[2].Check, r.Findings[3].Check, r.Findings[4].Check = "link", "acs", "iommu", "link"
	found := []Attrs{{"check": "acs", "status": "FAIL", "code": "A"}, {"check": "iommu", "status": "UNKNOWN", "code": "C"}, {"check": "link", "status": "WARN", "code": "B"}}
	for i, e := range Node(&r, "gdr.").Instances["gdr.finding"].Elements {
		if diff := cmp.Diff(map[string]string(found[i]), e.Attributes); diff != "" {
			t.Errorf("finding %d (-want +got):\n%s", i, diff)
		}
		found[i] = nil
	}
	if found[2] != nil {
		t.Errorf("findings that are missing: %v", found)
	}
	if diff := cmp.Diff(map[string]string{}, State(&report.Report{})); diff != "" {
		t.Errorf("of nothing (-want +got):\n%s", diff)
	}
}

// TestRails: the NICs that jobs use are numbered, whatever their drivers do.
func TestRails(t *testing.T) {
	physical := pci.Address{Bus: 1}
	function := func(bus uint8, physfn *pci.Address) *pci.Function {
		return &pci.Function{Address: pci.Address{Bus: bus}, PhysFn: physfn, NIC: &family.NIC{}, Eligible: pci.Counts}
	}
	nic := topology.NIC{Function: function(1, nil), RDMA: &rdma.Device{Name: "mlx5_0"}}
	bare := topology.NIC{Function: function(2, nil)}
	vf := topology.NIC{Function: function(3, &physical), RDMA: &rdma.Device{Name: "mlx5_1"}}
	lone := topology.NIC{Function: function(4, &pci.Address{Bus: 9}), RDMA: &rdma.Device{Name: "mlx5_2"}}
	sub := topology.NIC{Function: function(1, nil), RDMA: &rdma.Device{Name: "mlx5_3", Auxiliary: true}}
	north := topology.NIC{Function: function(5, nil), RDMA: &rdma.Device{Name: "mlx5_4"}, Role: topology.NorthSouth}
	other := topology.NIC{Function: &pci.Function{Address: pci.Address{Bus: 6}}, RDMA: &rdma.Device{Name: "irdma0"}}
	soft := topology.NIC{RDMA: &rdma.Device{Name: "rxe0"}}
	for name, tc := range map[string]struct {
		nics []topology.NIC
		want []int
	}{
		"all kinds":       {[]topology.NIC{soft, nic, sub, bare, vf, lone, north, other}, []int{-1, 0, -1, 1, -1, 2, -1, -1}},
		"nothing else":    {[]topology.NIC{other, north}, []int{-1, 0}},
		"none that count": {[]topology.NIC{soft, other}, []int{-1, -1}},
		"none":            {nil, []int{}},
	} {
		r := report.Report{Node: verdict.Node{
			PCI: pci.Inventory{Functions: []pci.Function{{Address: physical}}}, Matrix: topology.Matrix{NICs: tc.nics},
		}}
		if diff := cmp.Diff(tc.want, rails(&r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestInUse: what the device says counts before what follows from the network device, and a
// port that is down uses nothing.
func TestInUse(t *testing.T) {
	index := 3
	port := rdma.Port{Number: 1, State: "ACTIVE", LinkLayer: "Ethernet", RateGbps: 400, RoCE: rdma.RoCE{MTU: 4096, GIDIndex: &index}}
	with := func(change func(*rdma.Port)) rdma.Port {
		p := port
		change(&p)
		return p
	}
	base := Attrs{"state": "ACTIVE", "linkLayer": "Ethernet", "rateGbps": "400"}
	and := func(more ...string) Attrs {
		a := Attrs{}
		maps.Copy(a, base)
		for i := 0; i < len(more); i += 2 {
			a[more[i]] = more[i+1]
		}
		return a
	}
	said := []verbs.Answer{{Device: "mlx5_9", MTUs: map[int]int{1: 256}}, {Device: "mlx5_0", MTUs: map[int]int{1: 2048}}}
	for name, tc := range map[string]struct {
		port  rdma.Port
		asked []verbs.Answer
		want  Attrs
	}{
		"from the network device": {port, said[:1], and("mtu", "4096", "mtuFrom", "netdev", "gidIndex", "3")},
		"from the device":         {port, said, and("mtu", "2048", "mtuFrom", "device", "gidIndex", "3")},
		"InfiniBand":              {with(func(p *rdma.Port) { p.LinkLayer, p.RoCE = "InfiniBand", rdma.RoCE{} }), nil, and("linkLayer", "InfiniBand")},
		"InfiniBand, asked":       {with(func(p *rdma.Port) { p.LinkLayer, p.RoCE = "InfiniBand", rdma.RoCE{} }), said, and("linkLayer", "InfiniBand", "mtu", "2048", "mtuFrom", "device")},
		"down":                    {with(func(p *rdma.Port) { p.State = "DOWN" }), said, and("state", "DOWN")},
	} {
		r, got := report.Report{Node: verdict.Node{Asked: tc.asked}}, Attrs{}
		got.inUse(&r, &topology.NIC{RDMA: &rdma.Device{Name: "mlx5_0", Ports: []rdma.Port{tc.port}}})
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
