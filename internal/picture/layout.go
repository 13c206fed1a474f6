package picture

import (
	"math"
	"slices"

	"gdr-features/topology"
)

// Measures in pixels. fullWidth is what a page of 1280 has room for beside its
// margins and a scroll bar; eight leaves below switches fit into it.
const (
	fullWidth = 1232
	leastLeaf = 128
	mostLeaf  = 208
	indent    = 12
	padding   = 8
	gap       = 10
	barHeight = 5
	stripe    = 3
)

// How texts are set. None is smaller than 11 pixels.
var (
	heading = style{size: 14, bold: true}
	name    = style{size: 13, bold: true}
	strong  = style{size: 11, bold: true}
	small   = style{size: 11}
	plain   = style{size: 12}
	mono    = style{size: 12, mono: true}
)

// tree is the layout of a PCI tree with leaves of a width.
type tree struct{ leaf int }

// drawTree lays out the PCI tree: a panel for each NUMA node. It takes the number
// of panels side by side that makes the picture lowest, and then the widest
// leaves that keep it so.
func drawTree(m *model) scene {
	var best scene
	for leaf := m.widest(); leaf >= leastLeaf; leaf -= 8 {
		for n := 1; n <= min(6, max(1, len(m.panels))); n++ {
			s := tree{leaf}.panels(m.panels, (fullWidth-(n-1)*gap)/n)
			if best.h == 0 || s.w <= fullWidth && (s.h < best.h || best.w > fullWidth) {
				best = s
			}
		}
	}
	return best
}

// widest is the width of a leaf that nothing is cut in, as far as that is good.
func (m *model) widest() int {
	w := 0
	for _, list := range [][]*device{m.gpus, m.nics, m.others} {
		for _, d := range list {
			w = max(w, plain.width(clean(d.product)), name.width(clean(d.name)))
			for _, note := range d.notes {
				w = max(w, plain.width(clean(note.text)))
			}
		}
	}
	w = min(max(w+stripe+2*padding, leastLeaf), mostLeaf)
	return leastLeaf + (w-leastLeaf+7)/8*8
}

// panels draws the panels, none wider than a width if that can be, in rows. Those
// of a row are as high as the highest, and the rows as wide as the widest.
func (t tree) panels(panels []panel, width int) scene {
	type inside struct {
		panel
		scene
	}
	var rows [][]inside
	wide, used := 0, 0
	for _, p := range panels {
		p.title = heading.fit(p.title, width-2*padding)
		in := t.buses(p, width-2*padding)
		in.w = max(in.w, heading.width(p.title)) + 2*padding
		if used > 0 && used+gap+in.w <= fullWidth {
			rows[len(rows)-1] = append(rows[len(rows)-1], inside{p, in})
			used += gap + in.w
		} else {
			rows = append(rows, []inside{{p, in}})
			used = in.w
		}
		wide = max(wide, used)
	}
	var out []scene
	for _, row := range rows {
		high, spare := 0, wide+gap
		for _, in := range row {
			high, spare = max(high, in.h), spare-in.w-gap
		}
		var line scene
		for i, in := range row {
			w := in.w + spare/(len(row)-i)
			spare -= spare / (len(row) - i)
			line.add(frame(in.panel, in.scene, w, high), line.w+min(i, 1)*gap, 0)
		}
		out = append(out, line)
	}
	return below(gap, out...)
}

// frame puts a panel around what it holds.
func frame(p panel, in scene, w, h int) scene {
	const head = 26
	f := part{
		class: "panel",
		rects: []rect{{w: w, h: h + head + 2*padding, radius: 8, class: "panel"}},
		texts: []text{{x: padding, y: padding + 14, style: heading, class: "ink", s: p.title}},
	}
	if left := w - 3*padding - heading.width(p.title); small.width(p.holds) <= left {
		f.texts = append(f.texts, text{x: w - padding, y: padding + 14, align: end, style: small, class: "mut", s: p.holds})
	}
	out := scene{w: w, h: h + head + 2*padding, parts: []part{f}}
	in.w = 0 // it is as wide as the frame
	out.add(in, padding, padding+head)
	return out
}

// buses draws the root buses of a panel.
func (t tree) buses(p panel, width int) scene {
	var blocks []scene
	for _, bus := range p.buses {
		blocks = append(blocks, t.bus(bus, width)...)
	}
	return flow(width, gap, gap, blocks)
}

