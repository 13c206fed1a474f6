package explain

import (
	"slices"

	"gdr-features/internal/report"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// Nearest are a GPU and the NICs nearest to it.
type Nearest struct {
	GPU   int
	Level topology.Level
	// NICs are all at that level, by their indexes in the Matrix, without virtual
	// functions whose physical function is listed; none where the level is not
	// known.
	NICs []int
	// NCCL and Default are those of the first of them, as in topology.Pair, and
	// Hops is the way there.
	NCCL    topology.Level
	Default tristate.State
	Hops    []Hop
}

// NearestNICs finds the nearest NICs of every GPU, of those that count.
func NearestNICs(r *report.Report) []Nearest {
	list := make([]Nearest, len(r.Matrix.GPUs))
	for i := range list {
		list[i] = nearest(r, i)
	}
	return list
}

func nearest(r *report.Report, gpu int) Nearest {
	g := &r.Matrix.GPUs[gpu]
	out := Nearest{GPU: gpu}
	for i := range r.Matrix.NICs {
		if n := &r.Matrix.NICs[i]; n.Eligible && slices.Contains(g.Nearest, n.Function) {
			out.NICs = append(out.NICs, i)
		}
	}
	if len(out.NICs) > 0 {
		way := Way(r, gpu, out.NICs[0])
		out.Level, out.NCCL, out.Default, out.Hops = g.Level, way.NCCL, way.Default, way.Hops
	}
	return out
}
