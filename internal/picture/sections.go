package picture

import (
	"fmt"
	"strings"

	"gdr-features/internal/findings"
	"gdr-features/internal/view"
	"gdr-features/topology"
)

// drawWhole lays out everything on one sheet: the verdict, the tree, the levels
// explained, the matrix, what to do.
func drawWhole(m *model) scene {
	tree := drawTree(m)
	width := max(tree.w, fullWidth/2)
	return below(16, drawTitle(m, width), tree, drawLegend(m, width), drawMatrix(m, width), drawChecks(m, width))
}

func drawTitle(m *model, width int) scene {
	title := style{size: 18, bold: true}
	p := part{class: "title"}
	y := 0
	for _, line := range title.wrap(m.title, width, 2) {
		y += 22
		p.texts = append(p.texts, text{x: 0, y: y, style: title, class: "ink", s: line})
	}
	y += 18
	sub := m.counts
	if m.nothing != "" {
		sub = m.nothing
	}
	p.texts = append(p.texts, text{x: 0, y: y, style: plain, class: "mut", s: plain.fit(sub, width)})
	return scene{w: width, h: y + 6, parts: []part{p}}
}

// drawLegend explains the levels that there are, and what is not drawn.
func drawLegend(m *model, width int) scene {
	if len(m.levels) == 0 || len(m.nics) == 0 {
		return drawLines(m.notes, width)
	}
	var entries []scene
	for _, e := range m.legend {
		badge := badgeFor(e.level, 0, 0)
		w := badge.rects[0].w
		p := part{class: "legend"}.with(badge, w, 0)
		p.texts = append(p.texts, text{x: w + 6, y: 13, style: plain, class: "mut", s: e.meaning})
		entries = append(entries, scene{w: w + 6 + plain.width(e.meaning), h: 18, parts: []part{p}})
	}
	return below(4, flow(width, 14, 4, entries), drawLines(m.notes, width))
}

// with adds the rectangles and texts of another part, moved.
func (p part) with(o part, dx, dy int) part {
	o = o.moved(dx, dy)
	p.rects, p.texts = append(p.rects, o.rects...), append(p.texts, o.texts...)
	return p
}

// drawLines sets some sentences, a line or two each.
func drawLines(sentences []string, width int) scene {
	p := part{class: "lines"}
	y := 0
	for _, s := range sentences {
		for _, line := range plain.wrap(s, width, 2) {
			y += 16
			p.texts = append(p.texts, text{x: 0, y: y - 4, style: plain, class: "mut", s: line})
		}
	}
	if y == 0 {
		return scene{}
	}
	return scene{w: width, h: y, parts: []part{p}}
}

// rowName is the room for a GPU's name before its address.
const rowName = 52

// drawMatrix draws the matrix, in several pieces where the NICs are too many for
// one.
func drawMatrix(m *model, width int) scene {
	if m.nothing != "" {
		return scene{}
	}
	head, wide := 0, 50
	for _, g := range m.gpus {
		head = max(head, rowName+mono.width(view.Short(g.address))+12)
	}
	for _, n := range m.nics {
		wide = max(wide, min(strong.width(clean(n.name))+10, leastLeaf))
	}
	columns := max(1, (width-head)/wide)
	var pieces []scene
	for from := 0; from < len(m.nics); from += columns {
		pieces = append(pieces, drawCells(m, from, min(from+columns, len(m.nics)), head, wide))
	}
	return below(gap, pieces...)
}

// drawCells draws the columns of the matrix from one to another, with a head of
// a width before each row.
func drawCells(m *model, from, to, head, wide int) scene {
	const high, space = 22, 2
	out := scene{w: head + (to-from)*wide, h: (len(m.gpus) + 1) * high}
	top := part{class: "row"}
	for j := from; j < to; j++ {
		n := m.nics[j]
		top.texts = append(top.texts, text{x: head + (j-from)*wide + (wide-space)/2, y: 15, align: middle, style: strong, class: "ink", s: strong.fit(n.name, wide-space)})
	}
	out.parts = append(out.parts, top)
	for i, g := range m.gpus {
		y := (i + 1) * high
		row := part{class: "row", marks: rowMarks(g), texts: []text{
			{x: 0, y: y + 15, style: strong, class: "ink", s: g.name},
			{x: head - 12, y: y + 15, align: end, style: mono, class: "mut", s: view.Short(g.address)},
		}}
		var said []string
		for j := from; j < to; j++ {
			level := m.levels[i][j]
			x := head + (j-from)*wide
			row.rects = append(row.rects, rect{x, y, wide - space, high - space, 3, "cell " + levelClass(level)})
			row.texts = append(row.texts, text{x: x + (wide-space)/2, y: y + 15, align: middle, style: strong, class: "on-" + levelClass(level), s: levelWord(level)})
			said = append(said, m.nics[j].name+" "+saidLevel(level))
		}
		row.label = g.name + ": " + strings.Join(said, ", ") + "."
		out.parts = append(out.parts, row)
	}
	return out
}

// rowMarks are the devices with which a row of the matrix stays bright.
func rowMarks(g *device) []string {
	marks := []string{g.id}
	for _, n := range g.near {
		marks = append(marks, n.id)
	}
	return marks
}

func saidLevel(l topology.Level) string {
	if l == topology.Unknown {
		return "unknown"
	}
	return l.String()
}

// drawChecks tells what is wrong and what to do about it.
func drawChecks(m *model, width int) scene {
	p := part{class: "checks"}
	y := 0
	write := func(s style, class, line string, x, lines int) {
		for _, t := range s.wrap(line, width-x, lines) {
			y += 16
			p.texts = append(p.texts, text{x: x, y: y - 4, style: s, class: class, s: t})
		}
	}
	fine := 0
	for _, f := range m.checks {
		if f.Status == findings.OK {
			fine++
			continue
		}
		write(strong, "ink", fmt.Sprintf("%s  %s", f.Status, f.Check), 0, 1)
		write(plain, "mut", detail(f), padding, 4)
		if f.Fix != "" {
			write(plain, "ink", "fix: "+f.Fix, padding, 4)
		}
		y += 4
	}
	if fine > 0 {
		write(plain, "mut", fmt.Sprintf("%s of %d OK", count(fine, "check"), len(m.checks)), 0, 1)
	}
	if n := len(m.unread); n > 0 {
		write(plain, "mut", count(n, "fact")+" not readable: "+m.unread[0], 0, 2)
	}
	if y == 0 {
		return scene{}
	}
	return scene{w: width, h: y, parts: []part{p}}
}

// detail is what was found, after the verdict's word for it.
func detail(f findings.Finding) string {
	if f.Reason == "" {
		return f.Detail
	}
	return string(f.Reason) + ": " + f.Detail
}
