package picture

import (
	"fmt"
	"io"
	"strings"

	"gdr-features/internal/report"
	"gdr-features/topology"
)

// edgeColors are those of the light scheme.
var edgeColors = map[topology.Level]string{
	topology.PIX: "#0a7a55", topology.PXB: "#1d63b8", topology.PHB: "#b78103", topology.NODE: "#d0601a", topology.SYS: "#b0447c",
}

// Dot writes the tree as text for Graphviz: a cluster a NUMA node, the lines
// coloured and named by level.
func Dot(w io.Writer, r *report.Report) error {
	m := newModel(r)
	d := dot{}
	d.f("graph gdr {\n  label=%s\n  labelloc=t\n  rankdir=LR\n  fontname=Helvetica\n", strings.Join(append([]string{m.title, m.counts, m.nothing}, m.notes...), "\n"))
	d.f("  node [shape=box style=\"rounded,filled\" fillcolor=white fontname=Helvetica fontsize=11]\n  edge [fontname=Helvetica fontsize=10 color=\"#8d99aa\"]\n")
	for i, p := range m.panels {
		d.f("  subgraph cluster%d {\n    label=%s\n    style=\"rounded,filled\"\n    fillcolor=\"#f3f5f8\"\n", i, p.title)
		for _, bus := range p.buses {
			d.node(bus)
		}
		d.f("  }\n")
	}
	d.f("}\n")
	_, err := io.WriteString(w, d.String())
	return err
}

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
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(clean(lines[i]))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}

// node writes a node with all below it and gives its number.
func (d *dot) node(n *node) int {
	number := d.nodes
	d.nodes++
	switch n.form {
	case leaf:
		d.leaf(number, n.device)
	case rootBus:
		d.f("    v%d [label=%s fillcolor=\"#3d4a5c\" fontcolor=white]\n", number, n.name)
	case rootPort, pcieSwitch:
		d.f("    v%d [label=%s fillcolor=\"#dfe5ed\"]\n", number, strings.TrimSpace(n.name+" "+n.address+"\n"+n.product))
	}
	for _, child := range n.below {
		to := d.node(child)
		if child.level == topology.Unknown {
			d.f("    v%d -- v%d\n", number, to)
			continue
		}
		d.f("    v%d -- v%d [label=%s color=%s penwidth=2]\n", number, to, child.level.String(), edgeColors[child.level])
	}
	return number
}

func (d *dot) leaf(number int, x *device) {
	words := []string{x.name, x.product, x.address}
	for _, note := range x.notes {
		words = append(words, note.text)
	}
	label := strings.Join(words, "\n")
	switch {
	case !x.counted:
		d.f("    v%d [label=%s style=\"rounded,dashed\"]\n", number, label)
	case x.kind == gpu:
		d.f("    v%d [label=%s fillcolor=\"#222e3f\" fontcolor=white]\n", number, label)
	default:
		d.f("    v%d [label=%s]\n", number, label)
	}
}
