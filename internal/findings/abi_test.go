package findings_test

import (
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/finding"
	"gdr-features/source/kmod"
	"gdr-features/source/rdma"
	"gdr-features/test/sample"
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

// TestImagesNeedCounted: NICs that do not count, and those without an RDMA device, are left out.
func TestImagesNeedCounted(t *testing.T) {
	n := sample.Ready()
	*n.NIC() = sample.Function(0x20, 0x14e4, 0x1760, 0x020000, "bnxt_en")
	for _, bus := range []uint8{0x21, 0x22} {
		n.PCI.Functions = append(n.PCI.Functions, sample.Function(bus, 0x14e4, 0x1760, 0x020000, "bnxt_en"))
	}
	excluded := sample.At(0x21)
	n.PCI.Find(excluded).Excluded = true
	n.RDMA.Devices = append(n.RDMA.Devices, rdma.Device{Name: "mlx5_1", PCI: &excluded})
	n.Kmod.Advice = kmod.NoAdvice()
	for _, name := range []string{"mlx5_0", "mlx5_1"} {
		n.Kmod.Advice.VerbsABI[name] = kmod.VerbsABI{Version: 7, File: "/" + name}
	}
	const want = "supports ABI 1: mlx5_0 (ABI 7)"
	if f := findingOf(t, n, "user-space"); f.Status != finding.StatusOK || !strings.HasSuffix(f.Detail, want) {
		t.Errorf("%v %s, want %s", f.Status, f.Detail, want)
	}
}

// TestPortTool: where a family has a program for it, the fix of a port that is down for no reason
// known names it.
func TestPortTool(t *testing.T) {
	n := sample.Ready()
	n.Port().State, n.Port().Physical = "DOWN", "LinkErrorRecovery"
	f := findingOf(t, n, "port")
	if fix := strings.Join(f.Fix, " "); f.Status != finding.StatusFail || !strings.Contains(fix, "ibstat and mlxlink show") {
		t.Errorf("%v %s: %s", f.Status, f.Code, fix)
	}
}
