package nccl

import (
	"slices"

	"gdr-features/source/pci"
)

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
func hop(from, to *node) Path {
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

// setPaths is ncclTopoSetPaths (src/graph/paths.cc): it finds the paths of all nodes to base.
func setPaths(base *node, paths map[*node]Path) {
	paths[base] = LOC
	for list := []*node{base}; len(list) > 0; list = list[1:] {
		at := list[0]
		if at != base && (at.kind == gpuNode || at.unknown) {
			continue // no path leads through a GPU, and none that is known through an unknown CPU
		}
		for _, to := range at.links {
			path := max(paths[at], hop(at, to))
			if known := paths[to]; known == Unknown || path < known {
				paths[to] = path
				list = append(list, to)
			}
		}
	}
}

// computePaths is ncclTopoComputePaths (src/graph/paths.cc), as far as it is about GPUs and NICs:
// the paths of nets, by dev, to GPUs, by rank. NCCL looks up the paths to a net by its id
// (getPath), so that nets of one id share them.
func (s *system) computePaths(nets int, gpus []*pci.Function) [][]Path {
	shared := map[int64]map[*node]Path{}
	for _, net := range s.nodes[netNode] {
		if shared[net.id] == nil {
			shared[net.id] = map[*node]Path{}
		}
		setPaths(net, shared[net.id])
	}
	byNet := make([][]Path, nets)
	for dev := range byNet {
		byNet[dev] = make([]Path, len(gpus))
		for _, gpu := range s.nodes[gpuNode] {
			if gpu.id >= 0 && gpu.id < int64(len(gpus)) {
				byNet[dev][gpu.id] = shared[int64(dev)][gpu]
			}
		}
	}
	for rank, gpu := range gpus {
		if gpu.Coherent() {
			setC2C(byNet, rank)
		}
	}
	return byNet
}

// setC2C is what ncclTopoComputePaths does for a GPU that shares memory with its CPU: it rates PHB
// as P2C (mergePathType) unless a NIC is nearer to the GPU. NCCL also breaks ties by the speed of
// ports, which has nothing to do with places and is left out.
func setC2C(byNet [][]Path, rank int) {
	if slices.ContainsFunc(byNet, func(of []Path) bool { return of[rank] == PIX || of[rank] == PXB }) {
		return
	}
	for _, of := range byNet {
		if of[rank] == PHB {
			of[rank] = P2C
		}
	}
}
