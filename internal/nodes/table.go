package nodes

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"gdr-features/internal/label"
	"gdr-features/internal/sanitize"
)

// Style says what a table shows.
type Style struct {
	// Now is the time that ages are relative to.
	Now time.Time
	// Namespaces and Wide add columns.
	Namespaces, Wide bool
	Headers          bool
}

// column is a heading and what its cells show; "" is shown as a dash.
type column struct {
	heading string
	cell    func(*Node, time.Time) string
}

var (
	namespace = column{"NAMESPACE", func(n *Node, _ time.Time) string { return n.Namespace }}
	narrow    = []column{
		{"NODE", func(n *Node, _ time.Time) string { return n.Name }},
		{"CAPABLE", func(n *Node, _ time.Time) string { return n.state(label.Capable) }},
		{"READY", func(n *Node, _ time.Time) string { return n.state(label.Ready) }},
		of("LEVEL", label.Level),
		of("GPUS", label.GPUs),
		of("NICS", label.NICs),
		{"MECHANISM", func(n *Node, _ time.Time) string { return n.mechanism() }},
		of("MOFED", label.MOFED),
		of("REASON", label.Reason),
		{"AGE", age},
	}
	wide = []column{
		of("BEST", label.BestLevel),
		of("RATE", label.Rate),
		of("LINK", label.Link),
		of("IOMMU", label.IOMMU),
		of("ACS", label.ACS),
		of("PEERDIRECT", label.PeerDirect),
		of("TOPOLOGY", label.Topology),
		of("STORAGE", label.Storage),
		of("EXPECTED", label.Expected),
		{"GPU-PRODUCTS", func(n *Node, _ time.Time) string { return products(n.GPUs) }},
		{"NIC-PRODUCTS", func(n *Node, _ time.Time) string { return products(n.NICs) }},
	}
)

// of returns a column that shows a label.
func of(heading, name string) column {
	return column{heading, func(n *Node, _ time.Time) string { return n.Labels[name] }}
}

// age is the time since the agent last wrote, in kubectl's format.
func age(n *Node, now time.Time) string {
	if n.Written.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(n.Written))
}

func products(all []Product) string {
	var parts []string
	for _, p := range all {
		parts = append(parts, fmt.Sprintf("%dx %s", p.Count, p.Name))
	}
	return strings.Join(parts, ", ")
}

// widest is how many characters a cell may have: a longer one would push the columns of
// all nodes apart.
const widest = 120

// fit shortens a text to its cell and replaces control characters.
func fit(text string) string {
	if runes := []rune(text); len(runes) > widest {
		text = string(runes[:widest-1]) + "…"
	}
	return sanitize.Terminal(text)
}

// Table writes one line a node.
func Table(w io.Writer, all []Node, s Style) error {
	var columns []column
	if s.Namespaces {
		columns = append(columns, namespace)
	}
	columns = append(columns, narrow...)
	if s.Wide {
		columns = append(columns, wide...)
	}
	var out bytes.Buffer
	t := tabwriter.NewWriter(&out, 0, 8, 3, ' ', 0)
	row := func(cell func(column) string) {
		for i, c := range columns {
			text := fit(cell(c))
			if text == "" {
				text = "-"
			}
			if i > 0 {
				text = "\t" + text
			}
			fmt.Fprint(t, text)
		}
		fmt.Fprintln(t)
	}
	if s.Headers {
		row(func(c column) string { return c.heading })
	}
	for i := range all {
		row(func(c column) string { return c.cell(&all[i], s.Now) })
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}

// Text writes the summary: the counts in one line, then one line a reason.
func (s *Summary) Text(w io.Writer) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s, %d ready", plural(s.Nodes, "node"), s.Ready)
	for _, more := range []struct {
		n    int
		what string
	}{{s.NotReady, "not ready"}, {s.Unknown, "unknown"}, {s.Unlabelled, "without labels"}} {
		if more.n > 0 {
			fmt.Fprintf(&out, ", %d %s", more.n, more.what)
		}
	}
	out.WriteByte('\n')
	for _, r := range s.Reasons {
		fmt.Fprintf(&out, "%6d %s\n", r.Nodes, r.Reason)
	}
	_, err := w.Write(out.Bytes())
	return err
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
