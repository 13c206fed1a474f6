package nccl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gdr-features/source/pci"
)

// Element is an element of NCCL's topology XML: system, cpu, pci, gpu, nic or net, and what
// NCCL reads below a gpu or pci (src/graph/xml.h, struct ncclXmlNode).
type Element struct {
	name   string
	attrs  []attribute
	parent *Element
	subs   []*Element
	keep   bool // an attribute in NCCL
}

type attribute struct{ key, value string }

// get is xmlGetAttr.
func (e *Element) get(key string) (value string, ok bool) {
	for i := range e.attrs {
		if e.attrs[i].key == key {
			return e.attrs[i].value, true
		}
	}
	return "", false
}

// value is the value of an attribute, "" where there is none.
func (e *Element) value(key string) string {
	value, _ := e.get(key)
	return value
}

// set is xmlSetAttr.
func (e *Element) set(key, value string) {
	for i := range e.attrs {
		if e.attrs[i].key == key {
			e.attrs[i].value = value
			return
		}
	}
	e.attrs = append(e.attrs, attribute{key, value})
}

// setIfUnset is xmlSetAttrIfUnset.
func (e *Element) setIfUnset(key, value string) {
	if _, ok := e.get(key); !ok {
		e.set(key, value)
	}
}

// sub is xmlGetSub: the first element of a name right below e, nil for none.
func (e *Element) sub(name string) *Element {
	return first(e.subs, func(o *Element) bool { return o.name == name })
}

// find is xmlFindNode: an element right below e with the same attributes, nil for none.
func (e *Element) find(like *Element) *Element {
	return first(e.subs, func(o *Element) bool {
		return o.name == like.name && len(o.attrs) == len(like.attrs) && !slices.ContainsFunc(like.attrs, func(a attribute) bool {
			value, ok := o.get(a.key)
			return !ok || value != a.value
		})
	})
}

func first(list []*Element, is func(*Element) bool) *Element {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return nil
}

// all lists e and everything below it.
func (e *Element) all() []*Element {
	list := []*Element{e}
	for _, sub := range e.subs {
		list = append(list, sub.all()...)
	}
	return list
}

// clone copies an element with everything below it.
func (e *Element) clone(parent *Element) *Element {
	c := *e
	c.parent, c.attrs, c.subs = parent, slices.Clone(e.attrs), make([]*Element, len(e.subs))
	for i, sub := range e.subs {
		c.subs[i] = sub.clone(&c)
	}
	return &c
}

// tree is what one of NCCL's processes makes of the machine: struct ncclXml (src/graph/xml.h).
type tree struct {
	machine *Machine
	nodes   []*Element          // in the order in which they were made
	pci     map[string]*Element // the first of each bus id
}

// newTree begins with the topology file, or with nothing.
func newTree(m *Machine) *tree {
	x := &tree{machine: m, pci: map[string]*Element{}}
	if m.File == nil {
		x.add(nil, "system")
		return x
	}
	for _, e := range m.File.system.clone(nil).all() {
		if e.name == "cpu" {
			e.set("host_hash", "") // each process sets that of its host
		}
		x.index(e)
	}
	return x
}

func (x *tree) index(e *Element) *Element {
	x.nodes = append(x.nodes, e)
	if id := e.value("busid"); e.name == "pci" && x.pci[id] == nil {
		x.pci[id] = e
	}
	return e
}

// add is xmlAddNode.
func (x *tree) add(parent *Element, name string, attrs ...attribute) *Element {
	e := &Element{name: name, attrs: attrs, parent: parent}
	if parent != nil {
		parent.subs = append(parent.subs, e)
	}
	return x.index(e)
}

const x86 = "x86_64"

// getXMLFromCPU is ncclTopoGetXmlFromCpu (src/graph/xml.cc): it adds what the file leaves out. A
// CPU that is not known is taken for an x86.
func (x *tree) getXMLFromCPU(e *Element) {
	cpu, vendor, family, model := x.machine.CPU, "", "", ""
	e.setIfUnset("affinity", "")
	e.setIfUnset("arch", cpu.Arch)
	if cpu.Arch != x86 && cpu.Arch != "" {
		return
	}
	if cpu.Arch != "" && cpu.Family > 0 && !strings.ContainsFunc(cpu.Vendor, func(r rune) bool {
		return r != ' ' && !unicode.IsLetter(r) || r > unicode.MaxASCII
	}) {
		vendor, family, model = cpu.Vendor, strconv.Itoa(cpu.Family), strconv.Itoa(cpu.Model)
	}
	e.setIfUnset("vendor", vendor)
	if _, ok := e.get("familyid"); !ok {
		e.set("familyid", family)
		e.set("modelid", model)
	}
}

