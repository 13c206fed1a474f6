package frameworks_test

import (
	"testing"

	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/tristate"
)

// TestDefaultRouteLeftOut: the owner of a list may keep the card of the default route for the node.
func TestDefaultRouteLeftOut(t *testing.T) {
	given := []byte("NCCL_IB_HCA==mlx5_0:1,mlx5_2:1,mlx5_3:1")
	m := fourGPUs(t)
	for _, routed := range []bool{false, true} {
		if routed {
			over := []pci.Address{m.Find("mlx5_1").Address}
			m.Node.Platform.DefaultRoutes = []platform.DefaultRoute{{Interface: "bond0", Functions: over}}
		}
		for _, f := range judged(t, m, given) {
			if (f.State == tristate.True) != routed || f.Part == routed {
				t.Errorf("default route over mlx5_1 %v: %v %s", routed, f.State, f.Text())
			}
		}
	}
}
