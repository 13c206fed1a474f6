package nccl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdr-features/source/pci"
)

// kind is the type of a node (src/graph/topo.h). A GPU stands for its DEV node too.
type kind uint8

const (
	cpuNode kind = iota
	switchNode
	nicNode
	netNode
	gpuNode
	kinds = iota
)

// node is struct ncclTopoNode (src/graph/topo.h).
type node struct {
	kind kind
	// id is the bus id of a switch or NIC, numaid of a CPU, rank of a GPU, dev of a net.
	id      int64
	device  int64 // of a switch: vendor, device, subsystem vendor and device
	at      int   // its place in ways
	unknown bool  // a CPU that stands for functions of which it is not known
	cpu     *node // of a GPU: the one above it
	cpuBw   float32
	links   []link
	stale   int // links that NCCL has deleted, and that are still in its memory behind the others
}

// linkKind is the type of a link (src/graph/topo.h).
type linkKind uint8

const (
	linkLoc linkKind = iota // also between partitions of a switch
	linkNet
	linkC2C
	linkPCI
	linkSys
)

// link is struct ncclTopoLink (src/graph/topo.h), one way.
type link struct {
	kind linkKind
	bw   float32 // GB/s
	to   *node
}

// Bandwidths in GB/s (src/graph/topo.h).
const (
	locBw = 5000
	// c2cBw is that of Grace: ten links of 44712 MB/s each, which NVML tells (ncclTopoAddC2c).
	c2cBw = 447.12
)

// system is struct ncclTopoSystem (src/graph/topo.h), without NVLink.
type system struct {
	nodes  [kinds][]*node
	nics   map[int64]*node // the first of each id
	count  int             // of all nodes
	merged []int64         // the ids of switches that were merged into others
	oneWay bool            // there may be links in one direction alone
	// failed is why NCCL ends here, nil where it does not, and fault if the file is to blame.
	failed, fault error
}

// maxLinks is NCCL_TOPO_MAX_LINKS (src/graph/topo.h).
const maxLinks = 576

// createNode is ncclTopoCreateNode (src/graph/topo.cc).
func (s *system) createNode(k kind, id int64) *node {
	n := &node{kind: k, id: id}
	s.nodes[k] = append(s.nodes[k], n)
	return n
}

// connect is ncclTopoConnectNodes (src/graph/topo.cc). Links are in the order of their bandwidth.
func (s *system) connect(a, b *node, kind linkKind, bw float32) {
	at := slices.IndexFunc(a.links, func(l link) bool { return l.to == b && l.kind == kind })
	switch {
	case at >= 0:
		bw += a.links[at].bw
		a.links = slices.Delete(a.links, at, at+1)
	case len(a.links) == maxLinks && s.failed == nil:
		s.failed = fmt.Errorf("NCCL accepts %d links at most from one CPU or switch", maxLinks)
	case at < 0:
		at = len(a.links)
	}
	for at = max(at, 0); at > 0 && a.links[at-1].bw < bw; {
		at--
	}
	a.links = slices.Insert(a.links, at, link{kind, bw, b})
}

// connectNodes connects two nodes both ways.
func (s *system) connectNodes(a, b *node, kind linkKind, bw float32) {
	s.connect(a, b, kind, bw)
	s.connect(b, a, kind, bw)
}

// getBcmGen is getBcmGen (src/graph/topo.cc): the generation, 4 or 5, of the PCIe switches whose
// chips show as two levels, 0 for any other.
func getBcmGen(device, level int64) int {
	switch device &^ 0xfff {
	case 0x1000c0101000a000:
		return 4
	case 0x1000c03010000000 | level*0x1000:
		return 5
	}
	return 0
}

// flattenBcmSwitches is ncclTopoFlattenBcmSwitches (src/graph/topo.cc): it merges into a
// Broadcom switch those of the same chip right below it, and one right above it too, since it
// follows links in both directions.
func (s *system) flattenBcmSwitches() {
	for at := 0; at < len(s.nodes[switchNode]); at++ {
		top := s.nodes[switchNode][at]
		gen := getBcmGen(top.device, 0)
		if gen == 0 {
			continue
		}
		var subs []int64
		top.deleteLinks(func(l link) bool {
			is := l.to.kind == switchNode && getBcmGen(l.to.device, 1) == gen
			if is {
				subs = append(subs, l.to.id)
			}
			return is
		})
		for _, id := range subs {
			if s.merge(at, id); s.failed != nil {
				return
			}
		}
		if at < len(s.nodes[switchNode]) {
			s.nodes[switchNode][at].device |= 0xffff // so that it is not merged again
		}
		at = -1
	}
	for _, n := range slices.Concat(s.nodes[:]...) {
		lost := func(l link) bool { return l.kind == linkPCI && !slices.ContainsFunc(l.to.links, leadsTo(n)) }
		if s.failed == nil && slices.ContainsFunc(n.links, lost) {
			s.failed = ErrStale
		}
	}
}

