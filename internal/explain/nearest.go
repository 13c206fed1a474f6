package explain

import (
	"slices"

	"gdr-features/internal/report"
)

// Nearest are the NICs nearest to a GPU.
type Nearest struct {
	// NICs are the RDMA devices and functions of topology.GPU.Nearest, by their
	// indexes in the Matrix.
	NICs []int
	// Path is the one to the first of them; without any, only its GPU is set.
	Path
}

// NearestNICs returns the nearest NICs of every GPU.
func NearestNICs(r *report.Report) []Nearest {
	list := make([]Nearest, len(r.Matrix.GPUs))
	for gpu := range list {
		near := &list[gpu]
		for i := range r.Matrix.NICs {
			if n := &r.Matrix.NICs[i]; n.Eligible && slices.Contains(r.Matrix.GPUs[gpu].Nearest, n.Function) {
				near.NICs = append(near.NICs, i)
			}
		}
		if near.GPU = gpu; len(near.NICs) > 0 {
			near.Path = PathOf(r, gpu, near.NICs[0])
		}
	}
	return list
}