// getPCINode is ncclTopoGetPciNode (src/graph/xml.cc): the first element of a bus id, a new one
// without parent where there is none.
func (x *tree) getPCINode(busid string) *Element {
	if e := x.pci[busid]; e != nil {
		return e
	}
	return x.add(nil, "pci", attribute{"busid", busid})
}

// bridgeClass is the class of a PCI bridge, and that of one of which nothing can be read.
const bridgeClass = "0x060400"

// getXMLFromSys is ncclTopoGetXmlFromSys (src/graph/xml.cc): it fills in what sysfs says of an
// element and of those above it. A new one gets the parent that its function has below some
// bridges: every second bridge is one, a switch named by its upstream port, and what has none
// above it is attached to the CPU of its NUMA node. NCCL cuts an address with a domain of more
// than 16 bits, finds nothing there and takes CPU -1.
func (x *tree) getXMLFromSys(e *Element, a pci.Address, above []pci.Address, numa string) {
	if e.parent == nil {
		parent, n := (*Element)(nil), len(above)
		switch {
		case a.Domain > 0xffff:
			parent = x.cpu(x.nodes, "-1")
		case n < 2 || above[n-1].Domain > 0xffff || above[n-2].Domain > 0xffff:
			parent = x.cpu(x.nodes[0].subs, numa)
		default:
			up := above[n-2]
			parent = x.getPCINode(up.String())
			parent.setIfUnset("class", bridgeClass)
			x.getXMLFromSys(parent, up, above[:n-2], numa)
		}
		if e.parent == nil { // an address that occurs in its own path has its place by now
			e.attach(parent)
		}
	}
	for ; e.name == "pci"; e = e.parent {
		x.setFromSys(e)
	}
	x.getXMLFromCPU(e)
}

// attach puts an element below another, pci elements ordered by their bus ids.
func (e *Element) attach(parent *Element) {
	busid := e.value("busid")
	at := slices.IndexFunc(parent.subs, func(o *Element) bool {
		other, ok := o.get("busid")
		return ok && busid < other
	})
	if at < 0 {
		at = len(parent.subs)
	}
	e.parent, parent.subs = parent, slices.Insert(parent.subs, at, e)
}

// cpu returns the cpu element of a NUMA node, a new one where the list has none.
func (x *tree) cpu(among []*Element, numa string) *Element {
	e := first(among, func(o *Element) bool { return o.name == "cpu" && o.value("numaid") == numa })
	if e == nil {
		e = x.add(x.nodes[0], "cpu", attribute{"host_hash", ""}, attribute{"numaid", numa})
	}
	return e
}

// setFromSys sets the attributes of a pci element as far as sysfs has its function; the class
// of sysfs replaces that of the file.
func (x *tree) setFromSys(e *Element) {
	var speed, width string
	if f := x.machine.function(e); f != nil {
		if f.Class != 0 {
			e.set("class", fmt.Sprintf("%#06x", f.Class))
		}
		for _, id := range [...]struct {
			key   string
			value uint16
			known bool
		}{
			{"vendor", f.Vendor, f.Vendor != 0},
			{"device", f.Device, f.Vendor != 0},
			{"subsystem_vendor", f.SubVendor, f.SubVendor|f.SubDevice != 0},
			{"subsystem_device", f.SubDevice, f.SubVendor|f.SubDevice != 0},
		} {
			if id.known {
				e.setIfUnset(id.key, fmt.Sprintf("%#04x", id.value))
			}
		}
		speed, width = x.machine.link(f)
	}
	e.setIfUnset("link_speed", speed)
	e.setIfUnset("link_width", width)
}

// function returns the PCI function of a pci element, nil for none.
func (m *Machine) function(e *Element) *pci.Function {
	a, err := pci.ParseAddress(e.value("busid"))
	if err != nil {
		return nil
	}
	return m.PCI.Find(a)
}

