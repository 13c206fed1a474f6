package topology_test

import (
	"testing"

	"gdr-features/source/family"
	"gdr-features/source/platform"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// TestRefuses: the types of EC2 on which EFA reaches no GPU's memory. The plugin demands
// GPUDirect RDMA on the others (aws/aws-ofi-nccl, src/platform-aws.cpp, gdr_required); see
// aws/aws-ofi-nccl#547 and PR#1057.
func TestRefuses(t *testing.T) {
	const aws = "Amazon EC2"
	families := map[string]*family.NIC{}
	for _, nic := range family.Known().NICs {
		families[nic.Name] = nic
	}
	for _, tt := range []struct {
		vendor, product string
		want            tristate.State
	}{
		{aws, "p4d.24xlarge", tristate.False},
		{aws, "p4de.24xlarge", tristate.False},
		{aws, "p5.48xlarge", tristate.False},
		{aws, "p5e.48xlarge", tristate.False},
		{aws, "p5en.48xlarge", tristate.False},
		{aws, "p6-b200.48xlarge", tristate.False},
		{aws, "p6-b300.48xlarge", tristate.False},
		{aws, "p6e-gb200.36xlarge", tristate.False},
		{aws, "g7e.12xlarge", tristate.False},
		{aws, "g7e.24xlarge", tristate.False},
		{aws, "g7e.48xlarge", tristate.False},
		{aws, "p3dn.24xlarge", tristate.True},
		{aws, "p5.4xlarge", tristate.True},
		{aws, "g4dn.metal", tristate.True},
		{aws, "g5.48xlarge", tristate.True},
		{aws, "g6.48xlarge", tristate.True},
		{aws, "g6e.24xlarge", tristate.True},
		{aws, "gr6.8xlarge", tristate.True},
		{aws, "g7e.8xlarge", tristate.True},

		{aws, "g99.48xlarge", tristate.False}, // a type that is not known is judged by its tree
		{aws, "g5", tristate.False},
		{"QEMU", "g5.48xlarge", tristate.Unknown}, // EFA is in Amazon's machines alone: the names are wrong
		{"QEMU", "", tristate.Unknown},
		{"Amazo", "p5.48xlarge", tristate.Unknown},
		{aws, "", tristate.Unknown},
		{"", "", tristate.Unknown},
		{"", "g5.48xlarge", tristate.Unknown},
		{"", "p4d.24xlarge", tristate.Unknown},
	} {
		m := topology.Matrix{Machine: platform.DMI{Vendor: platform.Name{Value: tt.vendor}, Product: platform.Name{Value: tt.product}}}
		if got := m.Refuses(families["efa"]); got != tt.want {
			t.Errorf("%q %q: %v, want %v", tt.vendor, tt.product, got, tt.want)
		}
		m.Machine.Vendor.Missing = true
		if got := m.Refuses(families["efa"]); got != tt.want {
			t.Errorf("%q %q, one file missing: %v, want %v", tt.vendor, tt.product, got, tt.want)
		}
		m.Machine.Vendor.Missing, m.Machine.Product.Missing = false, true
		if got := m.Refuses(families["efa"]); got != tt.want {
			t.Errorf("%q %q, the other file missing: %v, want %v", tt.vendor, tt.product, got, tt.want)
		}
		for _, nic := range []*family.NIC{families["mlx5"], nil} {
			if got := m.Refuses(nic); got != tristate.False {
				t.Errorf("%q %q, other NICs: %v", tt.vendor, tt.product, got)
			}
		}
	}
	none := topology.Matrix{Machine: platform.DMI{Vendor: platform.Name{Missing: true}, Product: platform.Name{Missing: true}}}
	if got := none.Refuses(families["efa"]); got != tristate.False {
		t.Errorf("no names at all: %v", got)
	}
}
