package nccl

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	// id is the bus id of a switch or NIC, numaid of a CPU, rank of a GPU, dev of a net.
	id      int64
	device  int64 // of a switch: vendor, device, subsystem vendor and device
	unknown bool  // a CPU that stands for functions of which it is not known
	// links lead to other nodes. Only the first nlinks count; NCCL leaves old entries after
	// them, which ncclTopoSort brings back. NCCL orders them by bandwidth, which changes no path.
	links  []ref
	nlinks int
}

// system is struct ncclTopoSystem (src/graph/topo.h), without NVLink.
type system struct {
	nodes [kinds][]node
	// count is how many nodes of a kind there are. Behind them stands what NCCL leaves in memory.
	count  [kinds]int
	merged []int64 // the ids of switches that were merged into others
	// failed is why NCCL ends here with an internal error, nil where it does not. fault is the
	// same where the topology file is to blame.
	failed, fault error
}

// maxLinks is NCCL_TOPO_MAX_LINKS (src/graph/topo.h).
const maxLinks = 576

var (
	errMaxLinks = fmt.Errorf("NCCL accepts %d links at most from one CPU or switch", maxLinks)
	errStale    = errors.New("merging Broadcom switches, NCCL loses links between them")
	// ErrUndefined says that what NCCL does depends on what is in its memory.
	ErrUndefined = errors.New("merging Broadcom switches, NCCL loses links between them and reads on beyond them")
)

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
			if (ref{kind(k), at}) == gone {
				continue
			}
			n := &s.nodes[k][at]
			for l := 0; l < n.nlinks; l++ {
				for l < n.nlinks && n.links[l] == gone {
					n.removeLink(l)
				}
				if l < n.nlinks && n.links[l].kind == gone.kind && n.links[l].at > gone.at {
					n.links[l].at--
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

// connectNodes is ncclTopoConnectNodes (src/graph/topo.cc), both ways.
func (s *system) connectNodes(a, b ref) {
	for _, ends := range [...][2]ref{{a, b}, {b, a}} {
		n := s.at(ends[0])
		if len(n.links) == maxLinks {
			s.fail(errMaxLinks)
			return
		}
		n.links = append(n.links, ends[1])
		n.nlinks++
	}
}

func (s *system) fail(err error) {
	if s.failed == nil {
		s.failed = err
	}
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

// flattenBcmSwitches is ncclTopoFlattenBcmSwitches (src/graph/topo.cc): it merges the switches
// right below a Broadcom switch of the same chip into it, and one right above it too, since it
// follows links in both directions.
func (s *system) flattenBcmSwitches() {
	for at := 0; at < s.count[switchNode]; at++ {
		top := ref{switchNode, at}
		gen := getBcmGen(s.at(top).device, 0)
		if gen == 0 {
			continue
		}
		var subs []int64
		n := s.at(top)
		for l := 0; l < n.nlinks; l++ {
			if sub := n.links[l]; sub.kind == switchNode && getBcmGen(s.at(sub).device, 1) == gen {
				subs = append(subs, s.at(sub).id)
				n.removeLink(l)
				l--
			}
		}
		for _, id := range subs {
			if s.merge(top, id); s.failed != nil {
				return
			}
		}
		s.at(top).device |= 0xffff // so that it is not merged again
		at = -1
	}
}

// merge is the second loop of ncclTopoFlattenBcmSwitches: it moves the links of the first switch
// with an id to top, and removes the first. If it stood in front of top, top is the next switch
// from then on.
func (s *system) merge(top ref, id int64) {
	sub, ok := s.getNode(switchNode, id)
	if !ok {
		s.fail(errStale)
		return
	}
	for l := 0; l < s.at(sub).nlinks; l++ {
		moved, n := s.at(sub).links[l], s.at(top)
		switch {
		case moved == top:
			continue
		case n.nlinks == maxLinks: // a switch is merged into itself where a stale place is its own
			s.fail(errStale)
			return
		case n.nlinks == len(n.links):
			n.links = append(n.links, moved)
		}
		n.links[n.nlinks] = moved
		n.nlinks++
		back := s.at(moved)
		if i := slices.Index(back.links[:back.nlinks], sub); i >= 0 {
			back.links[i] = top
		}
	}
	s.merged = append(s.merged, id)
	s.removeNode(sub)
}

// connectCPUs is ncclTopoConnectCpus (src/graph/topo.cc).
func (s *system) connectCPUs() {
	for i := range s.nodes[cpuNode] {
		for j := 0; j < i && s.failed == nil; j++ {
			s.connectNodes(ref{cpuNode, i}, ref{cpuNode, j})
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
		l := slices.Index(n.links, *up)
		switch {
		case l < 0:
			s.fail(ErrUndefined)
			return
		case depth > maxDepth:
			s.fail(errStale)
			return
		}
		n.links = append(slices.Delete(n.links, l, l+1), *up)
	}
	for l := 0; l < n.nlinks && s.failed == nil; l++ {
		to := n.links[l]
		if link := hop(at, to); link != LOC && link != SYS && (up == nil || to != *up) { // of PCI
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

// addNIC is ncclTopoAddNic (src/graph/topo.cc): it adds the nets of a nic element. Those of one id
// share a node, which is where the first of them is.
func (s *system) addNIC(e *Element, id int64, parent ref) {
	node, ok := s.getNode(nicNode, id)
	if !ok {
		node = s.createNode(nicNode, id)
		s.connectNodes(node, parent)
	}
	for _, net := range e.subs {
		s.connectNodes(s.createNode(netNode, strtol(net.attrs["dev"])), node)
	}
}

var ids = [...]string{"vendor", "device", "subsystem_vendor", "subsystem_device"}

// getIntDevice is ncclTopoGetIntDevice (src/graph/topo.cc).
func getIntDevice(e *Element) (device int64) {
	for i, id := range ids {
		device += strtol(e.attrs[id]) << (48 - 16*i)
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
func (s *system) addPCI(e *Element, parent ref) {
	s.need(e, "class", "busid", "link_width", "link_speed")
	busid := busIDToInt64(e.attrs["busid"])
	if gpu := e.sub("gpu"); gpu != nil {
		if gpu.attrs["rank"] == "" {
			return
		}
		s.connectNodes(s.createNode(gpuNode, strtol(gpu.attrs["rank"])), parent)
	}
	if nic := e.sub("nic"); nic != nil {
		s.addNIC(nic, busid, parent)
	} else if isSwitch(e.attrs["class"]) {
		node := s.createNode(switchNode, busid)
		s.at(node).device = getIntDevice(e)
		for _, sub := range e.subs {
			if sub.name == "pci" {
				s.addPCI(sub, node)
			}
		}
		s.connectNodes(node, parent)
	}
}

// need notes an attribute that an element lacks (src/graph/xml.h, xmlGetAttrStr). Sysfs gives every
// attribute, so that the file is to blame.
func (s *system) need(e *Element, keys ...string) {
	for _, key := range keys {
		if _, ok := e.attrs[key]; !ok && s.failed == nil {
			s.fault = fmt.Errorf("the %s element %q without %s", e.name, e.attrs["busid"]+e.attrs["numaid"], key)
			s.failed = s.fault
		}
	}
}

// addCPU is ncclTopoAddCpu (src/graph/topo.cc). All NICs on CPUs share one, since the NUMA node
// does not fit into its id (NCCL_TOPO_ID).
func (s *system) addCPU(e *Element) {
	s.need(e, "numaid", "arch")
	if e.attrs["arch"] == x86 {
		s.need(e, "vendor")
		switch e.attrs["vendor"] {
		case "GenuineIntel", "CentaurHauls", "  Shanghai  ":
			s.need(e, "familyid", "modelid")
		}
	}
	at := s.createNode(cpuNode, strtol(e.attrs["numaid"]))
	s.at(at).unknown = e.attrs["numaid"] == unknownCPU
	for _, sub := range e.subs {
		if sub.name == "pci" {
			s.addPCI(sub, at)
		} else {
			s.addNIC(sub, 0, at)
		}
	}
}

// getSystemFromXML is ncclTopoGetSystemFromXml (src/graph/topo.cc).
func getSystemFromXML(top *Element) *system {
	s := &system{}
	for _, e := range top.subs {
		s.addCPU(e)
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

// busIDToInt64 is busIdToInt64 (src/misc/utils.cc).
func busIDToInt64(busid string) int64 {
	return strtol("0x" + strings.NewReplacer(":", "", ".", "").Replace(busid))
}

// strtol reads the number that a text begins with, as C does; 0 for none.
func strtol(text string) int64 {
	for end := min(len(text), 32); end > 0; end-- {
		if n, err := strconv.ParseInt(strings.TrimSpace(text[:end]), 0, 64); err == nil {
			return n
		}
	}
	return 0
}
