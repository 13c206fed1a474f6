package findings_test

import (
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/finding"
)

// TestImagesNeed: a driver of a known ABI is no fault of the node. The finding says which
// library images need (sgl-project/sglang PR#33374, and its reverse).
func TestImagesNeed(t *testing.T) {
	const uverbs = "sys/class/infiniband_verbs/uverbs0/"
	for _, tt := range []struct{ name, machine, device, abi, want string }{
		{"Broadcom's own driver", "thor", "mlx5_0", "7", "need Broadcom's libbnxt_re of its release, as rdma-core's library supports ABI 1: mlx5_0 (ABI 7)"},
		{"the kernel's bnxt_re", "thor", "mlx5_0", "1", "need rdma-core's library, as Broadcom's libbnxt_re supports ABI 6, 7, 8: mlx5_0 (ABI 1)"},
		{"AMD's own driver", "pollara", "mlx5_0", "4", "need AMD's own libionic of its release, as rdma-core's library supports ABI 1: mlx5_0 (ABI 4)"},
		{"the kernel's ionic", "pollara", "mlx5_0", "1", "need rdma-core's library, as AMD's own libionic supports ABI 4: mlx5_0 (ABI 1)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := failure{}
			_, list := c.findings(t, tt.machine, all(file(uverbs+"ibdev", tt.device+"\n"), file(uverbs+"abi_version", tt.abi+"\n"), file("sys/class/infiniband_verbs/abi_version", "6\n")))
			i := slices.IndexFunc(list, func(f finding.Finding) bool { return f.Check == "user-space" })
			if i < 0 || list[i].Status != finding.StatusOK || !strings.Contains(list[i].Detail, tt.want) {
				t.Errorf("%d of %+v", i, list)
			}
		})
	}
}
