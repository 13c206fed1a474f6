package nccl

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gdr-features/source/pci"
)

// Element is an element of NCCL's topology XML (src/graph/xml.h, struct ncclXmlNode).
type Element struct {
	name   string
	attrs  []attr
	parent *Element
	subs   []*Element
	most   string // no bus id right below is greater
	keep   bool   // an attribute in NCCL
	filled bool   // getXMLFromSys was here, which changes nothing the second time
}

// attr is an attribute of an element. An element has at most some ten.
type attr struct{ key, value string }

// attr returns the value of an attribute, "" for none.
func (e *Element) attr(key string) string {
	value, _ := e.lookup(key)
	return value
}

// lookup is xmlGetAttr (src/graph/xml.h); ok is false where there is no such attribute.
func (e *Element) lookup(key string) (value string, ok bool) {
	for _, a := range e.attrs {
		if a.key == key {
			return a.value, true
		}
	}
	return "", false
}

// set is xmlSetAttr (src/graph/xml.h).
func (e *Element) set(key, value string) {
	for i := range e.attrs {
		if e.attrs[i].key == key {
			e.attrs[i].value = value
			return
		}
	}
	e.attrs = append(e.attrs, attr{key, value})
}

// sameAttrs reports whether two elements have the same attributes, in any order.
func (e *Element) sameAttrs(o *Element) bool {
	differs := func(a attr) bool {
		value, ok := o.lookup(a.key)
		return !ok || value != a.value
	}
	return len(e.attrs) == len(o.attrs) && !slices.ContainsFunc(e.attrs, differs)
}

// first returns the first of a list that is as wanted, nil for none.
func first[T any](list []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return nil
}

func (e *Element) all() []*Element {
	list := []*Element{e}
	for _, sub := range e.subs {
		list = append(list, sub.all()...)
	}
	return list
}

func (e *Element) clone() *Element {
	c := &Element{name: e.name, attrs: slices.Clone(e.attrs)}
	for _, sub := range e.subs {
		c.insert(len(c.subs), sub.clone())
	}
	return c
}

// insert puts an element right below e.
func (e *Element) insert(at int, sub *Element) {
	sub.parent, e.subs = e, slices.Insert(e.subs, at, sub)
	e.most = max(e.most, sub.attr("busid"))
}

// tree is what one of NCCL's processes makes of the machine (src/graph/xml.h, struct ncclXml).
type tree struct {
	*Machine
	system *Element
	pci    map[string]*Element // the first of each bus id
}

// newTree begins with the topology file, or with nothing.
func newTree(m *Machine) *tree {
	x := &tree{Machine: m, system: &Element{name: "system"}, pci: map[string]*Element{}}
	if m.File != nil {
		x.system = m.File.system.clone()
		for _, e := range x.system.all() {
			// Each process sets that of its host.
			e.attrs = slices.DeleteFunc(e.attrs, func(a attr) bool { return a.key == "host_hash" })
			if id := e.attr("busid"); e.name == "pci" && x.pci[id] == nil {
				x.pci[id] = e
			}
		}
	}
	return x
}

// setIfUnset is xmlSetAttrIfUnset (src/graph/xml.h).
func (e *Element) setIfUnset(key, value string) {
	if _, ok := e.lookup(key); !ok {
		e.attrs = append(e.attrs, attr{key, value})
	}
}

// sub is xmlGetSub (src/graph/xml.h): the first element of a name right below e, nil for none.
func (e *Element) sub(name string) *Element {
	return first(e.subs, func(o *Element) bool { return o.name == name })
}

// addNode is xmlAddNode (src/graph/xml.h).
func (e *Element) addNode(name string, attrs ...attr) *Element {
	sub := &Element{name: name, attrs: attrs}
	e.insert(len(e.subs), sub)
	return sub
}

