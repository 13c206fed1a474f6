package nccl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

// ref names a node by its place in the list of its kind. NCCL has pointers into arrays: where it
// leaves a stale one, that means the node which has taken the place, and so does a ref.
type ref struct {
	kind kind
	at   int
}

// node is struct ncclTopoNode (src/graph/topo.h).
type node struct {
	// id is the bus id of a switch or NIC, the numaid of a CPU, the rank of a GPU, and dev of
	// a net.
	id     int64
	device uint64 // of a switch: vendor, device, subsystem vendor and device
	// links lead to other nodes. Only the first nlinks count; NCCL leaves old entries after
	// them, which ncclTopoSort brings back.
	links  []link
	nlinks int
}

type link struct {
	to ref
	bw float64
}

// Bandwidths in GB/s, which order the links of a node (src/graph/topo.h). All of PCIe are taken
// as equal, and so are all between CPUs.
const (
	locBW = 5000
	netBW = 50
	pciBW = 48
	cpuBW = 20
)

// maxLinks is NCCL_TOPO_MAX_LINKS (src/graph/topo.h).
const maxLinks = 576

// system is struct ncclTopoSystem (src/graph/topo.h), without NVLink.
type system struct {
	nodes [kinds][]node
	// count is how many nodes of a kind there are. Behind them stands what NCCL leaves in memory.
	count [kinds]int
	// failed is why NCCL ends here with an internal error, nil where it does not. fault is the
	// same where the topology file is to blame.
	failed, fault error
	merged        []int64 // the ids of switches that were merged into others
}

func (s *system) at(r ref) *node { return &s.nodes[r.kind][r.at] }

// getNode is ncclTopoGetNode (src/graph/topo.cc).
func (s *system) getNode(k kind, id int64) (r ref, ok bool) {
	at := slices.IndexFunc(s.nodes[k][:s.count[k]], func(n node) bool { return n.id == id })
	return ref{k, at}, at >= 0
}

// createNode is ncclTopoCreateNode (src/graph/topo.cc).
func (s *system) createNode(k kind, id int64) ref {
	s.nodes[k] = append(s.nodes[k], node{id: id})
	s.count[k]++
	return ref{k, s.count[k] - 1}
}

// removeNode is ncclTopoRemoveNode (src/graph/topo.cc): it removes a switch with all links to
// it, and corrects those to the switches after it.
func (s *system) removeNode(gone ref) {
	for k := range s.nodes {
		for at := range s.count[k] {
			n := &s.nodes[k][at]
			if (ref{kind(k), at}) == gone {
				continue
			}
			for l := 0; l < n.nlinks; l++ {
				for l < n.nlinks && n.links[l].to == gone {
					n.removeLink(l)
				}
				if l < n.nlinks && n.links[l].to.kind == gone.kind && n.links[l].to.at > gone.at {
					n.links[l].to.at--
				}
			}
		}
	}
	list := s.nodes[gone.kind][:s.count[gone.kind]]
	copy(list[gone.at:], list[gone.at+1:])
	last := &list[len(list)-1]
	last.links = slices.Clone(last.links) // it has been copied, too
	s.count[gone.kind]--
}

// removeLink moves the links after l up. A copy of the last one stays behind them.
func (n *node) removeLink(l int) {
	copy(n.links[l:n.nlinks-1], n.links[l+1:n.nlinks])
	n.nlinks--
}

// connectNodes is ncclTopoConnectNodes (src/graph/topo.cc), both ways: the links of a node are
// ordered by bandwidth.
func (s *system) connectNodes(a, b ref, bw float64) {
	for _, ends := range [...][2]ref{{a, b}, {b, a}} {
		n := s.at(ends[0])
		if len(n.links) == maxLinks {
			s.fail(errMaxLinks)
			return
		}
		n.links = append(n.links, link{ends[1], bw})
		n.nlinks++
		for i := len(n.links) - 1; i > 0 && n.links[i-1].bw < n.links[i].bw; i-- {
			n.links[i-1], n.links[i] = n.links[i], n.links[i-1]
		}
	}
}

var (
	errMaxLinks = fmt.Errorf("NCCL accepts %d links at most from one CPU or switch", maxLinks)
	errStale    = errors.New("merging Broadcom switches, NCCL loses links between them")
)

func (s *system) fail(err error) {
	if s.failed == nil {
		s.failed = err
	}
}