// deleteLinks deletes links as NCCL does: it moves the others up, and what stood at the end stays
// behind them.
func (n *node) deleteLinks(unwanted func(link) bool) {
	had := len(n.links)
	n.links = slices.DeleteFunc(n.links, unwanted)
	n.stale += had - len(n.links)
}

// leadsTo reports whether a link leads to a node.
func leadsTo(n *node) func(link) bool { return func(l link) bool { return l.to == n } }

// ErrStale says that NCCL does not start, or does what depends on what is in its memory.
var ErrStale = errors.New("merging Broadcom switches, NCCL loses links between them")

// merge moves the links of the first switch with an id to the one at a place, and removes it. NCCL
// has pointers into an array: if the first stood in front of that place, the next switch has it
// from then on.
func (s *system) merge(at int, id int64) {
	list := s.nodes[switchNode]
	i := slices.IndexFunc(list, func(n *node) bool { return n.id == id })
	if i < 0 || i == at || at >= len(list) {
		s.failed = ErrStale
		return
	}
	top, sub := list[at], list[i]
	for _, l := range sub.links {
		if l.to == top {
			continue
		}
		top.links = append(top.links, l)
		top.stale = max(top.stale-1, 0)
		if back := slices.IndexFunc(l.to.links, leadsTo(sub)); back >= 0 {
			l.to.links[back].to = top
		}
	}
	for _, n := range slices.Concat(s.nodes[:]...) {
		n.deleteLinks(leadsTo(sub))
	}
	s.nodes[switchNode] = slices.Delete(list, i, i+1)
	s.merged = append(s.merged, id)
}

// connectCPUs is ncclTopoConnectCpus (src/graph/topo.cc).
func (s *system) connectCPUs() {
	for _, cpu := range s.nodes[cpuNode] {
		for _, other := range s.nodes[cpuNode] {
			if cpu != other {
				s.connect(cpu, other, linkSys, cpu.cpuBw)
			}
		}
	}
}

// addNIC is ncclTopoAddNic (src/graph/topo.cc): it adds the nets of a nic element. Those of one id
// share a node, which is where the first of them is.
func (s *system) addNIC(e *Element, id int64, parent *node, bw float32) {
	node := s.nics[id]
	if node == nil {
		node = s.createNode(nicNode, id)
		s.nics[id] = node
		s.connectNodes(node, parent, linkPCI, bw)
	}
	for _, net := range e.subs {
		mbps := strtol(net.attr("speed"))
		if mbps <= 0 {
			mbps = 10000
		}
		s.connectNodes(node, s.createNode(netNode, strtol(net.attr("dev"))), linkNet, float32(float64(mbps)/8000))
	}
}

var ids = [...]string{"vendor", "device", "subsystem_vendor", "subsystem_device"}

// getIntDevice is ncclTopoGetIntDevice (src/graph/topo.cc).
func getIntDevice(e *Element) (device int64) {
	for i, id := range ids {
		device += strtol(e.attr(id)) << (48 - 16*i)
	}
	return device
}

// isSwitch reports whether NCCL takes a class for that of a switch: all but NVSwitches, POWER's
// NVLink bridges, GPUs and network devices (kvDictPciClass; RCCL's has AMD's class 0x12 too).
func isSwitch(class string) bool {
	return !slices.ContainsFunc([]string{"0x068000", "0x068001", "0x03", "0x12", "0x02"}, func(known string) bool {
		return strings.HasPrefix(class, known)
	})
}

// addPCI is ncclTopoAddPci (src/graph/topo.cc): GPUs and NICs are leaves.
func (s *system) addPCI(e *Element, parent, cpu *node) {
	s.need(e, "class", "busid", "link_width", "link_speed")
	busid, bw := busIDToInt64(e.attr("busid")), linkBw(e)
	if gpu := e.sub("gpu"); gpu != nil {
		if gpu.attr("rank") == "" {
			return
		}
		node := s.createNode(gpuNode, strtol(gpu.attr("rank")))
		node.cpu = cpu
		s.connectNodes(node, parent, linkPCI, bw)
	}
	if nic := e.sub("nic"); nic != nil {
		s.addNIC(nic, busid, parent, bw)
	} else if isSwitch(e.attr("class")) {
		node := s.createNode(switchNode, busid)
		node.device = getIntDevice(e)
		for _, sub := range e.subs {
			if sub.name == "pci" {
				s.addPCI(sub, node, cpu)
			}
		}
		s.connectNodes(node, parent, linkPCI, bw)
	}
}

