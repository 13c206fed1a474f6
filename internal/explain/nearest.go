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
	// NICs are the RDMA devices and functions of topology.GPU.Nearest, by their
	// indexes in the Matrix.
	NICs []int
	// NCCL, Default and Hops are those of the path to the first of them.
	NCCL    topology.Level
	Default tristate.State
	Hops    []Hop
}

// NearestNICs returns the nearest NICs of every GPU.
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
		path := PathOf(r, gpu, out.NICs[0])
		out.Level, out.NCCL, out.Default, out.Hops = g.Level, path.NCCL, path.Default, path.Hops
	}
	return out
}
