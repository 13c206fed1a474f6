package nccl

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	unknown bool  // a CPU that stands for functions of which it is not known
	// links lead to other nodes. NCCL orders them by bandwidth, which changes no path.
	links []*node
}

// system is struct ncclTopoSystem (src/graph/topo.h), without NVLink.
type system struct {
	nodes  [kinds][]*node
	merged []int64 // the ids of switches that were merged into others
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

// connectNodes is ncclTopoConnectNodes (src/graph/topo.cc), both ways.
func (s *system) connectNodes(a, b *node) {
	if s.failed == nil && max(len(a.links), len(b.links)) == maxLinks {
		s.failed = fmt.Errorf("NCCL accepts %d links at most from one CPU or switch", maxLinks)
	}
	a.links, b.links = append(a.links, b), append(b.links, a)
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
		top.links = slices.DeleteFunc(top.links, func(n *node) bool {
			is := n.kind == switchNode && getBcmGen(n.device, 1) == gen
			if is {
				subs = append(subs, n.id)
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
		if s.failed == nil && slices.ContainsFunc(n.links, func(to *node) bool { return !slices.Contains(to.links, n) }) {
			s.failed = ErrStale
		}
	}
}

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
	for _, n := range sub.links {
		if n == top {
			continue
		}
		top.links = append(top.links, n)
		if l := slices.Index(n.links, sub); l >= 0 {
			n.links[l] = top
		}
	}
	for _, n := range slices.Concat(s.nodes[:]...) {
		n.links = slices.DeleteFunc(n.links, func(to *node) bool { return to == sub })
	}
	s.nodes[switchNode] = slices.Delete(list, i, i+1)
	s.merged = append(s.merged, id)
}

// connectCPUs is ncclTopoConnectCpus (src/graph/topo.cc).
func (s *system) connectCPUs() {
	for i, cpu := range s.nodes[cpuNode] {
		for _, other := range s.nodes[cpuNode][:i] {
			s.connectNodes(cpu, other)
		}
	}
}

// addNIC is ncclTopoAddNic (src/graph/topo.cc): it adds the nets of a nic element. Those of one id
// share a node, which is where the first of them is.
func (s *system) addNIC(e *Element, id int64, parent *node) {
	node := first(s.nodes[nicNode], func(n *node) bool { return n.id == id })
	if node == nil {
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
func (s *system) addPCI(e *Element, parent *node) {
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
		node.device = getIntDevice(e)
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
	cpu := s.createNode(cpuNode, strtol(e.attrs["numaid"]))
	cpu.unknown = e.attrs["numaid"] == unknownCPU
	for _, sub := range e.subs {
		if sub.name == "pci" {
			s.addPCI(sub, cpu)
		} else {
			s.addNIC(sub, 0, cpu)
		}
	}
}

// getSystemFromXML is ncclTopoGetSystemFromXml (src/graph/topo.cc).
func getSystemFromXML(top *Element) *system {
	s := &system{}
	for _, e := range top.subs {
		s.addCPU(e)
	}
	if s.failed == nil {
		s.flattenBcmSwitches()
		s.connectCPUs()
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

// setC2C is what ncclTopoComputePaths does for a GPU that shares memory with its CPU: PHB is P2C
// (mergePathType) unless a NIC is nearer. Ties that NCCL breaks by port speed are left out.
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
