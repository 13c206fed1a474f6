package kmod

import (
	"testing"

	"gdr-features/source"

	"github.com/google/go-cmp/cmp"
)

// TestFiles: a state names the files that each fact was read from, also the symbols
// that an earlier scan read, and what advice adds does not change the state before.
func TestFiles(t *testing.T) {
	fs := tree(t, map[string]string{
		"proc/driver/nvidia/version":          openLine,
		"proc/kallsyms":                       "0000000000000000 T ib_umem_dmabuf_get\t[ib_uverbs]\n",
		"sys/module/nvidia_peermem/initstate": "live\n",
		"sys/module/mlx5_core/version":        "24.10-1.1.4\n",
		"sys/module/nvidia_peermem/refcnt":    "0\n",
		"run/mellanox/drivers/.driver-ready":  "",
	})
	memory := Cache{}
	functions, table := machine("nvidia", "mlx5", "mlx4")
	for _, scan := range []string{"first", "second"} {
		st := memory.Scan(fs, functions, table, source.What{})
		for fact, want := range map[Fact][]string{
			FactDriver:  {"/proc/driver/nvidia/version"},
			FactStack:   {"/sys/module/mlx_compat", "/sys/module/mlx5_core", "/sys/module/mlx5_core/version"},
			FactSymbols: {"/proc/kallsyms"},
			FactGDRCopy: nil,
		} {
			if diff := cmp.Diff(want, st.Files[fact]); diff != "" {
				t.Errorf("%s scan, %s (-want +got):\n%s", scan, fact, diff)
			}
		}
		advised := Advise(fs, functions, table, source.What{}, st)
		if diff := cmp.Diff([]string{"/sys/module/gdrdrv"}, advised.Files[FactGDRCopy]); diff != "" {
			t.Errorf("%s scan, advice (-want +got):\n%s", scan, diff)
		}
		if diff := cmp.Diff(st.Files[FactDriver], advised.Files[FactDriver]); diff != "" || st.Files[FactGDRCopy] != nil {
			t.Errorf("%s scan, advice changes the state before, or loses its files: %s", scan, diff)
		}
	}
}
