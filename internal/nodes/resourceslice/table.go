package resourceslice

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"gdr-features/internal/nodes"
	"gdr-features/internal/sanitize"
)

func columns(s nodes.Style) []nodes.Column[Node] {
	var all []nodes.Column[Node]
	if s.Namespaces {
		all = append(all, nodes.Column[Node]{Heading: "NAMESPACE", Cell: func(n *Node) string { return n.Agent.Namespace }})
	}
	all = append(all,
		nodes.Column[Node]{Heading: "NODE", Cell: func(n *Node) string { return n.Agent.Name }},
		nodes.Column[Node]{Heading: "GPUS", Cell: func(n *Node) string { return n.GPUs.String() }},
		nodes.Column[Node]{Heading: "NICS", Cell: func(n *Node) string { return n.NICs.String() }})
	for _, way := range ways {
		all = append(all, nodes.Column[Node]{Heading: strings.ToUpper(way), Cell: func(n *Node) string { return n.matched(way) }})
	}
	if s.Wide {
		for _, way := range ways {
			all = append(all, nodes.Column[Node]{Heading: "PAIRS-" + strings.ToUpper(way), Cell: func(n *Node) string { return n.pairs(way) }})
		}
		all = append(all, nodes.Column[Node]{Heading: "DRIVERS", Cell: func(n *Node) string { return strings.Join(n.Drivers, ",") }})
	}
	return append(all, nodes.Column[Node]{Heading: "FINDINGS", Cell: func(n *Node) string { return strings.Join(n.codes(), ",") }})
}

// String is "7/8": published of listed.
func (c Count) String() string { return fmt.Sprintf("%d/%d", c.Published, c.Listed) }

// matched is "4/8 PIX": how many of the published GPUs, and the farthest level.
func (n *Node) matched(way string) string {
	if n.GPUs.Published == 0 {
		return ""
	}
	m := n.Matches[way]
	return strings.TrimSpace(fmt.Sprintf("%d/%d %s", m.GPUs, n.GPUs.Published, m.Level))
}

func (n *Node) pairs(way string) string {
	if n.GPUs.Published == 0 {
		return ""
	}
	return fmt.Sprint(n.Matches[way].Pairs)
}

// codes are those of the findings, each once.
func (n *Node) codes() (codes []string) {
	for _, f := range n.Findings {
		if !slices.Contains(codes, f.Code) {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

// Table writes one line a node.
func Table(w io.Writer, all []Node, s nodes.Style) error {
	return nodes.Rows(w, columns(s), all, s.Headers)
}

// Text writes an empty line and the findings, if any, each once with the nodes that have it, and what to do.
func Text(w io.Writer, all []Node) error {
	type finding struct{ code, text, fix string }
	var found []finding
	on := map[finding][]string{}
	for i := range all {
		for _, f := range all[i].Findings {
			one := finding{f.Code, f.Text, f.Fix}
			if on[one] == nil {
				found = append(found, one)
			}
			on[one] = append(on[one], all[i].Agent.Name)
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int {
		return cmp.Or(order(a.code, b.code), len(on[b])-len(on[a]))
	})
	var out bytes.Buffer
	for i, f := range found {
		if i == 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintf(&out, "%s: %s: %s\n    fix: %s\n", f.code, sanitize.Terminal(few(on[f])), sanitize.Terminal(f.text), f.fix)
	}
	_, err := w.Write(out.Bytes())
	return err
}