// getBcmGen is getBcmGen (src/graph/topo.cc): the generation, 4 or 5, of the PCIe switches whose
// chips show as two levels, 0 for any other.
func getBcmGen(device, level uint64) int {
	switch device &^ 0xfff {
	case 0x1000c0101000a000:
		return 4
	case 0x1000c03010000000 | level*0x1000:
		return 5
	}
	return 0
}

// flattenBcmSwitches is ncclTopoFlattenBcmSwitches (src/graph/topo.cc): it merges the switches
// right below a Broadcom switch of the same chip into it, and one right above it too, since it
// follows links in both directions. Where a switch in front of it is removed, top means the
// next switch, as NCCL's pointer does.
func (s *system) flattenBcmSwitches() {
	for at := 0; at < s.count[switchNode] && s.failed == nil; at++ {
		top := ref{switchNode, at}
		gen := getBcmGen(s.at(top).device, 0)
		if gen == 0 {
			continue
		}
		var subs []int64
		n := s.at(top)
		for l := 0; l < n.nlinks; l++ {
			to := n.links[l].to
			if to.kind == switchNode && getBcmGen(s.at(to).device, 1) == gen {
				subs = append(subs, s.at(to).id)
				n.removeLink(l)
				l--
			}
		}
		for _, id := range subs {
			s.flatten(top, id)
			if s.failed != nil {
				return
			}
		}
		s.at(top).device |= 0xffff // so that it is not merged again
		at = -1
	}
}

// flatten is the inner loop of ncclTopoFlattenBcmSwitches: it moves the links of the first
// switch with an id to another switch, and removes the first.
func (s *system) flatten(top ref, id int64) {
	sub, ok := s.getNode(switchNode, id)
	if !ok {
		s.fail(errStale)
		return
	}
	for l := 0; l < s.at(sub).nlinks; l++ {
		moved := s.at(sub).links[l]
		if moved.to == top {
			continue
		}
		n := s.at(top)
		if n.nlinks == maxLinks { // a switch is merged into itself where a stale place is its own
			s.fail(errStale)
			return
		}
		if n.nlinks == len(n.links) {
			n.links = append(n.links, moved)
		}
		n.links[n.nlinks] = moved
		n.nlinks++
		back := s.at(moved.to)
		if i := slices.IndexFunc(back.links[:back.nlinks], func(l link) bool { return l.to == sub }); i >= 0 {
			back.links[i].to = top
		}
	}
	s.merged = append(s.merged, id)
	s.removeNode(sub)
}

// connectCPUs is ncclTopoConnectCpus (src/graph/topo.cc).
func (s *system) connectCPUs() {
	for i := range s.nodes[cpuNode] {
		for j := range i {
			if s.connectNodes(ref{cpuNode, i}, ref{cpuNode, j}, cpuBW); s.failed != nil {
				return
			}
		}
	}
}

// maxDepth is deeper than any tree of PCI functions; NCCL's own recursion does not end where
// stale links lead in circles.
const maxDepth = 1 << 10

// sort is ncclTopoSort (src/graph/topo.cc): it puts the link that leads up last. It looks beyond
// the links that count, so that an old one may take the place of the link up.
func (s *system) sort(at ref, up *ref, depth int) {
	n := s.at(at)
	if up != nil {
		l := slices.IndexFunc(n.links, func(l link) bool { return l.to == *up })
		if l < 0 || depth > maxDepth {
			s.fail(errStale)
			return
		}
		upLink := n.links[l]
		n.links = append(slices.Delete(n.links, l, l+1), upLink)
	}
	for l := 0; l < n.nlinks && s.failed == nil; l++ {
		to := n.links[l].to
		if (up == nil || to != *up) && linkType(at, to) == linkPCI {
			s.sort(to, &at, depth+1)
		}
	}
}

// sortSystem is ncclTopoSortSystem (src/graph/topo.cc).
func (s *system) sortSystem() {
	for at := range s.nodes[cpuNode] {
		s.sort(ref{cpuNode, at}, nil, 0)
	}
}

// addNIC is ncclTopoAddNic (src/graph/topo.cc).
func (s *system) addNIC(e *Element, nic ref) {
	for _, sub := range e.subs {
		if dev, ok := sub.get("dev"); ok && sub.name == "net" {
			s.connectNodes(s.createNode(netNode, strtol(dev)), nic, netBW)
		}
	}
}

