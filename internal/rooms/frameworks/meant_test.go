package frameworks_test

import (
	"strings"
	"testing"

	"gdr-features/internal/rooms/frameworks"
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

// TestUnknownGPUs: where it is not known which GPUs a process uses, near NICs that are left out may be
// those of others.
func TestUnknownGPUs(t *testing.T) {
	m := fourGPUs(t)
	for given, want := range map[string]tristate.State{
		"NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_2,mlx5_3": tristate.True,
		"NCCL_IB_HCA==mlx5_0,mlx5_2,mlx5_3":        tristate.Unknown, // one for two GPUs
		"NCCL_IB_HCA==mlx5_0,mlx5_1":               tristate.Unknown, // far from the others
		"NCCL_IB_HCA==nope":                        tristate.False,
	} {
		e, err := frameworks.Parse([]byte(given))
		if err != nil {
			t.Fatal(err)
		}
		e[0].UnknownGPUs = "CUDA_VISIBLE_DEVICES cannot be read"
		if f := frameworks.Check(m, e[0])[0]; f.State != want || f.Part {
			t.Errorf("%s: %+v, want %v", given, *f, want)
		}
	}
}

// TestText: what would be right is said where something is wrong, and where it can be said.
func TestText(t *testing.T) {
	m := fourGPUs(t)
	for given, want := range map[string]string{
		"NCCL_IB_HCA=mlx5":                  "NCCL_IB_HCA",
		"NCCL_IB_HCA==mlx5_0,mlx5_2,nope":   "right: =mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1",
		"NCCL_NETDEVS_POLICY=MAX:1":         "NCCL uses only 1 of the 2 devices near a GPU.",
		"UCX_NET_DEVICES=mlx5_0:x,mlx5_0:1": "right: mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1",
	} {
		if got := judged(t, m, []byte(given))[0].Text(); !strings.HasSuffix(got, want) || !strings.HasPrefix(got, given[:8]) {
			t.Errorf("%s: %q, want %q at the end", given, got, want)
		}
	}
}
