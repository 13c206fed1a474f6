package assign_test

import (
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/rooms/assign"
	"gdr-features/source/rdma"
	"gdr-features/test/machine"
	"gdr-features/test/sample"
	"gdr-features/topology"
)

// twoLayers has Ethernet and InfiniBand ports at NODE from two of its GPUs.
const twoLayers = "lenovo-sr675-v3-rtxpro"

// TestOneLayer: where NICs of two layers are near GPUs, those of the layer of most GPUs are used, and
// the others are noted.
func TestOneLayer(t *testing.T) {
	m, err := machine.Load("../../../testdata/machines/" + twoLayers + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	r := sample.Read(t, m.Tree(t, m.Ready()), nil)
	here := assign.NewMachine(r, all)
	got := here.Assign(here.EveryGPU(), nil)
	for _, nic := range got.Near() {
		if nic.LinkLayer != "InfiniBand" {
			t.Errorf("%s is for %s", nic.RDMA, nic.LinkLayer)
		}
	}
	for _, name := range []string{"mlx5_2", "mlx5_3"} {
		if !slices.ContainsFunc(got.Notes(), func(s string) bool { return strings.HasPrefix(s, "The NIC "+name+" is left out: it is for Ethernet") }) {
			t.Errorf("no note names %s: %q", name, got.Notes())
		}
	}
}

// TestLayerOfOne: a layer that is near no GPU, or the only one, changes nothing.
func TestLayerOfOne(t *testing.T) {
	ethernet := port(1, 400)
	ethernet.LinkLayer = "Ethernet"
	for name, tt := range map[string]struct {
		first  rdma.Port
		second topology.Level
		aside  bool
	}{
		"as near":       {port(1, 400), topology.PIX, true},
		"farther":       {port(1, 400), topology.SYS, false},
		"the same here": {ethernet, topology.PIX, false},
	} {
		here := assign.NewMachine(built([]topology.NIC{nic("a", tt.first), nic("b", ethernet)}, []topology.Level{topology.PIX, tt.second}), all)
		if got := here.NICs[1].Aside != ""; got != tt.aside || here.NICs[0].Aside != "" {
			t.Errorf("%s: %q and %q are aside", name, here.NICs[0].Aside, here.NICs[1].Aside)
		}
	}
}
