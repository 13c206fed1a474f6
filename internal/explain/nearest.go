package explain

import "gdr-features/verdict"

// Nearest are the NICs nearest to a GPU.
type Nearest struct {
	// NICs are those of topology.Matrix.Near.
	NICs []int
	// Path is the one to the first of them; without any, only its GPU is set.
	Path
}

// NearestNICs returns the nearest NICs of every GPU.
func NearestNICs(r *verdict.Node) []Nearest {
	list := make([]Nearest, len(r.Matrix.GPUs))
	for gpu := range list {
		near := &list[gpu]
		near.GPU, near.NICs = gpu, r.Matrix.Near(gpu)
		if len(near.NICs) > 0 {
			near.Path = PathOf(r, gpu, near.NICs[0])
		}
	}
	return list
}
