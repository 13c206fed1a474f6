package picture

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gdr-features/internal/report"
	"gdr-features/internal/show"
	"gdr-features/internal/view"
	"gdr-features/source/pci"
	"gdr-features/topology"
)

// form is what a node of the tree is; its text is a class of the page.
type form string

const (
	numaNode form = "numa"
	rootBus  form = "bus"
	rootPort form = "port"
	// pcieSwitch is the upstream port of a switch together with the downstream
	// ports below it. A bridge with nothing below but functions is one, too.
	pcieSwitch form = "switch"
	leaf       form = "leaf"
)

// node is a place in the tree of a machine.
type node struct {
	Form    form
	Name    string  // of a NUMA node or root bus; of a bridge, what it is
	Address string  // of a bridge, as lspci prints it
	Product string  // of a switch
	Device  *device // of a leaf
	Below   []*node
	// Meets is the nearest level of GPUs and their nearest NICs that meet here.
	Meets topology.Level
	// Lost: none of those NICs has an active port.
	Lost bool

	// Way is the nearest level of those whose path leads over the line above this node.
	Way   topology.Level
	Down  bool // none of the NICs on these paths has an active port
	above *node
}

// Holds says how many GPUs and NICs there are below a node.
func (n *node) Holds() string {
	count := map[kind]int{}
	for _, d := range n.devices() {
		count[d.Kind]++
	}
	return show.Count(count[gpu], "GPU") + ", " + show.Count(count[nic], "NIC")
}

// devices are those in the leaves below a node.
func (n *node) devices() []*device {
	if n.Device != nil {
		return []*device{n.Device}
	}
	var list []*device
	for _, child := range n.Below {
		list = append(list, child.devices()...)
	}
	return list
}

// numas are the NUMA nodes of the functions below: one if the firmware is right.
func (n *node) numas() []int {
	var list []int
	for _, d := range n.devices() {
		if d.function.NearNUMA >= 0 {
			list = append(list, d.function.NearNUMA)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (n *node) add(child *node) {
	child.above = n
	n.Below = append(n.Below, child)
}

// child finds a root bus by its name or a bridge by its address, or adds it.
func (n *node) child(like *node) *node {
	i := slices.IndexFunc(n.Below, func(c *node) bool {
		return c.Form == like.Form && c.Address == like.Address && (c.Name == like.Name || c.Address != "")
	})
	if i >= 0 {
		return n.Below[i]
	}
	n.add(like)
	return like
}

// newTree puts the devices where they are in the PCI tree: one for each NUMA node.
func newTree(r *report.Report, m *model) []*node {
	root := &node{}
	devices := slices.Concat(m.GPUs, m.NICs, m.Others)
	slices.SortStableFunc(devices, func(a, b *device) int { return a.place().Compare(b.place()) })
	outside := &node{Form: rootBus, Name: "not in the PCI tree"}
	for _, d := range devices {
		d.leaf = &node{Form: leaf, Device: d}
		if d.function == nil || r.PCI.Place(d.function).RootBus == "" {
			outside.Below = append(outside.Below, d.leaf) // no node above: nothing meets there
			continue
		}
		root.branch(&r.PCI, r.PCI.Place(d.function)).add(d.leaf)
	}
	panels := panelsOf(root.Below, r.PCI.NUMANodes)
	if len(outside.Below) > 0 {
		panels = append(panels, &node{Form: numaNode, Name: "Elsewhere", Below: []*node{outside}})
	}
	for _, g := range m.GPUs {
		for _, n := range g.Near {
			join(g.leaf, n.leaf, g.Level, n.Down)
		}
	}
	return panels
}

// place is where a device comes in the order of addresses: one without a function comes last.
func (d *device) place() pci.Address {
	if d.function == nil {
		return pci.Address{Domain: math.MaxUint32}
	}
	return d.function.Address
}

// branch finds or makes the node that a function belongs to. The first bridge above it is a
// root port; then upstream and downstream ports of switches alternate, and downstream ports
// get no node of their own.
func (n *node) branch(inv *pci.Inventory, f *pci.Function) *node {
	at := n.child(&node{Form: rootBus, Name: f.RootBus})
	for i, address := range f.Bridges {
		if i > 0 && i%2 == 0 {
			if at.Form == pcieSwitch {
				at.Name = "switch"
			}
			continue
		}
		bridge := &node{Form: rootPort, Name: "root port", Address: view.Short(address.String())}
		if i > 0 {
			bridge.Form, bridge.Name, bridge.Product = pcieSwitch, "bridge", bridgeProduct(inv.Find(address))
		}
		at = at.child(bridge)
	}
	return at
}

const vendorPLX, broadcom = 0x10b5, 0x1000

// bridgeProduct names a bridge as pci.ids does: two Broadcom switches, those of PLX, whose
// device id is the product's number, and NVIDIA's own.
func bridgeProduct(f *pci.Function) string {
	switch {
	case f == nil || f.Vendor == 0:
		return "unknown product"
	case f.Vendor == broadcom && f.Device == 0xc010:
		return "PEX880xx"
	case f.Vendor == broadcom && f.Device == 0xc030:
		return "PEX890xx"
	case f.Vendor == vendorPLX && f.Device >= 0x8500:
		return fmt.Sprintf("PEX %04x", f.Device)
	}
	return view.Product(f)
}

// panelsOf puts the root buses below the NUMA nodes of their functions; those without a
// known one come last. The machine has a number of NUMA nodes.
func panelsOf(buses []*node, numaNodes int) []*node {
	slices.SortStableFunc(buses, func(x, y *node) int {
		i, j := x.numas(), y.numas()
		if (len(i) == 0) != (len(j) == 0) {
			return len(j) - len(i)
		}
		return slices.Compare(i, j)
	})
	var panels []*node
	for _, bus := range buses {
		name := numaName(bus.numas(), numaNodes)
		if len(panels) == 0 || panels[len(panels)-1].Name != name {
			panels = append(panels, &node{Form: numaNode, Name: name})
		}
		panels[len(panels)-1].add(bus)
	}
	return panels
}

// numaName names the NUMA nodes of a root bus on a machine with a number of them.
func numaName(of []int, onMachine int) string {
	switch {
	case len(of) == 1:
		return fmt.Sprintf("NUMA node %d", of[0])
	case len(of) > 1:
		return "NUMA nodes " + strings.Trim(fmt.Sprint(of), "[]")
	case onMachine == 0:
		return "No NUMA nodes"
	case onMachine == 1:
		return "One NUMA node"
	}
	return "NUMA node unknown"
}

// join notes the level of a GPU and a near NIC where they meet and on the path there, and
// whether the NIC is down.
func join(g, n *node, level topology.Level, down bool) {
	above := map[*node]bool{}
	for at := g; at != nil; at = at.above {
		above[at] = true
	}
	meet := n
	for ; meet != nil && !above[meet]; meet = meet.above {
		meet.Way, meet.Down = nearer(meet.Way, level), down && (meet.Down || meet.Way == topology.Unknown)
	}
	for at := g; at != meet; at = at.above {
		at.Way, at.Down = nearer(at.Way, level), down && (at.Down || at.Way == topology.Unknown)
	}
	if meet != nil {
		meet.Meets, meet.Lost = nearer(meet.Meets, level), down && (meet.Lost || meet.Meets == topology.Unknown)
	}
}
