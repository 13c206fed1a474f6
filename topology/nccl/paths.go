package nccl

import (
	"fmt"
	"slices"

	"gdr-features/source/pci"
)

// Path is the type of a path between a GPU and a NIC; nearer is smaller.
type Path uint8

// Types of paths without NVLink, in NCCL's order (src/graph/topo.h).
const (
	Unknown Path = iota // not known; also NCCL's PATH_DIS
	LOC                 // from a NIC to its net
	c2c                 // from a GPU to its CPU over NVLink-C2C
	PIX                 // at most one PCIe switch
	PXB                 // several PCIe switches
	P2C                 // over the GPU's NVLink-C2C to its CPU, then PCIe (Grace)
	PHB                 // a CPU
	SYS                 // several CPUs
)

// hop is the type of the path over one link.
func hop(from *node, l link) Path {
	switch {
	case from.kind == switchNode && l.to.kind == switchNode:
		return PXB
	case l.kind == linkPCI && (from.kind == cpuNode || l.to.kind == cpuNode):
		return PHB
	}
	return [...]Path{linkLoc: LOC, linkNet: LOC, linkC2C: c2c, linkPCI: PIX, linkSys: SYS}[l.kind]
}

// way is a path to a node (src/graph/topo.h, struct ncclTopoLinkList).
type way struct {
	path Path
	bw   float32
	hops int
}

// betterThan is NCCL's order of paths.
func (w way) betterThan(o way) bool {
	return o.path == Unknown || w.path < o.path ||
		w.path == o.path && (w.bw > o.bw || w.bw == o.bw && w.hops < o.hops)
}

// setPaths is ncclTopoSetPaths (src/graph/paths.cc): it finds the paths of all nodes to base. NCCL
// ends where the first path to a node has no link back.
func (s *system) setPaths(base *node, ways map[*node]way) {
	ways[base] = way{LOC, locBw, 0}
	for list, next := []*node{base}, []*node(nil); len(list) > 0; list, next = next, nil {
		for _, at := range list {
			if at != base && (at.kind == gpuNode || at.unknown) {
				continue // no path leads through a GPU, and none that is known through an unknown CPU
			}
			for _, l := range at.links {
				from, known := ways[at], ways[l.to]
				found := way{max(from.path, hop(at, l)), min(from.bw, l.bw), from.hops + 1}
				if !found.betterThan(known) {
					continue
				}
				back := func(o link) bool { return o.to == at && o.kind == l.kind }
				if known.path == Unknown && s.failed == nil && !slices.ContainsFunc(l.to.links, back) {
					s.failed = fmt.Errorf("NCCL finds no link back to the switch %012x", at.id)
				}
				if ways[l.to] = found; !slices.Contains(next, l.to) {
					next = append(next, l.to)
				}
			}
		}
	}
}

// pathsOf are the paths of all nodes to those of a kind, by id: NCCL looks them up by it (getPath),
// so that nodes of one id share them.
func (s *system) pathsOf(k kind) map[int64]map[*node]way {
	shared := map[int64]map[*node]way{}
	for _, n := range s.nodes[k] {
		if shared[n.id] == nil {
			shared[n.id] = map[*node]way{}
		}
		s.setPaths(n, shared[n.id])
	}
	return shared
}

// computePaths is ncclTopoComputePaths (src/graph/paths.cc), as far as it is about GPUs and NICs:
// the paths of nets, by dev, to GPUs, by rank.
func (s *system) computePaths(nets int, gpus []*pci.Function) [][]Path {
	coherent := slices.ContainsFunc(gpus, (*pci.Function).Coherent)
	toNets := s.pathsOf(netNode)
	var toCPUs map[int64]map[*node]way
	if coherent || s.oneWay {
		toCPUs = s.pathsOf(cpuNode)
	}
	if s.oneWay {
		s.pathsOf(gpuNode) // NCCL may end here
	}
	byNet := make([][]Path, nets)
	for dev := range byNet {
		byNet[dev] = make([]Path, len(gpus))
	}
	for _, gpu := range s.nodes[gpuNode] {
		if gpu.id < 0 || gpu.id >= int64(len(gpus)) {
			continue
		}
		for dev := range byNet {
			byNet[dev][gpu.id] = toNets[int64(dev)][gpu].path
		}
		if gpus[gpu.id].Coherent() {
			s.setP2C(byNet, gpu, toNets, toCPUs)
		}
	}
	return byNet
}

// setP2C is what ncclTopoComputePaths does for a GPU that shares memory with its CPU: PHB is P2C
// (mergePathType) for the NICs with the highest bandwidth and, of these, the nearest
// (ncclTopoGetLocal). With a NIC whose path is not known, it is not known which these are.
func (s *system) setP2C(byNet [][]Path, gpu *node, toNets, toCPUs map[int64]map[*node]way) {
	toNet := func(dev int) way { return toNets[int64(dev)][gpu] }
	best, open := way{}, false
	for dev := range byNet {
		w := toNet(dev)
		open = open || w.path == Unknown
		if w.path != Unknown && (w.bw > best.bw || w.bw == best.bw && w.path < best.path) {
			best = w
		}
	}
	cpu := s.localCPU(gpu, toCPUs)
	if cpu == nil || toCPUs[cpu.id][gpu].path != c2c {
		return
	}
	for dev, of := range byNet {
		net := first(s.nodes[netNode], func(n *node) bool { return n.id == int64(dev) })
		switch w := toNet(dev); {
		case net == nil || w.path != PHB:
		case open:
			of[gpu.id] = Unknown
		case w.bw == best.bw && w.path == best.path && toCPUs[cpu.id][net].path == PHB:
			of[gpu.id] = P2C
		}
	}
}

// localCPU is ncclGetLocalCpu (src/graph/paths.cc).
func (s *system) localCPU(gpu *node, toCPUs map[int64]map[*node]way) (local *node) {
	best := way{}
	for _, cpu := range s.nodes[cpuNode] {
		if w := toCPUs[cpu.id][gpu]; w.path != Unknown && (w.bw > best.bw || w.bw == best.bw && w.betterThan(best)) {
			best, local = w, cpu
		}
	}
	return local
}