// need notes an attribute that an element lacks (src/graph/xml.h, xmlGetAttrStr). Sysfs gives every
// attribute, so that the file is to blame.
func (s *system) need(e *Element, keys ...string) {
	for _, key := range keys {
		if _, ok := e.lookup(key); !ok && s.failed == nil {
			s.fault = fmt.Errorf("the %s element %q without %s", e.name, e.attr("busid")+e.attr("numaid"), key)
			s.failed = s.fault
		}
	}
}

// addCPU is ncclTopoAddCpu (src/graph/topo.cc). All NICs on CPUs share one, since the NUMA node
// does not fit into its id (NCCL_TOPO_ID).
func (s *system) addCPU(e *Element) {
	s.need(e, "numaid", "arch")
	if e.attr("arch") == x86 {
		s.need(e, "vendor")
		switch e.attr("vendor") {
		case "GenuineIntel", "CentaurHauls", "  Shanghai  ":
			s.need(e, "familyid", "modelid")
		}
	}
	cpu := s.createNode(cpuNode, strtol(e.attr("numaid")))
	cpu.unknown, cpu.cpuBw = e.attr("numaid") == unknownCPU, getInterCPUBw(e)
	for _, sub := range e.subs {
		if sub.name == "pci" {
			s.addPCI(sub, cpu, cpu)
		} else {
			s.addNIC(sub, 0, cpu, locBw)
		}
	}
}

// addPCILinks is ncclTopoAddPciLinks (src/graph/topo.cc): the links between partitions of switches,
// in the direction that each names. Those to what is no switch here are left out.
func (s *system) addPCILinks(e *Element) {
	for _, sub := range e.subs {
		if sub.name != "pcilink" {
			s.addPCILinks(sub)
			continue
		}
		find := func(busid string) *node {
			id := busIDToInt64(busid)
			return first(s.nodes[switchNode], func(n *node) bool { return n.id == id })
		}
		from, to := find(e.attr("busid")), find(sub.attr("target"))
		switch {
		case s.failed != nil:
		case from == nil:
			s.failed = fmt.Errorf("NCCL finds no switch %q for its links to others", e.attr("busid"))
		case to != nil:
			s.connect(from, to, linkLoc, locBw)
			s.oneWay = true
		}
	}
}

// getSystemFromXML is ncclTopoGetSystemFromXml (src/graph/topo.cc), for some GPUs by rank.
func getSystemFromXML(top *Element, gpus []*pci.Function) *system {
	s := &system{nics: map[int64]*node{}}
	for _, e := range top.subs {
		s.addCPU(e)
	}
	for _, gpu := range s.nodes[gpuNode] {
		if s.failed == nil && gpu.id >= 0 && gpu.id < int64(len(gpus)) && gpus[gpu.id].Coherent() {
			s.connectNodes(gpu, gpu.cpu, linkC2C, c2cBw) // ncclTopoAddC2c
		}
	}
	if s.failed == nil {
		s.addPCILinks(top)
	}
	if s.failed == nil {
		s.flattenBcmSwitches()
		s.connectCPUs()
		for _, cpu := range s.nodes[cpuNode] {
			s.sort(cpu, nil, 0)
		}
	}
	return s
}

// sort is ncclTopoSort (src/graph/topo.cc): the link up is the last. Without one, NCCL reads what
// is behind the links; with stale ones behind them, it puts the link up behind these, and finds
// no path.
func (s *system) sort(n, up *node, depth int) {
	at := slices.IndexFunc(n.links, leadsTo(up))
	switch {
	case s.failed != nil:
		return
	case up != nil && (at < 0 || n.stale > 0), depth > maxNested:
		s.failed = ErrStale
		return
	case up != nil:
		l := n.links[at]
		n.links = append(slices.Delete(n.links, at, at+1), l)
	}
	for i := 0; i < len(n.links); i++ {
		if l := n.links[i]; l.kind == linkPCI && l.to != up {
			s.sort(l.to, n, depth+1)
		}
	}
}

// getXML is the first half of ncclTopoGetSystem (src/graph/topo.cc): the elements that NCCL's
// processes, one for each GPU, come to together. Without a GPU it has the NICs alone.
func (m *Machine) getXML(nics []Device) *Element {
	var fused *Element
	for rank := range max(len(m.GPUs), 1) {
		x := newTree(m)
		if len(m.GPUs) > 0 {
			x.fillGPU(rank, m.GPUs[rank])
		}
		for dev, at := range nics {
			if at.Known && (fused == nil || m.File != nil) { // without a file every process places the NICs alike
				x.fillNet(dev, at)
			}
		}
		x.system.trim()
		if fused == nil {
			fused = x.system
		} else {
			fused.fuse(x.system)
		}
	}
	return fused
}
