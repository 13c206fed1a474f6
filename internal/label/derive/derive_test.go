package derive

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/expect"
	"gdr-features/internal/label"
	"gdr-features/source/kmod"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

func TestLabels(t *testing.T) {
	gpu := []topology.GPU{{}}
	all := slices.Collect(maps.Keys(All()))
	unreadable := verdict.Verdict{Reason: verdict.Unreadable, Peermem: tristate.False}
	unreadable.Open.Link, unreadable.Open.Rate, unreadable.Open.IOMMU, unreadable.Open.ACS = true, true, true, true
	noMOFED := kmod.State{}
	noMOFED.Stack.MOFED.Origin = kmod.OriginNotLoaded
	everything := topology.Matrix{
		GPUs: gpu, Counted: true, EligibleGPUs: 8, EligibleNICs: 10, Level: topology.NODE, Best: topology.PIX,
		NCCLDefault: tristate.False, Origin: topology.Physical, DataDirect: true,
	}
	allTrue := verdict.Verdict{
		Capable: tristate.True, Ready: tristate.False, Reason: verdict.NoActivePort, Peermem: tristate.True, DMABuf: tristate.False,
		Link: "infiniband", Rate: new(400), IOMMU: "passthrough", ACS: "clear",
	}
	software := kmod.State{Storage: tristate.False}
	software.Stack.MOFED = kmod.MOFED{Origin: kmod.OriginMOFED, Version: "24.10-1.1.4.0 (OFED)"}
	software.Stack.PeerDirect = kmod.PeerDirectCurrent
	tests := []struct {
		name    string
		facts   Facts
		want    label.Set
		unknown []string
	}{
		{"no GPU", Facts{PCIRead: true, Matrix: &topology.Matrix{Counted: true, Level: topology.PIX}, Verdict: &allTrue, Kmod: &software}, label.Set{}, nil},
		{"no bus", Facts{Matrix: &topology.Matrix{}, Verdict: &verdict.Verdict{}, Kmod: &kmod.State{}}, label.Set{}, all},
		{"a function that may be a GPU", Facts{PCIRead: true, Matrix: &topology.Matrix{}, Verdict: &verdict.Verdict{}, Kmod: &kmod.State{}}, label.Set{}, all},
		{
			"nothing known but a GPU",
			Facts{PCIRead: true, Matrix: &topology.Matrix{GPUs: gpu}, Verdict: &verdict.Verdict{}, Kmod: &kmod.State{}, Expected: &expect.Result{}},
			label.Set{},
			without(all, label.Rate, label.Link, label.IOMMU, label.ACS), // of these four the verdict tells whether they are unknown
		},
		{"everything known", Facts{PCIRead: true, Matrix: &everything, Verdict: &allTrue, Kmod: &software, Expected: &expect.Result{State: tristate.False}}, label.Set{
			label.Capable: "true", label.Level: "NODE", label.BestLevel: "PIX", label.NCCLDefault: "false", label.GPUs: "8", label.NICs: "10",
			label.Topology: "physical", label.DataDirect: "true",
			label.Ready: "false", label.Reason: "NoActivePort", label.Peermem: "true", label.DMABuf: "false", label.PeerDirect: "current",
			label.MOFED: "24.10-1.1.4.0__OFED", label.Rate: "400", label.Link: "infiniband", label.IOMMU: "passthrough", label.ACS: "clear", label.Storage: "false",
			label.Expected: "false",
		}, nil},
		{
			"counted, and none is eligible",
			Facts{PCIRead: true, Matrix: &topology.Matrix{GPUs: gpu, Counted: true, Origin: topology.Virtual}, Verdict: &allTrue, Kmod: &software},
			label.Set{
				label.Capable: "true", label.GPUs: "0", label.NICs: "0", label.Topology: "virtual",
				label.Ready: "false", label.Reason: "NoActivePort", label.Peermem: "true", label.DMABuf: "false", label.PeerDirect: "current",
				label.MOFED: "24.10-1.1.4.0__OFED", label.Rate: "400", label.Link: "infiniband", label.IOMMU: "passthrough", label.ACS: "clear", label.Storage: "false",
			},
			nil,
		},
		{
			"counted, and no level is known",
			Facts{PCIRead: true, Matrix: &topology.Matrix{GPUs: gpu, Counted: true, EligibleGPUs: 1, EligibleNICs: 1}, Verdict: &unreadable, Kmod: &noMOFED, Expected: &expect.Result{NoType: true}},
			label.Set{label.GPUs: "1", label.NICs: "1", label.Reason: "Unreadable", label.Peermem: "false"},
			[]string{
				label.Capable, label.Level, label.BestLevel, label.NCCLDefault, label.Topology, label.Ready, label.Reason,
				label.DMABuf, label.PeerDirect, label.Rate, label.Link, label.IOMMU, label.ACS, label.Storage,
			},
		},
	}
	for _, tt := range tests {
		labels, unknown := Labels(&tt.facts)
		if diff := cmp.Diff(tt.want, labels); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(tt.unknown)), slices.Sorted(maps.Keys(unknown))); diff != "" {
			t.Errorf("%s: unknown (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestRows: the labels are published, and other programs select nodes by them.
func TestRows(t *testing.T) {
	want := map[kind][]string{
		hardware: {
			"gpudirect.rdma.capable", "gdr.level", "gdr.level.best", "gdr.nccl-default", "gdr.gpus", "gdr.nics",
			"gdr.topology", "gdr.datadirect",
		},
		state: {
			"gpudirect.rdma", "gdr.reason", "gdr.peermem", "gdr.dmabuf", "gdr.peerdirect", "gdr.mofed", "gdr.rate", "gdr.link",
			"gdr.iommu", "gdr.acs", "gpudirect.storage", "gdr.expected",
		},
	}
	got := map[kind][]string{}
	for _, row := range rows {
		got[row.kind] = append(got[row.kind], row.name)
		if Hardware(row.name) != (row.kind == hardware) || !label.Ours(row.name) {
			t.Errorf("%s: about the hardware %v, one of ours %v", row.name, Hardware(row.name), label.Ours(row.name))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	for _, name := range []string{"", "gdr", "gdr.gpus ", label.DefaultPrefix + "gdr.gpus"} {
		if Hardware(name) {
			t.Errorf("%q is about the hardware", name)
		}
	}
}

func without(names []string, left ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(left, name) })
}

func TestMOFED(t *testing.T) {
	for want, mofed := range map[string]kmod.MOFED{
		"24.10-1.1.4": {Origin: kmod.OriginMOFED, Version: "24.10-1.1.4"},
		"inbox":       {Origin: kmod.OriginInbox},
		"":            {Origin: kmod.OriginUnknown},
	} {
		if got := MOFED(mofed); got != want {
			t.Errorf("%+v: %q, want %q", mofed, got, want)
		}
	}
	for _, mofed := range []kmod.MOFED{{Origin: kmod.OriginMOFED}, {Origin: kmod.OriginNotLoaded}} {
		if got := MOFED(mofed); got != "" {
			t.Errorf("%+v: %q, want none", mofed, got)
		}
	}
}
