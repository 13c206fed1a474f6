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

// ways are the paths of all nodes to one, by node.at; Unknown where there is none.
type ways []way

func (w ways) of(n *node) way { return w[n.at] }

// over continues the path of a node over one of its links.
func (w way) over(from *node, l link) way {
	return way{max(w.path, hop(from, l)), min(w.bw, l.bw), w.hops + 1}
}

// number gives every node its place in ways, once all nodes are there.
func (s *system) number() {
	s.count = 0
	for _, list := range s.nodes {
		for _, n := range list {
			n.at = s.count
			s.count++
		}
	}
}

// setPaths is ncclTopoSetPaths (src/graph/paths.cc): it finds the paths of all nodes to base.
func (s *system) setPaths(base *node, to ways) {
	to[base.at] = way{LOC, locBw, 0}
	s.spread(base, base, to, make([]*link, s.count))
}

// spread continues the path of one node to base, which is known, to all nodes but leaves. NCCL ends
// where the first path to a node has no link back.
func (s *system) spread(base, from *node, to ways, leaves []*link) {
	queued := make([]bool, s.count) // is in next
	for list, next := []*node{from}, []*node(nil); len(list) > 0; list, next = next, nil {
		for _, at := range list {
			queued[at.at] = false
		}
		for _, at := range list {
			if at != base && (at.kind == gpuNode || at.unknown) {
				continue // no path leads through a GPU, and none that is known through an unknown CPU
			}
			for _, l := range at.links {
				known, found := to.of(l.to), to.of(at).over(at, l)
				if leaves[l.to.at] != nil || !found.betterThan(known) {
					continue
				}
				back := func(o link) bool { return o.to == at && o.kind == l.kind }
				if known.path == Unknown && s.failed == nil && !slices.ContainsFunc(l.to.links, back) {
					s.failed = fmt.Errorf("NCCL finds no link back to the switch %012x", at.id)
				}
				if to[l.to.at] = found; !queued[l.to.at] {
					queued[l.to.at], next = true, append(next, l.to)
				}
			}
		}
	}
}

// leaves are the nodes that no path from others to a GPU leads through, each with the one link that
// joins it to the rest: NICs, and switches with nothing else below them. There are none where links
// may be in one direction, in which case NCCL may end at any of them.
func (s *system) leaves() []*link {
	up, left := make([]*link, s.count), make([]int, s.count)
	if s.oneWay {
		return up
	}
	var last []*node
	for _, k := range [...]kind{switchNode, nicNode, netNode} {
		for _, n := range s.nodes[k] {
			if left[n.at] = len(n.links); left[n.at] == 1 {
				last = append(last, n)
			}
		}
	}
	for ; len(last) > 0; last = last[1:] {
		n := last[0]
		at := slices.IndexFunc(n.links, func(l link) bool { return up[l.to.at] == nil })
		if at < 0 {
			continue // all that is joined to it is below it
		}
		up[n.at] = &n.links[at]
		to := n.links[at].to
		if left[to.at]--; left[to.at] == 1 {
			last = append(last, to)
		}
	}
	return up
}

// toNets are the paths of GPUs, in their order, to nets, by id: NCCL looks them up by it (getPath),
// so that nets of one id share them. Paths to nets that are joined to the rest alike, at one node
// and by equal paths, are the same from there on, and are found once.
func (s *system) toNets() map[int64][]way {
	type joined struct {
		at *node
		by way
	}
	nets, leaves := s.nodes[netNode], s.leaves()
	byID, count := make(map[int64][]way, len(nets)), make(map[int64]int, len(nets))
	for _, n := range nets {
		count[n.id]++
	}
	alike, whole := map[joined][]way{}, map[int64]ways{}
	for _, net := range nets {
		if count[net.id] > 1 {
			if whole[net.id] == nil {
				whole[net.id] = make(ways, s.count)
			}
			s.setPaths(net, whole[net.id])
			byID[net.id] = s.ofGPUs(whole[net.id])
			continue
		}
		from := joined{net, way{LOC, locBw, 0}}
		for up := leaves[net.at]; up != nil; up = leaves[up.to.at] {
			from = joined{up.to, from.by.over(from.at, *up)}
		}
		if alike[from] == nil {
			to := make(ways, s.count)
			to[from.at.at] = from.by
			s.spread(net, from.at, to, leaves)
			alike[from] = s.ofGPUs(to)
		}
		byID[net.id] = alike[from]
	}
	return byID
}

