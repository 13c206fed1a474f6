package topology

import (
	"errors"
	"slices"
)

// broadcomGeneration recognizes the PCIe switches whose chips show as two levels
// (getBcmGen): it gives 4 or 5, and 0 for any other.
func broadcomGeneration(ids uint64, level uint64) int {
	switch ids &^ 0xfff {
	case 0x1000c0101000a000:
		return 4
	case 0x1000c03010000000 | level*0x1000:
		return 5
	}
	return 0
}

// errStale is why NCCL fails after it has merged Broadcom switches.
var errStale = errors.New("merging Broadcom switches, NCCL loses links between them")

// flatten merges the switches right below a Broadcom switch of the same chip into it
// (ncclTopoFlattenBcmSwitches), and one right above it too, since it follows links
// in both directions. NCCL keeps a pointer into the array of switches. When a switch
// in front of it is removed, the array moves up and the pointer means the next
// switch; this does the same.
func (g *ncclGraph) flatten() {
	for s := 0; s < g.switches && g.failed == nil; s++ {
		top := node{switchNode, s}
		gen := broadcomGeneration(g.at(top).ids, 0)
		if gen == 0 {
			continue
		}
		for _, id := range g.cutSubSwitches(top, gen) {
			if g.failed == nil {
				g.takeIn(top, id)
			}
		}
		g.at(top).ids |= 0xffff // so that it is not merged again
		s = -1
	}
}

// cutSubSwitches removes the links to switches of the same chip and gives their
// ids.
func (g *ncclGraph) cutSubSwitches(top node, gen int) []int64 {
	var subs []int64
	n := g.at(top)
	for l := 0; l < n.live; l++ {
		to := n.links[l].to
		if to.kind == switchNode && broadcomGeneration(g.at(to).ids, 1) == gen {
			subs = append(subs, g.at(to).id)
			n.unlink(l)
			l--
		}
	}
	return subs
}

// unlink removes the link at l and moves those after it up. A copy of the last one
// stays behind them.
func (n *graphNode) unlink(l int) {
	copy(n.links[l:n.live-1], n.links[l+1:n.live])
	n.live--
}

// maxLinks is how many links a node has (src/graph/topo.h, NCCL_TOPO_MAX_LINKS).
const maxLinks = 576

// takeIn moves the links of the first switch with an id to another switch, and
// removes the first.
func (g *ncclGraph) takeIn(top node, id int64) {
	index := slices.IndexFunc(g.nodes[switchNode][:g.switches], func(n graphNode) bool { return n.id == id })
	if index < 0 {
		g.failed = errStale
		return
	}
	sub := node{switchNode, index}
	for l := 0; l < g.at(sub).live; l++ {
		link := g.at(sub).links[l]
		if link.to == top {
			continue
		}
		n := g.at(top)
		if n.live == maxLinks { // a switch is merged into itself where a stale place is its own
			g.failed = errStale
			return
		}
		if n.live == len(n.links) {
			n.links = append(n.links, link)
		}
		n.links[n.live] = link
		n.live++
		back := g.at(link.to)
		if i := slices.IndexFunc(back.links[:back.live], func(l graphLink) bool { return l.to == sub }); i >= 0 {
			back.links[i].to = top
		}
	}
	g.merged = append(g.merged, id)
	g.remove(sub)
}

// remove takes a switch out of the list (ncclTopoRemoveNode) and corrects the live
// links to the switches after it.
func (g *ncclGraph) remove(gone node) {
	for kind := range g.nodes {
		for at := range g.nodes[kind] {
			other := node{nodeKind(kind), at}
			if other == gone || kind == int(switchNode) && at >= g.switches {
				continue
			}
			n := g.at(other)
			for l := 0; l < n.live; l++ {
				for l < n.live && n.links[l].to == gone {
					n.unlink(l)
				}
				if l < n.live && n.links[l].to.kind == switchNode && n.links[l].to.at > gone.at {
					n.links[l].to.at--
				}
			}
		}
	}
	list := g.nodes[switchNode][:g.switches]
	copy(list[gone.at:], list[gone.at+1:])
	last := &list[len(list)-1]
	last.links = slices.Clone(last.links)
	g.switches--
}
