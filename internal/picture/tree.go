package picture

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/report"
	"gdr-features/internal/view"
	"gdr-features/source/pci"
	"gdr-features/topology"
)

// panel is all that hangs on one NUMA node.
type panel struct {
	title string
	holds string // how many GPUs and NICs
	buses []*node
}

// form is what a node of the tree is.
type form uint8

const (
	rootBus form = iota
	rootPort
	// pcieSwitch is an upstream port together with the downstream ports below it.
	pcieSwitch
	leaf
)

// node is a place in the PCI tree.
type node struct {
	form    form
	name    string  // of a root bus or bridge
	address string  // address of a bridge
	product string  // of a switch
	device  *device // of a leaf
	above   *node
	below   []*node
	// level is that of the nearest pair whose way leads over the line above this
	// node, and marks are the ids of the devices whose ways do.
	level topology.Level
	marks []string
}

// planter grows the trees.
type planter struct {
	r     *report.Report
	buses map[string]*node
	// at finds the node of a bridge by the root bus and the way to it: in a
	// damaged tree one address may stand in two places.
	at     map[string]*node
	leaves map[*device]*node
}

// plant puts the devices into the trees they stand in, by NUMA node.
func plant(r *report.Report, m *model) []panel {
	p := planter{r: r, buses: map[string]*node{}, at: map[string]*node{}, leaves: map[*device]*node{}}
	devices := slices.Concat(m.gpus, m.nics, m.others)
	slices.SortStableFunc(devices, byPlace)
	var order, homeless []*node
	for _, d := range devices {
		if d.fn == nil || p.r.PCI.Place(d.fn).RootBus == "" {
			homeless = append(homeless, p.leaf(d, nil))
			continue
		}
		f := p.r.PCI.Place(d.fn)
		bus := p.buses[f.RootBus]
		if bus == nil {
			bus = &node{form: rootBus, name: f.RootBus}
			p.buses[f.RootBus] = bus
			order = append(order, bus)
		}
		p.leaf(d, p.branch(bus, f.Bridges))
	}
	p.mark(m)
	panels := p.group(order)
	if len(homeless) > 0 {
		bus := &node{form: rootBus, name: "no place in the PCI tree", below: homeless}
		panels = append(panels, panel{title: "Elsewhere", buses: []*node{bus}})
	}
	return panels
}

// byPlace sorts by address; software devices come last.
func byPlace(a, b *device) int {
	switch {
	case a.fn != nil && b.fn != nil:
		return a.fn.Address.Compare(b.fn.Address)
	case a.fn != nil:
		return -1
	case b.fn != nil:
		return 1
	}
	return 0
}

func (p *planter) leaf(d *device, above *node) *node {
	n := &node{form: leaf, device: d, above: above, level: d.level}
	if above != nil {
		above.below = append(above.below, n)
	}
	p.leaves[d] = n
	return n
}

// branch finds or makes the node that a function below some bridges hangs on:
// the first bridge is a root port, then upstream and downstream ports of
// switches take turns, and the downstream ones are not drawn.
func (p *planter) branch(bus *node, bridges []pci.Address) *node {
	at := bus
	way := bus.name
	for i, bridge := range bridges {
		way += "/" + bridge.String()
		if i > 0 && i%2 == 0 {
			if at.name == "bridge" {
				at.name = "switch"
			}
			continue
		}
		next := p.at[way]
		if next == nil {
			next = p.bridge(i, bridge)
			next.above = at
			at.below = append(at.below, next)
			p.at[way] = next
		}
		at = next
	}
	return at
}

func (p *planter) bridge(depth int, a pci.Address) *node {
	n := &node{form: pcieSwitch, name: "bridge", address: view.Short(a.String())}
	if depth == 0 {
		n.form, n.name = rootPort, "root port"
		return n
	}
	n.product = "unknown product"
	if f := p.r.PCI.Find(a); f != nil && f.Vendor != 0 {
		n.product = bridgeProduct(f)
	}
	return n
}

const vendorPLX = 0x10b5

