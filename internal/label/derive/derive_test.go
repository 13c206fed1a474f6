package derive

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/label"
	"gdr-features/source/kmod"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

func TestLabels(t *testing.T) {
	gpu := []topology.GPU{{}}
	everything := topology.Matrix{
		GPUs: gpu, Counted: true, EligibleGPUs: 8, EligibleNICs: 10, Level: topology.NODE, Best: topology.PIX,
		NCCLDefault: tristate.False, Origin: topology.Physical, DataDirect: true,
	}
	allTrue := verdict.Verdict{
		Capable: tristate.True, Ready: tristate.False, Reason: verdict.NoActivePort, Peermem: tristate.True, DMABuf: tristate.False,
		Link: "infiniband", IOMMU: "passthrough", ACS: "clear",
	}
	software := kmod.State{Storage: tristate.False}
	software.Stack.MOFED = kmod.MOFED{Origin: kmod.OriginMOFED, Version: "24.10-1.1.4.0 (OFED)"}
	software.Stack.PeerDirect = kmod.PeerDirectCurrent
	tests := []struct {
		name string
		m    topology.Matrix
		v    verdict.Verdict
		k    kmod.State
		want label.Set
	}{
		{"no GPU", topology.Matrix{Counted: true, Level: topology.PIX}, allTrue, software, label.Set{}},
		{"nothing known", topology.Matrix{GPUs: gpu}, verdict.Verdict{}, kmod.State{}, label.Set{}},
		{"everything known", everything, allTrue, software, label.Set{
			label.Capable: "true", label.Level: "NODE", label.BestLevel: "PIX", label.NCCLDefault: "false", label.GPUs: "8", label.NICs: "10",
			label.Topology: "physical", label.DataDirect: "true",
			label.Ready: "false", label.Reason: "NoActivePort", label.Peermem: "true", label.DMABuf: "false", label.PeerDirect: "current",
			label.MOFED: "24.10-1.1.4.0__OFED", label.Link: "infiniband", label.IOMMU: "passthrough", label.ACS: "clear", label.Storage: "false",
		}},
		{"counted, and none is eligible", topology.Matrix{GPUs: gpu, Counted: true}, verdict.Verdict{}, kmod.State{}, label.Set{label.GPUs: "0", label.NICs: "0"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, Labels(&tt.m, &tt.v, &tt.k)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
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
