package picture

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"strings"

	"gdr-features/internal/report"
	"gdr-features/topology"
)

// Dot writes the PCI tree and the matrix as text for Graphviz: a cluster for each NUMA
// node, and the lines between a GPU and its nearest NICs colored and named by level.
func Dot(w io.Writer, r *report.Report) error {
	m := newModel(r)
	d := dot{}
	d.f("graph gdr {\n  label=%s\n  labelloc=t\n  rankdir=LR\n  fontname=Helvetica\n", strings.Join(append([]string{m.Title, m.Counts, m.Missing}, m.Notes...), "\n"))
	d.f("  node [shape=box style=\"rounded,filled\" fillcolor=white fontname=Helvetica fontsize=11]\n  edge [fontname=Helvetica fontsize=10 color=\"#8d99aa\"]\n")
	for i, p := range m.Panels {
		d.f("  subgraph cluster%d {\n    label=%s\n    style=\"rounded,filled\"\n    fillcolor=\"#f3f5f8\"\n", i, p.Name)
		for _, bus := range p.Below {
			d.node(bus)
		}
		d.f("  }\n")
	}
	if m.Missing == "" {
		d.matrix(m)
	}
	d.f("}\n")
	return write(w, d.String())
}

// dot is a graph with a number of nodes.
type dot struct {
	strings.Builder
	nodes int
}

// f writes by a format; strings are quoted.
func (d *dot) f(format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = quoteDot(s)
		}
	}
	fmt.Fprintf(d, format, args...)
}

// quoteDot makes a string of DOT, in which \n, \l, \N and others are escapes.
func quoteDot(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.TrimRight(s, "\n"))
	return `"` + s + `"`
}

// node writes a node with all below it and gives its number.
func (d *dot) node(n *node) int {
	number := d.nodes
	d.nodes++
	switch n.Form {
	case leaf:
		d.leaf(number, n.Device)
	case rootBus, numaNode:
		d.f("    v%d [label=%s fillcolor=\"#3d4a5c\" fontcolor=white]\n", number, n.Name)
	case rootPort, pcieSwitch:
		d.f("    v%d [label=%s fillcolor=\"#dfe5ed\"]\n", number, n.Name+" "+n.Address+"\n"+n.Product)
	}
	for _, child := range n.Below {
		to := d.node(child)
		if child.way == topology.Unknown {
			d.f("    v%d -- v%d\n", number, to)
			continue
		}
		d.f("    v%d -- v%d [label=%s color=%s penwidth=2]\n", number, to, child.way.String(), light(child.way).Line)
	}
	return number
}

func (d *dot) leaf(number int, x *device) {
	label := strings.Join([]string{x.Name, x.Product, x.Address, x.State}, "\n")
	switch {
	case !x.Eligible:
		d.f("    v%d [label=%s style=\"rounded,dashed\"]\n", number, label)
	case x.Kind == gpu:
		d.f("    v%d [label=%s fillcolor=\"#222e3f\" fontcolor=white]\n", number, label)
	default:
		d.f("    v%d [label=%s]\n", number, label)
	}
}

// matrix writes the levels of all pairs as a node that is a table.
func (d *dot) matrix(m *model) {
	cell := func(attributes, text string) {
		fmt.Fprintf(d, "<td%s>%s</td>", attributes, html.EscapeString(text))
	}
	d.f("  matrix [shape=plain style=\"\" label=<<table border=\"0\" cellborder=\"0\" cellspacing=\"2\">\n    <tr>")
	cell("", "GPU")
	for _, n := range m.NICs {
		cell("", n.Name)
	}
	for i, g := range m.GPUs {
		d.f("</tr>\n    <tr>")
		cell(` align="left"`, g.Name+" "+g.Short())
		for _, level := range m.Matrix[i] {
			c := light(level)
			fmt.Fprintf(d, `<td bgcolor="%s"><font color="%s">%s</font></td>`, c.Fill, c.Text, cmp.Or(level.String(), "?"))
		}
	}
	d.f("</tr>\n  </table>>]\n")
}