// link is the most that a function and the bridge right above it can do together, "" for
// unknown. NCCL asks this of every hop, so the card's own slot (pci.Inventory.Slot) plays no
// part.
func (m *Machine) link(f *pci.Function) (speed, width string) {
	ends := pci.LinkEnds{Lower: f.Link}
	if port := m.PCI.Port(f); port != nil {
		ends.Upper = port.Link
	}
	s, w := ends.Most()
	if s > 0 {
		speed = fmt.Sprintf("%.1f GT/s PCIe", s)
	}
	if w > 0 {
		width = strconv.Itoa(w)
	}
	return speed, width
}

// unknownCPU is the numaid of functions whose numa_node cannot be read.
const unknownCPU = "?"

func numaText(n int) string {
	if n == pci.Unread {
		return unknownCPU
	}
	return strconv.Itoa(n)
}

// fillGPU is ncclTopoFillGpu (src/graph/xml.cc).
func (x *tree) fillGPU(rank int, f *pci.Function) {
	if f.RootBus == "" { // it is not known which CPU is the first then
		x.cpu(x.nodes[0].subs, unknownCPU)
		return
	}
	e := x.getPCINode(f.Address.String())
	e.setIfUnset("class", "0x03")
	x.getXMLFromSys(e, f.Address, f.Bridges, numaText(f.RootNUMA))
	gpu := e.sub("gpu")
	if gpu == nil {
		gpu = x.add(e, "gpu")
	}
	gpu.keep = true
	gpu.set("rank", strconv.Itoa(rank))
}

// fillNet is ncclTopoFillNet (src/graph/xml.cc): a NIC is where the file has its name, else
// below the function that NCCL looks for, or on the first CPU where that is not there.
func (x *tree) fillNet(dev int, at Device) {
	var net, parent *Element
	if at.Net != "" {
		net = first(x.nodes, func(e *Element) bool { return e.name == "net" && e.value("name") == at.Net })
	}
	if net == nil {
		if f := at.Function; f != nil {
			parent = x.getPCINode(f.Address.String())
			parent.setIfUnset("class", "0x02")
			x.getXMLFromSys(parent, f.Address, f.Bridges, numaText(at.NUMA))
		} else if parent = first(x.nodes, func(e *Element) bool { return e.name == "cpu" }); parent == nil {
			parent = x.cpu(nil, "0")
		}
		nic := parent.sub("nic")
		if nic == nil {
			nic = x.add(parent, "nic")
		}
		net = x.add(nic, "net")
	}
	net.keep = true
	net.set("dev", strconv.Itoa(dev))
}

// trim is ncclTopoTrimXmlRec (src/graph/xml.cc): it removes what is above no element to keep,
// and reports whether e stays.
func (e *Element) trim() bool {
	if e.keep {
		e.keep = false
		return true
	}
	kept := false
	e.subs = slices.DeleteFunc(e.subs, func(sub *Element) bool {
		keep := sub.trim()
		kept = kept || keep
		return !keep && slices.Contains([]string{"pci", "cpu", "nic", "net"}, sub.name)
	})
	return kept
}

// fuse is xmlTopoFuseXmlRecursive (src/graph/xml.cc): it adds what another process's elements
// have and these lack.
func (e *Element) fuse(other *Element) {
	for _, sub := range other.subs {
		if same := e.find(sub); same != nil {
			same.fuse(sub)
			continue
		}
		sub.parent = e
		e.subs = append(e.subs, sub)
	}
}

// busIDToInt64 is busIdToInt64 (src/misc/utils.cc).
func busIDToInt64(busid string) int64 {
	digits := strings.NewReplacer(":", "", ".", "").Replace(busid)
	digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789abcdefABCDEF"))]
	n, err := strconv.ParseInt(digits[:min(len(digits), 16)], 16, 64)
	if err != nil {
		return 0
	}
	return n
}

// strtol reads the number that a text begins with, as C does; 0 for none.
func strtol(text string) int64 {
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	for end := len(text); end > 0; end-- {
		if n, err := strconv.ParseInt(text[:end], 0, 64); err == nil && !strings.ContainsRune(text[:end], '_') {
			return n
		}
	}
	return 0
}
