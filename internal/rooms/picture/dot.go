package picture

import (
	"html"
	"io"
	"strconv"
	"strings"

	"gdr-features/internal/report"
	"gdr-features/topology"
)

// Dot writes the PCI tree and the matrix as text for Graphviz: a cluster for each NUMA
// node, and the lines between a GPU and its nearest NICs colored and named by level.
func Dot(w io.Writer, r *report.Report) error {
	m := newModel(r)
	p := paper{text: new(strings.Builder), escape: escapeDot}
	p.put(`graph gdr {
  label="%s"
  labelloc=t
  rankdir=LR
  fontname=Helvetica
  node [shape=box style="rounded,filled" fillcolor=white fontname=Helvetica fontsize=11]
  edge [fontname=Helvetica fontsize=10 color="#8d99aa"]`, lines(m.Title, m.Counts, m.Missing, strings.Join(m.Notes, "\n")))
	next := 0
	for i, panel := range m.Panels {
		p.put(`
  subgraph cluster%s {
    label="%s"
    style="rounded,filled"
    fillcolor="#f3f5f8"`, strconv.Itoa(i), panel.Name)
		for _, bus := range panel.Below {
			next = p.vertex(bus, next)
		}
		p.put("\n  }")
	}
	if m.Missing == "" {
		// A table in DOT is HTML.
		paper{text: p.text, escape: html.EscapeString}.dotMatrix(m)
	}
	p.put("\n}\n")
	return p.writeTo(w)
}

// lost is the color of what a NIC without an active port would have.
const lost = "#b3261e"

// vertex is a numbered node with those below it and the lines to them; next is not used yet.
func (p paper) vertex(n *node, number int) (next int) {
	p.put("\n    v%s [label=", strconv.Itoa(number))
	switch d := n.Device; {
	case d != nil:
		p.put(`"%s"`, lines(d.Name, d.Product, d.Address, d.State))
		if !d.Eligible {
			p.put(` style="rounded,dashed"`)
		} else if d.Kind == gpu {
			p.put(` fillcolor="#222e3f" fontcolor=white`)
		}
	case n.Address != "":
		p.put(`"%s" fillcolor="#dfe5ed"`, lines(n.Name+" "+n.Address, n.Product))
	default:
		p.put(`"%s" fillcolor="#3d4a5c" fontcolor=white`, lines(n.Name))
	}
	p.put("]")
	next = number + 1
	for _, child := range n.Below {
		below := next
		next = p.vertex(child, below)
		p.put("\n    v%s -- v%s", strconv.Itoa(number), strconv.Itoa(below))
		if child.Way != topology.Unknown {
			color, name := light(child.Way).Line, child.Way.String()
			if child.Down {
				color, name = lost, name+" down"
			}
			p.put(` [label="%s" color="%s" penwidth=2]`, name, color)
		}
	}
	return next
}

func (p paper) dotMatrix(m *model) {
	p.put(`
  matrix [shape=plain style="" label=<<table border="0" cellborder="0" cellspacing="2">
    <tr><td>GPU</td>`)
	for _, n := range m.NICs {
		p.put("<td>%s</td>", n.Name)
	}
	p.put("</tr>")
	for i, g := range m.GPUs {
		p.put("\n    <tr><td align=\"left\">%s %s</td>", g.Name, g.Short())
		for j, l := range m.Matrix[i] {
			fill, text := light(l).Fill, light(l).Text
			if m.NICs[j].Down {
				fill, text = "white", lost
			}
			p.put(`<td bgcolor="%s"><font color="%s">%s</font></td>`, fill, text, letters(l))
		}
		p.put("</tr>")
	}
	p.put("\n  </table>>]")
}

// lines makes a text of several lines, without empty ones at its end.
func lines(texts ...string) string { return strings.TrimRight(strings.Join(texts, "\n"), "\n") }

// escapeDot escapes what is within a string of DOT, in which \n, \l, \N are escapes.
func escapeDot(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text)
}
