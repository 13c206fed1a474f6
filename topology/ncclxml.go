package topology

import (
	"slices"
	"strconv"

	"gdr-features/source/pci"
)

// element is an element of NCCL's topology XML (src/graph/xml.h, struct
// ncclXmlNode): the system, a cpu or a pci. The elements gpu, nic and net are
// kept as indexes in their parent element.
type element struct {
	tag string // "system", "cpu" or "pci"
	key string // numaid of a cpu, busid of a pci
	// text is the start tag where the element comes from a topology file. It is
	// what tells elements of one name apart when NCCL joins the trees that its
	// processes have made (ncclTopoFuseXml).
	text  string
	class string // as in the file, "" for none
	ids   uint64 // vendor, device, subsystem vendor and device; 0 for none

	parent *element
	below  []*element
	gpus   []int    // indexes of GPUs
	nics   []int    // indexes of NICs
	nets   []string // names of nets in the file that NCCL may use
	hasNIC bool     // the file has an element nic here

	// incomplete names an attribute that a cpu of the file lacks, without which NCCL fails.
	incomplete string
	// lacks: the file leaves out attributes that NCCL adds; needs names one of them without
	// which NCCL fails where it does not. lacksIDs: the file leaves out ids of a pci.
	lacks, lacksIDs bool
	needs           string
	// filled: NCCL has added attributes, or replaced the class by that of sysfs.
	filled bool
}

// add puts a new element below e: a pci before the first with a greater bus id,
// as NCCL orders those it finds in sysfs (ncclTopoGetXmlFromSys).
func (e *element) add(c *element) {
	c.parent = e
	at := len(e.below)
	if c.tag == "pci" {
		if i := slices.IndexFunc(e.below, func(o *element) bool { return o.tag == "pci" && c.key < o.key }); i >= 0 {
			at = i
		}
	}
	e.below = slices.Insert(e.below, at, c)
}

// find returns the first pci element of a bus id, nil for none.
func (e *element) find(busid string) *element {
	if e.tag == "pci" && e.key == busid {
		return e
	}
	for _, c := range e.below {
		if found := c.find(busid); found != nil {
			return found
		}
	}
	return nil
}

// clone copies an element with all below it.
func (e *element) clone(parent *element) *element {
	c := *e
	c.parent, c.below = parent, make([]*element, len(e.below))
	for i, b := range e.below {
		c.below[i] = b.clone(&c)
	}
	return &c
}

// trim removes what holds no GPU and no NIC (ncclTopoTrimXml) and reports whether
// anything is left.
func (e *element) trim() bool {
	e.below = slices.DeleteFunc(e.below, func(c *element) bool { return !c.trim() })
	return len(e.below)+len(e.gpus)+len(e.nics) > 0
}

// fuse adds what another process's tree has and this one lacks (ncclTopoFuseXml).
// Elements with the same start tag are the same; the first of several gets
// everything.
func (e *element) fuse(other *element) {
	for _, i := range other.nics {
		if !slices.Contains(e.nics, i) {
			e.nics = append(e.nics, i)
		}
	}
	e.gpus = append(e.gpus, other.gpus...)
	for _, c := range other.below {
		same := func(o *element) bool {
			return o.tag == c.tag && o.key == c.key && o.text == c.text && o.filled == c.filled
		}
		if i := slices.IndexFunc(e.below, same); i >= 0 {
			e.below[i].fuse(c)
			continue
		}
		c.parent = e
		e.below = append(e.below, c)
	}
}

// unknownCPU is the numaid of functions whose numa_node cannot be read.
const unknownCPU = "?"

// xmlTree is the tree that one process of NCCL makes: from the topology file, and
// from sysfs for what the file does not name.
type xmlTree struct {
	inv    *pci.Inventory
	system *element
	byBus  map[string]*element // the first of each bus id
	nets   map[string]*element // what the nets of the file belong to
	cpus   []*element
}

func newXMLTree(inv *pci.Inventory, file *File) *xmlTree {
	t := &xmlTree{inv: inv, system: &element{tag: "system"}, byBus: map[string]*element{}, nets: map[string]*element{}}
	if file != nil {
		t.system = file.system.clone(nil)
		t.index(t.system)
	}
	return t
}

func (t *xmlTree) index(e *element) {
	switch _, known := t.byBus[e.key]; {
	case e.tag == "cpu":
		t.cpus = append(t.cpus, e)
	case e.tag == "pci" && !known:
		t.byBus[e.key] = e
	}
	for _, net := range e.nets {
		t.nets[net] = e
	}
	for _, c := range e.below {
		t.index(c)
	}
}

// fills reports whether NCCL changes an element when it comes by (ncclTopoGetXmlFromSys,
// ncclTopoGetXmlFromCpu). It comes by what is above GPUs, and above NICs that it finds by
// their functions.
func (t *xmlTree) fills(e *element) bool {
	if e.text == "" || e.lacks {
		return true
	}
	f := functionOf(t.inv, e)
	return f != nil && (e.lacksIDs || e.class != classText(f))
}

