package nccl

import "slices"

// Path is the type of a path between a GPU and a NIC; nearer is smaller.
type Path uint8

// Types of paths without NVLink, in NCCL's order (src/graph/topo.h).
const (
	Unknown Path = iota // not known; also NCCL's PATH_DIS
	LOC                 // from a NIC to its net
	PIX                 // at most one PCIe switch
	PXB                 // several PCIe switches
	P2C                 // over the GPU's NVLink-C2C to its CPU, then PCIe (Grace)
	PHB                 // a CPU
	SYS                 // several CPUs
)

// hop is the type of the path from one node to the next.
func hop(from, to ref) Path {
	switch {
	case from.kind == netNode || to.kind == netNode:
		return LOC
	case from.kind == cpuNode && to.kind == cpuNode:
		return SYS
	case from.kind == cpuNode || to.kind == cpuNode:
		return PHB
	case from.kind == switchNode && to.kind == switchNode:
		return PXB
	}
	return PIX
}

// paths are the paths of all nodes to one.
type paths [kinds][]Path

// setPaths is ncclTopoSetPaths (src/graph/paths.cc): it finds the paths of all nodes to base. It
// fails at a link that has none back, which merging switches can cause.
func (s *system) setPaths(base ref, paths *paths) {
	paths[base.kind][base.at] = LOC
	for list := []ref{base}; len(list) > 0; {
		var next []ref
		for _, at := range list {
			n, path := s.at(at), paths[at.kind][at.at]
			if at != base && (at.kind == gpuNode || n.unknown) {
				continue // no path leads through a GPU, and none that is known through an unknown CPU
			}
			for _, to := range n.links[:n.nlinks] {
				path := max(path, hop(at, to))
				known := &paths[to.kind][to.at]
				if *known != Unknown && *known <= path {
					continue
				}
				if back := s.at(to); *known == Unknown && !slices.Contains(back.links[:back.nlinks], at) {
					s.fail(errStale)
				}
				*known = path
				next = append(next, to)
			}
		}
		list = next
	}
}

// computePaths is ncclTopoComputePaths (src/graph/paths.cc), as far as it is about GPUs and NICs:
// the paths of nets, by dev, to GPUs, by rank. NCCL looks up the paths to a node by its id
// (getPath), so that nodes of one id share them. gpus tells which share memory with their CPU.
func (s *system) computePaths(nets int, gpus []bool) [][]Path {
	var shared map[int64]*paths
	for _, k := range [...]kind{cpuNode, gpuNode, netNode} {
		if k != netNode && len(s.merged) == 0 {
			continue // it would not fail
		}
		shared = map[int64]*paths{}
		for at, n := range s.nodes[k] {
			if shared[n.id] == nil {
				shared[n.id] = &paths{}
				for of := range s.nodes {
					shared[n.id][of] = make([]Path, len(s.nodes[of]))
				}
			}
			s.setPaths(ref{k, at}, shared[n.id])
		}
	}
	byNet := make([][]Path, nets)
	for dev := range byNet {
		byNet[dev] = make([]Path, len(gpus))
		for at, gpu := range s.nodes[gpuNode] {
			if known := shared[int64(dev)]; known != nil && gpu.id >= 0 && gpu.id < int64(len(gpus)) {
				byNet[dev][gpu.id] = known[gpuNode][at]
			}
		}
	}
	for rank, c2c := range gpus {
		if c2c {
			setC2C(byNet, rank)
		}
	}
	return byNet
}

// setC2C is what ncclTopoComputePaths does for a GPU that shares memory with its CPU: it rates PHB
// as P2C (mergePathType) unless a NIC is nearer to the GPU. NCCL also breaks ties by the speed of
// ports, which has nothing to do with places and is left out.
func setC2C(byNet [][]Path, rank int) {
	for _, of := range byNet {
		if of[rank] == PIX || of[rank] == PXB {
			return
		}
	}
	for _, of := range byNet {
		if of[rank] == PHB {
			of[rank] = P2C
		}
	}
}