// fuse is xmlTopoFuseXmlRecursive (src/graph/xml.cc): it adds what another process's elements
// have and these lack. Elements with the same attributes are the same (xmlFindNode).
func (e *Element) fuse(other *Element) {
	for _, sub := range other.subs {
		same := first(e.subs, func(o *Element) bool { return o.name == sub.name && o.sameAttrs(sub) })
		if same != nil {
			same.fuse(sub)
			continue
		}
		e.insert(len(e.subs), sub)
	}
}

// setAttrFromSys is ncclTopoSetAttrFromSys (src/graph/xml.cc) for the attributes of a pci element.
// The class of sysfs replaces that of the file. "" is not known. The link is the most that a
// function and the bridge right above it can do together: NCCL asks this of every hop, so the
// card's own slot (pci.Inventory.Slot) plays no part.
func (x *tree) setAttrFromSys(e *Element) {
	speed, width := "", ""
	f := x.function(e)
	if f != nil {
		if f.Class != 0 {
			e.set("class", fmt.Sprintf("%#06x", f.Class))
		}
		for i, id := range [...]uint16{f.Vendor, f.Device, f.SubVendor, f.SubDevice} {
			if id != 0 {
				e.setIfUnset(ids[i], fmt.Sprintf("%#04x", id))
			}
		}
		s, w := pci.MostOf(f, x.PCI.Port(f))
		if s > 0 {
			speed = fmt.Sprintf("%.1f GT/s PCIe", s)
		}
		if w > 0 {
			width = strconv.Itoa(w)
		}
	}
	e.setIfUnset("link_speed", speed)
	e.setIfUnset("link_width", width)
	addPCILinks(e, f)
}

// addPCILinks adds the links between partitions of a switch (src/graph/xml.cc,
// ncclTopoGetXmlFromSys, and src/os/linux.cc, ncclOsGetBcmLinks, of NCCL 2.30.7), which NCCL looks for
// at functions of one vendor.
func addPCILinks(e *Element, f *pci.Function) {
	if f == nil || e.attr("vendor") != "0x1000" {
		return
	}
	for _, to := range f.SwitchLinks {
		target := to.String()
		if !slices.ContainsFunc(e.subs, func(o *Element) bool { return o.name == "pcilink" && o.attr("target") == target }) {
			e.addNode("pcilink", attr{"target", target})
		}
	}
}

// function returns the PCI function of a pci element, nil for none.
func (m *Machine) function(e *Element) *pci.Function {
	a, err := pci.ParseAddress(e.attr("busid"))
	if err != nil {
		return nil
	}
	return m.PCI.Find(a)
}

const x86 = "x86_64"

// getXMLFromCPU is ncclTopoGetXmlFromCpu (src/graph/xml.cc): it adds what the file leaves out. A
// CPU that is not known is taken for an x86.
func (x *tree) getXMLFromCPU(e *Element) {
	cpu, vendor, family, model := x.CPU, "", "", ""
	odd := func(r rune) bool { return r != ' ' && !unicode.IsLetter(r) || r > unicode.MaxASCII }
	if cpu.Arch != "" && cpu.Vendor != "" && cpu.Family > 0 && !strings.ContainsFunc(cpu.Vendor, odd) {
		vendor, family, model = cpu.Vendor, strconv.Itoa(cpu.Family), strconv.Itoa(cpu.Model)
	}
	e.setIfUnset("affinity", "")
	e.setIfUnset("arch", cpu.Arch)
	if cpu.Arch != x86 && cpu.Arch != "" {
		return
	}
	e.setIfUnset("vendor", vendor)
	if _, ok := e.lookup("familyid"); !ok {
		e.set("familyid", family)
		e.set("modelid", model)
	}
}

