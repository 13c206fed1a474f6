package explain_test

import (
	"strings"
	"testing"

	"gdr-features/internal/report"
	"gdr-features/internal/rooms/explain"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// TestNearNICFirst: a wider level is advised only for a GPU without a near NIC, by explain and
// by log alike, and the near NIC is named.
func TestNearNICFirst(t *testing.T) {
	far, wider := 0, 0
	everyMachine(t, testsize.Share(machine.All(t, machinesDir)), ready, func(t *testing.T, r *report.Report) {
		for g := range r.Matrix.GPUs {
			gpu := r.Matrix.GPUs[g].Address.String()
			for n := range r.Matrix.NICs {
				name := explain.NICName(&r.Matrix.NICs[n])
				path := explain.PathOf(&r.Node, g, n)
				note := explain.FarNIC(&r.Node, gpu, name)
				if note != "" {
					far++
				}
				if note != "" && strings.Contains(path.DefaultWhy, "NCCL_NET_GDR_LEVEL") {
					t.Errorf("%s, %s: %q, but %q", gpu, name, note, path.DefaultWhy)
				}
				if path.Default == tristate.False && strings.Contains(path.DefaultWhy, "NCCL_NET_GDR_LEVEL=") {
					wider++
				}
			}
			for _, n := range r.Matrix.GPUs[g].Near(topology.Usable).NICs {
				if note := explain.FarNIC(&r.Node, gpu, explain.NICName(&r.Matrix.NICs[n])); note != "" {
					t.Errorf("%s: a near NIC is far: %s", gpu, note)
				}
			}
		}
	})
	if !testsize.Partial() && (far < 100 || wider < 10) {
		t.Errorf("%d far NICs, %d wider levels", far, wider)
	}
}

// TestMergedNICs: of NICs that NCCL uses as one, each counts; a port does not.
func TestMergedNICs(t *testing.T) {
	m, err := machine.Load(machinesDir + "/dell-xe9680-h100.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := collect(t, m, m.Ready())
	for nic, want := range map[string]bool{"mlx5_0": false, "mlx5_0:1+mlx5_1:1": false, "mlx5_7": true, "mlx5_0+mlx5_7": true, "mlx5_99": false, "": false} {
		if got := explain.FarNIC(&r.Node, "0000:19:00.0", nic); (got != "") != want {
			t.Errorf("%s: %q", nic, got)
		}
	}
	if got := explain.FarNIC(&r.Node, "", "mlx5_7"); got != "" {
		t.Errorf("of a GPU that is not known: %q", got)
	}
}