// bridgeProduct names a bridge as pci.ids does: the two Broadcom switches that
// stand between GPUs and NICs, those of PLX, whose device id is the product's
// number, and NVIDIA's own.
func bridgeProduct(f *pci.Function) string {
	switch {
	case f.Vendor == pci.VendorBroadcom && f.Device == 0xc010:
		return "PEX880xx"
	case f.Vendor == pci.VendorBroadcom && f.Device == 0xc030:
		return "PEX890xx"
	case f.Vendor == vendorPLX && f.Device >= 0x8500:
		return fmt.Sprintf("PEX %04x", f.Device)
	}
	return view.Product(f)
}

// mark notes on the way between a GPU and each NIC nearest to it that it leads
// there.
func (p *planter) mark(m *model) {
	for d, n := range p.leaves {
		if d.kind != dataDirect {
			n.add(d.level, d.id)
		}
	}
	for _, g := range m.gpus {
		for _, n := range g.near {
			for _, id := range []string{g.id, n.id} {
				way(p.leaves[g], p.leaves[n], g.level, id)
				way(p.leaves[n], p.leaves[g], g.level, id)
			}
		}
	}
}

// way marks the lines from a leaf up to the place where the other stands below
// too, or to the root bus.
func way(from, to *node, level topology.Level, id string) {
	over := map[*node]bool{}
	for n := to; n != nil; n = n.above {
		over[n] = true
	}
	for n := from; n != nil && !over[n]; n = n.above {
		n.add(level, id)
	}
}

func (n *node) add(level topology.Level, id string) {
	if !slices.Contains(n.marks, id) {
		n.marks = append(n.marks, id)
	}
	if n.level == topology.Unknown || level != topology.Unknown && level < n.level {
		n.level = level
	}
}

// group puts root buses under the NUMA nodes of what hangs on them.
func (p *planter) group(buses []*node) []panel {
	byNode := map[string]*panel{}
	var keys [][]int
	for _, bus := range buses {
		numa := numaOf(bus, nil)
		key := fmt.Sprint(numa)
		if byNode[key] == nil {
			byNode[key] = &panel{title: p.numaTitle(numa)}
			keys = append(keys, numa)
		}
		byNode[key].buses = append(byNode[key].buses, bus)
	}
	slices.SortFunc(keys, func(a, b []int) int {
		if (len(a) == 0) != (len(b) == 0) {
			return len(b) - len(a) // those of no known node last
		}
		return slices.Compare(a, b)
	})
	var panels []panel
	for _, numa := range keys {
		p := byNode[fmt.Sprint(numa)]
		p.count()
		panels = append(panels, *p)
	}
	return panels
}

// count says what a panel holds.
func (p *panel) count() {
	var n [dataDirect + 1]int
	var walk func(nodes []*node)
	walk = func(nodes []*node) {
		for _, at := range nodes {
			if at.device != nil {
				n[at.device.kind]++
			}
			walk(at.below)
		}
	}
	walk(p.buses)
	p.holds = count(n[gpu], "GPU") + ", " + count(n[nic], "NIC")
}

// numaOf collects the NUMA nodes of the functions below, each once, sorted: one
// where the firmware is sane.
func numaOf(n *node, found []int) []int {
	if n.device != nil {
		if numa := n.device.fn.NearNUMA; numa >= 0 && !slices.Contains(found, numa) {
			found = append(found, numa)
			slices.Sort(found)
		}
	}
	for _, child := range n.below {
		found = numaOf(child, found)
	}
	return found
}

func (p *planter) numaTitle(numa []int) string {
	switch {
	case len(numa) == 1:
		return fmt.Sprintf("NUMA node %d", numa[0])
	case len(numa) > 1:
		return "NUMA nodes " + strings.Trim(fmt.Sprint(numa), "[]")
	case p.r.PCI.NUMANodes == 0:
		return "No NUMA nodes"
	case p.r.PCI.NUMANodes == 1:
		return "One NUMA node"
	}
	return "NUMA node unknown"
}