// getPCINode is ncclTopoGetPciNode (src/graph/xml.cc): the first element of a bus id, a new one
// without parent where there is none. The class is that of what sysfs says nothing about.
func (x *tree) getPCINode(busid, class string) *Element {
	e := x.pci[busid]
	if e == nil {
		e = &Element{name: "pci", attrs: append(make([]attr, 0, 8), attr{"busid", busid})}
		x.pci[busid] = e
	}
	e.setIfUnset("class", class)
	return e
}

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
			parent = x.cpu("-1")
		case n < 2 || above[n-1].Domain > 0xffff || above[n-2].Domain > 0xffff:
			parent = x.cpu(numa)
		default:
			parent = x.getPCINode(above[n-2].String(), "0x060400")
			x.getXMLFromSys(parent, above[n-2], above[:n-2], numa)
		}
		if e.parent == nil { // an address that occurs in its own path has its place by now
			at, id := -1, e.attr("busid")
			if id < parent.most {
				at = slices.IndexFunc(parent.subs, func(o *Element) bool { return id < o.attr("busid") })
			}
			if at < 0 {
				at = len(parent.subs)
			}
			parent.insert(at, e)
		}
	}
	for ; e.name == "pci" && !e.filled; e = e.parent {
		x.setAttrFromSys(e)
		e.filled = true
	}
	if !e.filled {
		x.getXMLFromCPU(e)
	}
}

// unknownCPU is the numaid of functions whose numa_node cannot be read.
const unknownCPU = "?"

// cpu returns the cpu element of a NUMA node, a new one where there is none.
func (x *tree) cpu(numa string) *Element {
	if numa == strconv.Itoa(pci.Unread) {
		numa = unknownCPU
	}
	e := first(x.system.subs, func(o *Element) bool { return o.attr("numaid") == numa })
	if e == nil {
		e = x.system.addNode("cpu", attr{"numaid", numa})
	}
	return e
}

// fillGPU is ncclTopoFillGpu (src/graph/xml.cc).
func (x *tree) fillGPU(rank int, f *pci.Function) {
	if f.RootBus == "" { // it is not known which CPU is the first then
		x.cpu(unknownCPU)
		return
	}
	e := x.getPCINode(f.Address.String(), "0x03")
	x.getXMLFromSys(e, f.Address, f.Bridges, strconv.Itoa(f.RootNUMA))
	gpu := e.sub("gpu")
	if gpu == nil {
		gpu = e.addNode("gpu")
	}
	gpu.keep = true
	gpu.set("rank", strconv.Itoa(rank))
}

// oneRate is the rate of every port, in Mbit/s, where their own must not count.
const oneRate = 400000

// fillNet is ncclTopoFillNet (src/graph/xml.cc): a NIC is where the file has its name, else
// below the function that NCCL looks for, or on the first CPU where that is not there.
func (x *tree) fillNet(dev int, at Device) {
	var net, parent *Element
	if at.Net != "" {
		net = first(x.system.all(), func(e *Element) bool { return e.name == "net" && e.attr("name") == at.Net })
	}
	if net == nil {
		switch f := at.Function; {
		case f != nil:
			parent = x.getPCINode(f.Address.String(), "0x02")
			x.getXMLFromSys(parent, f.Address, f.Bridges, strconv.Itoa(at.NUMA))
		case len(x.system.subs) > 0:
			parent = x.system.subs[0]
		default:
			parent = x.cpu("0")
		}
		nic := parent.sub("nic")
		if nic == nil {
			nic = parent.addNode("nic")
		}
		net = nic.addNode("net")
	}
	net.keep = true
	net.set("dev", strconv.Itoa(dev))
	net.setIfUnset("speed", strconv.Itoa(cmp.Or(at.Mbps, oneRate)))
}

// trim is ncclTopoTrimXmlRec (src/graph/xml.cc): it removes elements that neither
// are nor contain one to keep.
func (e *Element) trim() bool {
	kept := e.keep
	e.keep = false
	e.subs = slices.DeleteFunc(e.subs, func(sub *Element) bool {
		keep := sub.trim()
		kept = kept || keep
		return !keep && sub.name != "gpu" && sub.name != "pcilink"
	})
	return kept
}

var busIDMarks = strings.NewReplacer(":", "", ".", "")

// busIDToInt64 is busIdToInt64 (src/misc/utils.cc).
func busIDToInt64(busid string) int64 {
	return strtol("0x" + busIDMarks.Replace(busid))
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
