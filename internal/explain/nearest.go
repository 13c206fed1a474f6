package explain

import (
	"gdr-features/internal/report"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// Nearest are a GPU and the NICs nearest to it.
type Nearest struct {
	GPU   int
	Level topology.Level
	// NICs are all at that level, by index, virtual functions apart whose
	// physical one is here; none when the level is not known.
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

// counts tells an adapter that can do GPUDirect RDMA, and is no virtual function
// whose physical one is here.
func counts(r *report.Report, n *topology.NIC) bool {
	return n.Eligible && n.Function != nil && r.PCI.Place(n.Function) == n.Function
}

func nearest(r *report.Report, gpu int) Nearest {
	out := Nearest{GPU: gpu}
	best, known := bestOf(r, gpu)
	if !known {
		return out
	}
	for _, p := range r.Matrix.PairsOf(gpu) {
		if p.Level == best && counts(r, &r.Matrix.NICs[p.NIC]) {
			out.NICs = append(out.NICs, p.NIC)
		}
	}
	if len(out.NICs) > 0 {
		way := Way(r, gpu, out.NICs[0])
		out.Level, out.NCCL, out.Default, out.Hops = best, way.NCCL, way.Default, way.Hops
	}
	return out
}

// bestOf is a GPU's nearest level. For a GPU that counts the map has it; for
// others a level that is not known leaves it open.
func bestOf(r *report.Report, gpu int) (best topology.Level, known bool) {
	g := r.Matrix.GPUs[gpu]
	if g.Eligible {
		for _, l := range r.Matrix.Nearest {
			if l.GPU.Address == g.Address {
				return l.Level, l.NIC != nil
			}
		}
	}
	best = topology.SYS + 1
	for _, p := range r.Matrix.PairsOf(gpu) {
		if !counts(r, &r.Matrix.NICs[p.NIC]) {
			continue
		}
		if p.Level == topology.Unknown {
			return topology.Unknown, false
		}
		best = min(best, p.Level)
	}
	return best, best <= topology.SYS
}