// pci returns the element of a function at an address below some bridges, a new
// one where there is none yet, as ncclTopoGetXmlFromSys makes it: every second
// bridge is its parent, a switch named by its upstream port, and what has none above
// it is attached to the CPU of its NUMA node. NCCL cuts an address with a domain of
// more than 16 bits, finds nothing there and takes CPU -1.
func (t *xmlTree) pci(a pci.Address, above []pci.Address, numa string) *element {
	key := a.String()
	e, ok := t.byBus[key]
	if !ok {
		e = &element{tag: "pci", key: key}
		t.byBus[key] = e
	}
	if e.parent == nil {
		parent := t.parent(a, above, numa)
		if e.parent == nil { // an address that occurs in its own path has its place by now
			parent.add(e)
		}
	}
	for up := e; up != nil; up = up.parent {
		up.filled = up.filled || t.fills(up)
	}
	return e
}

func (t *xmlTree) parent(a pci.Address, above []pci.Address, numa string) *element {
	n := len(above)
	switch {
	case a.Domain > 0xffff:
		return t.cpu(t.cpus, "-1")
	case n < 2 || above[n-1].Domain > 0xffff || above[n-2].Domain > 0xffff:
		return t.cpu(t.system.below, numa)
	}
	return t.pci(above[n-2], above[:n-2], numa)
}

// cpu returns the cpu element of a NUMA node, a new one where the list has none.
func (t *xmlTree) cpu(among []*element, numa string) *element {
	for _, e := range among {
		if e.tag == "cpu" && e.key == numa {
			return e
		}
	}
	e := &element{tag: "cpu", key: numa}
	t.cpus = append(t.cpus, e)
	t.system.add(e)
	return e
}

// numaText is the numaid of a NUMA node.
func numaText(n int) string {
	if n == pci.Unread {
		return unknownCPU
	}
	return strconv.Itoa(n)
}

// addGPU puts a GPU into the tree (ncclTopoFillGpu).
func (t *xmlTree) addGPU(index int, f *pci.Function) {
	if f.RootBus == "" { // it is not known which CPU is the first then
		t.cpu(t.system.below, unknownCPU)
		return
	}
	e := t.pci(f.Address, f.Bridges, numaText(f.RootNUMA))
	e.gpus = append(e.gpus, index)
}

// addNIC puts a NIC into the tree (ncclTopoFillNet): where the file has its name, below the
// function that NCCL looks for, or on the first CPU where that is not there.
func (t *xmlTree) addNIC(index int, at ncclFunction) {
	if !at.known {
		return
	}
	e := t.nets[at.net]
	switch {
	case e != nil:
	case at.fn != nil:
		e = t.pci(at.fn.Address, at.fn.Bridges, numaText(at.numa))
	default:
		e = t.firstCPU()
	}
	if !slices.Contains(e.nics, index) {
		e.nics = append(e.nics, index)
	}
}

func (t *xmlTree) firstCPU() *element {
	if len(t.cpus) > 0 {
		return t.cpus[0]
	}
	return t.cpu(nil, "0")
}

// ncclFunction is the PCI function by which NCCL places a NIC: what its IB transport looks
// for (src/transport/net_ib/init.cc, ncclIbGetPciPath), or what a plugin names.
type ncclFunction struct {
	// fn is nil where the function is not there. known is false where that, or
	// its place, cannot be read.
	fn    *pci.Function
	known bool
	numa  int // the NUMA node of the topmost switch, see pci.Function.RootNUMA
	// net is the name by which NCCL finds the NIC in the topology file, whatever its
	// function; "" for none.
	net string
}

// inNCCL finds the function that stands for a NIC: itself where NCCL uses it by a plugin,
// its data-direct function where it has one, else the one with device and function number
// 0 on its bus. NCCL takes all functions of a bus for ports and virtual functions of one
// NIC (NCCL_IB_MERGE_VFS=1, its default).
func inNCCL(inv *pci.Inventory, f *pci.Function) ncclFunction {
	if f.RootBus == "" {
		return ncclFunction{}
	}
	if byPlugin(f) {
		return ncclFunction{fn: f, known: true, numa: f.RootNUMA}
	}
	if f.DataDirect != nil {
		if dd := inv.Find(*f.DataDirect); dd != nil {
			return ncclFunction{fn: dd, known: dd.RootBus != "", numa: dd.RootNUMA}
		}
	}
	at := f.Address
	at.Device, at.Function = 0, 0
	switch g := inv.Find(at); {
	case g == nil:
		return ncclFunction{known: true}
	case g.RootBus == "":
		return ncclFunction{}
	case g.RootBus != f.RootBus || !slices.Equal(g.Bridges, f.Bridges):
		return ncclFunction{known: true}
	default: // the kernel gives all functions of a bus one NUMA node
		return ncclFunction{fn: g, known: true, numa: f.RootNUMA}
	}
}

// byPlugin reports whether NCCL uses a NIC by a plugin.
func byPlugin(f *pci.Function) bool {
	return f.NIC != nil && f.NIC.NCCLPlugin != nil || f.Other != nil && f.Other.NCCLPlugin != nil
}

// ncclTree returns the tree that NCCL's processes, one for each GPU, come to
// together (ncclTopoGetSystem). Without a GPU it holds the NICs alone.
func ncclTree(inv *pci.Inventory, file *File, gpus []*pci.Function, nics []ncclFunction) *element {
	var all *element
	for i := range max(len(gpus), 1) {
		t := newXMLTree(inv, file)
		if len(gpus) > 0 {
			t.addGPU(i, gpus[i])
		}
		if all == nil || file != nil { // without a file every process places the NICs alike
			for j, nic := range nics {
				t.addNIC(j, nic)
			}
		}
		t.system.trim()
		if all == nil {
			all = t.system
			continue
		}
		all.fuse(t.system)
	}
	return all
}
