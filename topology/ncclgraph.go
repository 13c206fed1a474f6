package topology

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/source/pci"
)

// nodeKind is the type of a node in NCCL's graph (src/graph/topo.h).
type nodeKind uint8

const (
	cpuNode nodeKind = iota
	switchNode
	nicNode
	gpuNode
	nodeKinds = iota
)

// node names a node of the graph by its place in the list of its kind. NCCL uses
// pointers into arrays; where it leaves a stale one, it means the node that has
// taken that place.
type node struct {
	kind nodeKind
	at   int
}

// graphNode is what the graph holds of a node.
type graphNode struct {
	id  int64  // a bus id as a number
	ids uint64 // of a switch: vendor, device, subsystem vendor and device
	// links lead to other nodes. Only the first live ones are valid; NCCL leaves old
	// entries after them, which its sort brings back.
	links []graphLink
	live  int
}

type graphLink struct {
	to node
	bw float64
}

// ncclGraph is NCCL's graph of a machine (src/graph/topo.cc,
// ncclTopoGetSystemFromXml), without NVLink.
type ncclGraph struct {
	inv   *pci.Inventory
	nodes [nodeKinds][]graphNode
	// switches is how many switch nodes are live; removed ones stay after them.
	switches int
	gpus     map[int]int   // the node of each GPU
	nics     map[int][]int // the nodes of each NIC
	byID     map[int64]int // the NIC nodes
	merged   []int64       // the ids of switches that were merged into others
	// failed is why NCCL ends here with an internal error, nil where it does not. fault
	// is set where the topology file is to blame.
	failed, fault error
}

// Bandwidths in GB/s, which order the links of a node. Those of PCIe are taken
// as equal.
const (
	localBandwidth = 5000
	pcieBandwidth  = 48
	cpuBandwidth   = 20
)

func newNCCLGraph(inv *pci.Inventory, system *element) *ncclGraph {
	g := &ncclGraph{inv: inv, gpus: map[int]int{}, nics: map[int][]int{}, byID: map[int64]int{}}
	for _, e := range system.below {
		if e.tag == "cpu" {
			g.addCPU(e)
		}
	}
	g.switches = len(g.nodes[switchNode])
	g.flatten()
	if len(g.nodes[cpuNode]) > maxLinks {
		g.failed = fmt.Errorf("NCCL accepts %d NUMA nodes at most", maxLinks)
		return g
	}
	g.connectCPUs()
	for i := range g.nodes[cpuNode] {
		g.sort(node{cpuNode, i}, nil, 0)
	}
	g.searchAll()
	return g
}

func (g *ncclGraph) at(n node) *graphNode { return &g.nodes[n.kind][n.at] }

func (g *ncclGraph) create(kind nodeKind, id int64) node {
	g.nodes[kind] = append(g.nodes[kind], graphNode{id: id})
	return node{kind, len(g.nodes[kind]) - 1}
}

// addCPU adds a cpu element with all below it (ncclTopoAddCpu).
func (g *ncclGraph) addCPU(e *element) {
	if e.incomplete != "" {
		g.blame(errors.New("a cpu element without " + e.incomplete))
	}
	if e.needs != "" && !e.filled {
		g.blame(fmt.Errorf("the cpu element of NUMA node %s without %s", e.key, e.needs))
	}
	cpu := g.create(cpuNode, 0)
	for _, c := range e.below {
		if c.tag == "pci" {
			g.addPCI(c, cpu)
		}
	}
	g.addNIC(e, 0, cpu, localBandwidth)
}

// addNIC adds the NICs of an element. Elements of one bus id share a node, which is
// where the first of them is; all NICs on CPUs share one, too.
func (g *ncclGraph) addNIC(e *element, id int64, parent node, bw float64) {
	if len(e.nics) == 0 {
		return
	}
	at, known := g.byID[id]
	if !known {
		n := g.create(nicNode, id)
		g.connect(n, parent, bw)
		g.connect(parent, n, bw)
		at = n.at
		g.byID[id] = at
	}
	for _, i := range e.nics {
		g.nics[i] = append(g.nics[i], at)
	}
}

// addPCI adds a pci element (ncclTopoAddPci): GPUs and NICs are leaves, and
// everything else whose class is not that of a GPU, NIC, NVSwitch or CPU is a
// switch.
func (g *ncclGraph) addPCI(e *element, parent node) {
	id := busNumber(e.key)
	for _, i := range e.gpus {
		n := g.create(gpuNode, id)
		g.gpus[i] = n.at
		g.connect(n, parent, pcieBandwidth)
		g.connect(parent, n, pcieBandwidth)
	}
	class, ids := g.describe(e)
	switch {
	case class == "" && len(e.gpus)+len(e.nics) == 0:
		g.blame(fmt.Errorf("the pci element %q without class", e.key))
	case e.needs != "" && !e.filled:
		g.blame(fmt.Errorf("the pci element %q without %s", e.key, e.needs))
	}
	switch {
	case len(e.nics) > 0:
		g.addNIC(e, id, parent, pcieBandwidth)
	case isSwitch(class) && (class != "" || len(e.gpus) == 0): // NCCL gives a GPU its class
		n := g.create(switchNode, id)
		g.at(n).ids = ids
		for _, c := range e.below {
			g.addPCI(c, n)
		}
		g.connect(n, parent, pcieBandwidth)
		g.connect(parent, n, pcieBandwidth)
	}
}

// describe returns class and ids of a pci element: the class is that of sysfs
// where NCCL has read it, the ids are those of the file where it has them.
func (g *ncclGraph) describe(e *element) (class string, ids uint64) {
	class, ids = e.class, e.ids
	if f := functionOf(g.inv, e); f != nil && e.filled {
		class = classText(f)
		if ids == 0 {
			ids = uint64(f.Vendor)<<48 | uint64(f.Device)<<32 | uint64(f.SubVendor)<<16 | uint64(f.SubDevice)
		}
	}
	return class, ids
}

