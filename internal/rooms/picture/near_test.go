package picture

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/render"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/explain"
	"gdr-features/internal/view"
	"gdr-features/source/container"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/topology"
)

// virtualFunctions is a GPU far from a NIC with virtual functions, and one without a known
// place, of which it is not known what is near.
const virtualFunctions = `
nodes 2
pci0000:15 numa=0
  0000:15:01.0 port 8086:352a
    0000:18:00.0 gpu 10de:2330
pci0000:40 numa=0
  0000:40:01.0 port 8086:352a
    0000:41:00.0 eth 15b3:1021 rdma=mlx5_0
    0000:41:00.2 eth 15b3:101e physfn=0000:41:00.0 rdma=mlx5_1
    0000:41:00.3 eth 15b3:101e physfn=0000:41:00.0 driver=none
pci0000:80
  0000:80:01.0 port 8086:352a
    0000:81:00.0 gpu 10de:2330
`

// TestNearIsTheSameEverywhere: the picture, explain and the lines for Slurm name the same
// NICs as near a GPU, those of the matrix, on every machine in every state.
func TestNearIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	made, err := machine.Parse(virtualFunctions)
	if err != nil {
		t.Fatal(err)
	}
	virtual := 0
	for i, m := range append([]*machine.Machine{made}, testsize.Share(machine.All(t, "../../../testdata/machines"))...) {
		for s, dir := range m.Trees(t, testsize.FewInTurn(i, m.States())) {
			r := read(t, dir)
			model, nearest := newModel(r), explain.NearestNICs(&r.Node)
			var slurm bytes.Buffer
			if err := render.TopoSlurm(&slurm, r, &container.Devices{}); err != nil {
				t.Fatal(err)
			}
			for gpu := range r.Matrix.GPUs {
				want := names(r, r.Matrix.GPUs[gpu].Near(topology.Usable).NICs)
				if explained := names(r, nearest[gpu].NICs); explained != want {
					t.Errorf("%s, %s: GPU%d: explain has %q, the matrix %q", m.Name, s.Name, gpu, explained, want)
				}
				var pictured []string
				for _, nic := range model.GPUs[gpu].Near {
					pictured = append(pictured, nic.Name)
				}
				// A picture of many NICs leaves virtual functions out.
				folded := len(model.NICs) < len(r.Matrix.NICs)
				if got := strings.Join(pictured, " "); r.Matrix.GPUs[gpu].Counts() && got != want && !folded {
					t.Errorf("%s, %s: GPU%d: the picture has %q, the matrix %q", m.Name, s.Name, gpu, got, want)
				}
				if got := nearForSlurm(slurm.String(), gpu); got != want {
					t.Errorf("%s, %s: GPU%d: for Slurm %q, the matrix has %q", m.Name, s.Name, gpu, got, want)
				}
				if slices.ContainsFunc(r.Matrix.GPUs[gpu].Near(topology.Usable).NICs, func(n int) bool { return r.PCI.Physical(r.Matrix.NICs[n].Function) != nil }) {
					virtual++
				}
			}
		}
	}
	if virtual == 0 {
		t.Error("no virtual function is near a GPU")
	}
}

func names(r *report.Report, nics []int) string {
	var all []string
	for _, n := range nics {
		all = append(all, view.NICName(&r.Matrix.NICs[n]))
	}
	return strings.Join(all, " ")
}

// nearForSlurm takes the NICs from the comment about a GPU: "GPU0 ADDRESS ..., PIX to mlx5_0".
func nearForSlurm(text string, gpu int) string {
	_, about, _ := strings.Cut(text, fmt.Sprintf("# GPU%d ", gpu))
	about, _, _ = strings.Cut(about, "\n")
	_, near, _ := strings.Cut(strings.TrimSuffix(about, ": its device node is not known"), " to ")
	return near
}