// ofGPUs are the paths of the GPUs alone.
func (s *system) ofGPUs(to ways) []way {
	list := make([]way, len(s.nodes[gpuNode]))
	for i, gpu := range s.nodes[gpuNode] {
		list[i] = to.of(gpu)
	}
	return list
}

// toAll are the paths of all nodes to those of a kind, by id, as in toNets.
func (s *system) toAll(k kind) map[int64]ways {
	shared := map[int64]ways{}
	for _, n := range s.nodes[k] {
		if shared[n.id] == nil {
			shared[n.id] = make(ways, s.count)
		}
		s.setPaths(n, shared[n.id])
	}
	return shared
}

// computePaths is ncclTopoComputePaths (src/graph/paths.cc), as far as it is about GPUs and NICs:
// the paths of nets, by dev, to GPUs, by rank.
func (s *system) computePaths(nets int, gpus []*pci.Function) [][]Path {
	s.number()
	toNets := s.toNets()
	var toCPUs map[int64]ways
	if s.oneWay || slices.ContainsFunc(gpus, (*pci.Function).Coherent) {
		toCPUs = s.toAll(cpuNode)
	}
	if s.oneWay {
		s.toAll(gpuNode) // NCCL may end here
	}
	byNet, all := make([][]Path, nets), make([]Path, nets*len(gpus))
	for dev := range byNet {
		byNet[dev], all = all[:len(gpus):len(gpus)], all[len(gpus):]
	}
	for i, gpu := range s.nodes[gpuNode] {
		if gpu.id < 0 || gpu.id >= int64(len(gpus)) {
			continue
		}
		to := make([]way, nets)
		for dev := range to {
			if found := toNets[int64(dev)]; found != nil {
				to[dev] = found[i]
			}
			byNet[dev][gpu.id] = to[dev].path
		}
		if gpus[gpu.id].Coherent() {
			s.setP2C(byNet, gpu, to, toCPUs)
		}
	}
	return byNet
}

// setP2C is what ncclTopoComputePaths does for a GPU that shares memory with its CPU: PHB is P2C
// (mergePathType) for the NICs with the highest bandwidth and, of these, the nearest
// (ncclTopoGetLocal). With a NIC whose path is not known, it is not known which these are.
func (s *system) setP2C(byNet [][]Path, gpu *node, toNets []way, toCPUs map[int64]ways) {
	best, open := way{}, false
	for _, w := range toNets {
		open = open || w.path == Unknown
		if w.path != Unknown && (w.bw > best.bw || w.bw == best.bw && w.path < best.path) {
			best = w
		}
	}
	cpu := s.localCPU(gpu, toCPUs)
	if cpu == nil || toCPUs[cpu.id].of(gpu).path != c2c {
		return
	}
	seen := make([]bool, len(byNet))
	for _, net := range s.nodes[netNode] {
		if net.id < 0 || net.id >= int64(len(byNet)) || seen[net.id] {
			continue
		}
		seen[net.id] = true
		switch w := toNets[net.id]; {
		case w.path != PHB:
		case open:
			byNet[net.id][gpu.id] = Unknown
		case w.bw == best.bw && w.path == best.path && toCPUs[cpu.id].of(net).path == PHB:
			byNet[net.id][gpu.id] = P2C
		}
	}
}

// localCPU is ncclGetLocalCpu (src/graph/paths.cc).
func (s *system) localCPU(gpu *node, toCPUs map[int64]ways) (local *node) {
	best := way{}
	for _, cpu := range s.nodes[cpuNode] {
		if w := toCPUs[cpu.id].of(gpu); w.path != Unknown && (w.bw > best.bw || w.bw == best.bw && w.betterThan(best)) {
			best, local = w, cpu
		}
	}
	return local
}