// bus draws a root bus as a bar with the trees that hang from it, in several
// pieces where it is wider than the room.
func (t tree) bus(bus *node, width int) []scene {
	var blocks []scene
	var trees []scene
	used := 0
	flush := func() {
		if len(trees) > 0 {
			blocks = append(blocks, hang(bus, trees, len(blocks) > 0))
		}
		trees, used = nil, 0
	}
	for _, child := range bus.below {
		s := t.branch(child)
		if used > 0 && used+s.w > width {
			flush()
		}
		trees = append(trees, s)
		used += s.w + gap
	}
	flush()
	return blocks
}

func hang(bus *node, trees []scene, again bool) scene {
	const head = 18
	row := flow(math.MaxInt, gap, gap, trees)
	title := bus.name
	if again {
		title += " …"
	}
	out := scene{w: row.w, h: head + barHeight}
	out.parts = []part{{
		class: "bus",
		rects: []rect{{y: head, w: row.w, h: barHeight, radius: 2, class: "bar"}},
		texts: []text{{y: head - 5, style: mono, class: "mut", s: mono.fit(title, row.w)}},
	}}
	out.add(row, 0, head+barHeight)
	return out
}

// branch is a tree below a root bus while it is drawn.
type branch struct {
	right int
	lines []line
	boxes []part
	y     int
}

// line leads from a bridge, or the bus, to what is below.
type line struct {
	node *node
	path path
}

// branch draws what hangs from a root bus in one place.
func (t tree) branch(n *node) scene {
	b := branch{right: t.leaf + indent*depth(n)}
	const drop = 8
	b.y = drop
	b.draw(n, 0, point{indent / 2, 0})
	// What is near is painted over what is far.
	slices.SortStableFunc(b.lines, func(a, b line) int { return rank(b.node.level) - rank(a.node.level) })
	out := scene{w: b.right, h: b.y - gap}
	for _, l := range b.lines {
		out.parts = append(out.parts, part{class: "edge", marks: l.node.marks, paths: []path{l.path}})
	}
	out.parts = append(out.parts, b.boxes...)
	return out
}

func rank(l topology.Level) int {
	if l == topology.Unknown {
		return int(topology.SYS) + 1
	}
	return int(l)
}

// depth is by how many steps the leaves below are moved to the right.
func depth(n *node) int {
	deep := 0
	for _, child := range n.below {
		deep = max(deep, depth(child))
	}
	if n.form == leaf || n.form == rootPort && len(n.below) == 1 {
		return deep
	}
	return deep + 1
}

// draw draws a node at x, b.y; its line comes from a point above.
func (b *branch) draw(n *node, x int, from point) {
	// Down from above, and where the node is not right below, to its side.
	middle := b.y + 14
	points := []point{from, {from.x, b.y}}
	if x > from.x {
		points = []point{from, {from.x, middle}, {x, middle}}
	}
	b.lines = append(b.lines, line{n, path{points, "edge " + levelClass(n.level)}})
	switch n.form {
	case leaf:
		box, h := drawLeaf(n, x, b.y, b.right-x)
		b.boxes = append(b.boxes, box)
		b.y += h + gap
		return
	case rootPort:
		b.boxes = append(b.boxes, b.port(n, x))
	case pcieSwitch, rootBus:
		b.boxes = append(b.boxes, b.bridge(n, x))
	}
	start := point{x + indent/2, b.y - gap}
	step := indent
	if n.form == rootPort && len(n.below) == 1 {
		step = 0
	}
	for _, child := range n.below {
		b.draw(child, x+step, start)
	}
}

// port draws a root port: a line through it, and its name beside.
func (b *branch) port(n *node, x int) part {
	const h = 20
	at := point{x + indent/2, b.y}
	b.y += h
	b.lines = append(b.lines, line{n, path{[]point{at, {at.x, b.y}}, "edge " + levelClass(n.level)}})
	b.y += gap
	room := b.right - x - indent/2 - 7
	s := n.name + " " + n.address
	if small.width(s) > room {
		s = n.address
	}
	return part{
		class: "port", marks: n.marks,
		texts: []text{{x: b.right - room, y: at.y + 13, style: small, class: "mut", s: small.fit(s, room)}},
	}
}

// bridge draws a switch with its ports as one box.
func (b *branch) bridge(n *node, x int) part {
	const h = 38
	w := b.right - x
	y := b.y
	b.y += h + gap
	return part{
		class: "switch", marks: n.marks, label: n.name + " " + n.address + ", " + n.product + ".",
		rects: []rect{{x, y, w, h, 5, "switch"}},
		texts: []text{
			{x: x + padding, y: y + 15, style: strong, class: "ink", s: strong.fit(n.name+" "+n.address, w-2*padding)},
			{x: x + padding, y: y + 30, style: small, class: "mut", s: small.fit(n.product, w-2*padding)},
		},
	}
}