// getIntDevice is ncclTopoGetIntDevice (src/graph/topo.cc).
func getIntDevice(e *Element) uint64 {
	return uint64(strtol(e.value("vendor"))<<48 + strtol(e.value("device"))<<32 +
		strtol(e.value("subsystem_vendor"))<<16 + strtol(e.value("subsystem_device")))
}

// isSwitch reports whether NCCL takes a class for that of a switch: all but NVSwitches, POWER's
// NVLink bridges, GPUs and network devices (kvDictPciClass; RCCL's has AMD's class 0x12 too).
func isSwitch(class string) bool {
	return !slices.ContainsFunc([]string{"0x068000", "0x068001", "0x03", "0x12", "0x02"}, func(known string) bool {
		return strings.HasPrefix(class, known)
	})
}

// addPCI is ncclTopoAddPci (src/graph/topo.cc): GPUs and NICs are leaves, and functions of a bus
// id share a NIC, which is where the first of them is.
func (s *system) addPCI(e *Element, parent ref) {
	s.need(e, "class", "busid", "link_width", "link_speed")
	busid := busIDToInt64(e.value("busid"))
	for _, sub := range e.subs {
		if sub.name != "gpu" {
			continue
		}
		rank, ok := sub.get("rank")
		if !ok {
			return
		}
		s.connectNodes(s.createNode(gpuNode, strtol(rank)), parent, pciBW)
	}
	if xmlNIC := e.sub("nic"); xmlNIC != nil {
		node, ok := s.getNode(nicNode, busid)
		if !ok {
			node = s.createNode(nicNode, busid)
			s.connectNodes(node, parent, pciBW)
		}
		s.addNIC(xmlNIC, node)
		return
	}
	if isSwitch(e.value("class")) {
		node := s.createNode(switchNode, busid)
		s.at(node).device = getIntDevice(e)
		for _, sub := range e.subs {
			if sub.name == "pci" {
				s.addPCI(sub, node)
			}
		}
		s.connectNodes(node, parent, pciBW)
	}
}

// need notes an attribute that an element lacks (xmlGetAttrStr). Sysfs gives every attribute, so
// that the file is to blame.
func (s *system) need(e *Element, keys ...string) {
	for _, key := range keys {
		if _, ok := e.get(key); ok || s.failed != nil {
			continue
		}
		what := "a cpu element"
		switch id, ok := e.get("numaid"); {
		case e.name == "pci":
			what = fmt.Sprintf("the pci element %q", e.value("busid"))
		case ok:
			what = "the cpu element of NUMA node " + id
		}
		s.fault = fmt.Errorf("%s without %s", what, key)
		s.fail(s.fault)
	}
}

// addCPU is ncclTopoAddCpu (src/graph/topo.cc). All NICs on CPUs share one, since the NUMA node
// does not fit into its id (NCCL_TOPO_ID).
func (s *system) addCPU(e *Element) {
	s.need(e, "numaid", "arch")
	if e.value("arch") == x86 {
		s.need(e, "vendor")
		switch e.value("vendor") {
		case "GenuineIntel", "CentaurHauls", "  Shanghai  ":
			s.need(e, "familyid", "modelid")
		}
	}
	at := s.createNode(cpuNode, strtol(e.value("numaid")))
	for _, sub := range e.subs {
		switch sub.name {
		case "pci":
			s.addPCI(sub, at)
		case "nic":
			node, ok := s.getNode(nicNode, 0)
			if !ok {
				node = s.createNode(nicNode, 0)
				s.connectNodes(at, node, locBW)
			}
			s.addNIC(sub, node)
		}
	}
}

// getSystemFromXML is ncclTopoGetSystemFromXml (src/graph/topo.cc).
func getSystemFromXML(top *Element) *system {
	s := &system{}
	for _, e := range top.subs {
		if e.name == "cpu" {
			s.addCPU(e)
		}
	}
	for _, step := range [...]func(){s.flattenBcmSwitches, s.connectCPUs, s.sortSystem} {
		if s.failed == nil {
			step()
		}
	}
	return s
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
		if fused == nil || m.File != nil { // without a file every process places the NICs alike
			for dev, at := range nics {
				if at.Known {
					x.fillNet(dev, at)
				}
			}
		}
		x.nodes[0].trim()
		if fused == nil {
			fused = x.nodes[0]
		} else {
			fused.fuse(x.nodes[0])
		}
	}
	return fused
}