// functionOf returns the function of a pci element, whose class is known; nil for none.
func functionOf(inv *pci.Inventory, e *element) *pci.Function {
	if e.tag != "pci" {
		return nil
	}
	a, err := pci.ParseAddress(e.key)
	if err != nil || a.Domain > 0xffff {
		return nil
	}
	if f := inv.Find(a); f != nil && f.Class != 0 {
		return f
	}
	return nil
}

// classText is a function's class as sysfs shows it.
func classText(f *pci.Function) string {
	return "0x" + strconv.FormatUint(uint64(f.Class)|1<<24, 16)[1:]
}

// isSwitch reports whether NCCL treats functions of a class as switches: all but
// NVSwitches, POWER NVLink bridges, GPUs and network devices (kvDictPciClass).
func isSwitch(class string) bool {
	for _, prefix := range [...]string{"0x068000", "0x068001", "0x03", "0x02"} {
		if strings.HasPrefix(class, prefix) {
			return false
		}
	}
	return true
}

// blame notes what the topology file lacks.
func (g *ncclGraph) blame(what error) {
	if g.fault == nil {
		g.failed, g.fault = what, what
	}
}

// busNumber reads a bus id as a number (src/misc/utils.cc, busIdToInt64).
func busNumber(key string) int64 {
	digits := strings.ReplaceAll(strings.ReplaceAll(key, ":", ""), ".", "")
	digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789abcdefABCDEF"))]
	n, err := strconv.ParseInt(digits[:min(len(digits), 16)], 16, 64)
	if err != nil {
		return 0
	}
	return n
}

// connect adds a link, the links of a node being ordered by bandwidth
// (ncclTopoConnectNodes).
func (g *ncclGraph) connect(from, to node, bw float64) {
	n := g.at(from)
	n.links = append(n.links, graphLink{to, bw})
	n.live++
	for i := len(n.links) - 1; i > 0 && n.links[i-1].bw < n.links[i].bw; i-- {
		n.links[i-1], n.links[i] = n.links[i], n.links[i-1]
	}
}

func (g *ncclGraph) connectCPUs() {
	for i := range g.nodes[cpuNode] {
		for j := range g.nodes[cpuNode] {
			if i != j {
				g.connect(node{cpuNode, i}, node{cpuNode, j}, cpuBandwidth)
			}
		}
	}
}

// maxGraphDepth is deeper than any tree of PCI functions; NCCL's own recursion
// does not end where stale links lead in circles.
const maxGraphDepth = 1 << 10

// sort puts the link that leads up last (ncclTopoSort). It looks beyond the live
// links too, so that an old entry may take the place of the link up.
func (g *ncclGraph) sort(at node, up *node, depth int) {
	n := g.at(at)
	if up != nil {
		l := slices.IndexFunc(n.links, func(l graphLink) bool { return l.to == *up })
		if l < 0 || depth > maxGraphDepth {
			g.failed = errStale
			return
		}
		link := n.links[l]
		n.links = append(slices.Delete(n.links, l, l+1), link)
	}
	for l := 0; l < n.live && g.failed == nil; l++ {
		to := n.links[l].to
		if (up == nil || to != *up) && (at.kind != cpuNode || to.kind != cpuNode) {
			g.sort(to, &at, depth+1)
		}
	}
}

// hop is the type of the path from one node to the next (src/graph/paths.cc,
// ncclTopoSetPaths).
func hop(from, to node) Level {
	switch {
	case from.kind == cpuNode && to.kind == cpuNode:
		return SYS
	case from.kind == cpuNode || to.kind == cpuNode:
		return PHB
	case from.kind == switchNode && to.kind == switchNode:
		return PXB
	}
	return PIX
}

// searchAll searches from every leaf, as NCCL does. It fails at a link that has none
// back, which merging switches can cause.
func (g *ncclGraph) searchAll() {
	if len(g.merged) == 0 {
		return
	}
	for _, kind := range [...]nodeKind{cpuNode, gpuNode, nicNode} {
		for at := range g.nodes[kind] {
			g.search(node{kind, at})
		}
	}
}

// search returns the best path from a NIC's node, or another leaf's, to each GPU's
// node, Unknown for none (ncclTopoSetPaths).
func (g *ncclGraph) search(base node) []Level {
	var best [nodeKinds][]Level
	for kind := range best {
		best[kind] = make([]Level, len(g.nodes[kind]))
	}
	const start = PIX // the smallest level
	best[base.kind][base.at] = start
	for list := []node{base}; len(list) > 0; {
		var next []node
		for _, from := range list {
			if from.kind == gpuNode && from != base {
				continue // no path leads through a GPU
			}
			n := g.at(from)
			for _, link := range n.links[:n.live] {
				if hop(from, link.to) == SYS && best[from.kind][from.at] == SYS {
					continue // the CPU before has reached all others
				}
				level := max(best[from.kind][from.at], hop(from, link.to))
				known := &best[link.to.kind][link.to.at]
				if *known != Unknown && *known <= level {
					continue
				}
				if *known == Unknown && !g.leadsTo(link.to, from) {
					g.failed = errStale
				}
				*known = level
				next = append(next, link.to)
			}
		}
		list = next
	}
	return best[gpuNode]
}

func (g *ncclGraph) leadsTo(from, to node) bool {
	n := g.at(from)
	return slices.ContainsFunc(n.links[:n.live], func(l graphLink) bool { return l.to == to })
}
