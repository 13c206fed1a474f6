package nccl

import "slices"

// Path is the type of a path between a GPU and a NIC; nearer is smaller.
type Path uint8

// Types of paths without NVLink, in NCCL's order (src/graph/topo.h).
const (
	Unknown Path = iota // not known; also NCCL's PATH_DIS
	LOC                 // within a node
	PIX                 // at most one PCIe switch
	PXB                 // several PCIe switches
	P2C                 // over the GPU's NVLink-C2C to its CPU, then PCIe (Grace)
	PHB                 // a CPU
	SYS                 // several CPUs
)

// The types of links, which are those of paths.
const (
	linkNet = LOC
	linkPCI = PIX
	linkSys = SYS
)

// linkType is the type of the link between two nodes.
func linkType(a, b ref) Path {
	switch {
	case a.kind == netNode || b.kind == netNode:
		return linkNet
	case a.kind == cpuNode && b.kind == cpuNode:
		return linkSys
	}
	return linkPCI
}

// paths are the paths of all nodes to one.
type paths [kinds][]Path

func (s *system) noPaths() (p paths) {
	for k := range p {
		p[k] = make([]Path, len(s.nodes[k]))
	}
	return p
}

// setPaths is ncclTopoSetPaths (src/graph/paths.cc): it finds the paths of all nodes to base. It
// fails at a link that has none back, which merging switches can cause.
func (s *system) setPaths(base ref, known paths) {
	known[base.kind][base.at] = LOC
	for list := []ref{base}; len(list) > 0; {
		var next []ref
		for _, at := range list {
			if at.kind == gpuNode && at != base {
				continue // no path leads through a GPU
			}
			from := known[at.kind][at.at]
			for _, l := range s.at(at).links[:s.at(at).nlinks] {
				path := linkType(at, l.to)
				switch {
				case at.kind == switchNode && l.to.kind == switchNode:
					path = PXB
				case path == linkPCI && (at.kind == cpuNode || l.to.kind == cpuNode):
					path = PHB
				}
				path = max(path, from)
				to := &known[l.to.kind][l.to.at]
				if *to != Unknown && *to <= path {
					continue
				}
				if *to == Unknown && !s.leadsTo(l.to, at) {
					s.fail(errStale)
				}
				*to = path
				next = append(next, l.to)
			}
		}
		list = next
	}
}

// computePaths is ncclTopoComputePaths (src/graph/paths.cc), as far as it is about GPUs and NICs:
// the paths of GPUs, by their ranks, to nets, by dev. NCCL looks up the paths to a node by its id
// (getPath), so that nodes of one id share them.
func (s *system) computePaths(gpus, nets int) [][]Path {
	byNet := make([][]Path, nets)
	for _, k := range [...]kind{cpuNode, gpuNode, netNode} {
		if k != netNode && len(s.merged) == 0 {
			continue // it would not fail
		}
		shared := map[int64]paths{}
		for at := range s.nodes[k] {
			id := s.nodes[k][at].id
			known, ok := shared[id]
			if !ok {
				known = s.noPaths()
				shared[id] = known
			}
			s.setPaths(ref{k, at}, known)
			if k == netNode {
				byNet[id] = known[gpuNode]
			}
		}
	}
	for dev, known := range byNet {
		byNet[dev] = make([]Path, gpus)
		for at := len(known) - 1; at >= 0; at-- {
			byNet[dev][s.nodes[gpuNode][at].id] = known[at]
		}
	}
	return byNet
}

// mergePathType is what ncclTopoComputePaths does for a GPU that shares memory with its CPU (Grace):
// it rates PHB as P2C unless a NIC is nearer to the GPU (mergePathType). NCCL also breaks ties by
// the speed of ports, which has nothing to do with places and is left out.
func mergePathType(byNet [][]Path, rank int) {
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

func (s *system) leadsTo(from, to ref) bool {
	n := s.at(from)
	return slices.ContainsFunc(n.links[:n.nlinks], func(l link) bool { return l.to == to })
}
