package resourceslice

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"gdr-features/internal/label"
	"gdr-features/internal/nodes"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/show"
)

func columns() []nodes.Column[Node] {
	all := []nodes.Column[Node]{
		{Heading: "NAMESPACE", Cell: func(n *Node) string { return n.Agent.Namespace }, In: nodes.WithNamespaces},
		{Heading: "NODE", Cell: func(n *Node) string { return n.Agent.Name }},
		{Heading: "GPUS", Cell: func(n *Node) string { return n.GPUs.String() }},
		{Heading: "NICS", Cell: func(n *Node) string { return n.NICs.String() }},
	}
	var pairs []nodes.Column[Node]
	for _, way := range ways {
		heading := strings.ToUpper(way)
		all = append(all, nodes.Column[Node]{Heading: heading, Cell: func(n *Node) string { return n.matched(way) }})
		pairs = append(pairs, nodes.Column[Node]{Heading: "PAIRS-" + heading, Cell: func(n *Node) string { return n.pairs(way) }, In: nodes.Wide})
	}
	return append(append(all, pairs...),
		nodes.Column[Node]{Heading: "DRIVERS", Cell: func(n *Node) string { return strings.Join(n.Drivers, ",") }, In: nodes.Wide},
		nodes.Column[Node]{Heading: "FINDINGS", Cell: func(n *Node) string { return strings.Join(n.codes(), ",") }})
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
	return nodes.Rows(w, columns(), all, s)
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
	if len(found) > 0 {
		out.WriteByte('\n')
	}
	for _, f := range found {
		fmt.Fprintf(&out, "%s: %s: %s\n    fix: %s\n", f.code, sanitize.Terminal(nodes.Few(on[f])), sanitize.Terminal(f.text), f.fix)
	}
	_, err := w.Write(out.Bytes())
	return err
}

type nodeJSON struct {
	Name      string `json:"node"`
	Namespace string `json:"namespace"` // "" if no agent has published anything
	Align     string `json:"align"`     // the label gdr.align, "" if it is absent
	*Node
}

// JSON writes the nodes.
func JSON(w io.Writer, all []Node) error {
	out := struct {
		Nodes []nodeJSON `json:"nodes"`
	}{[]nodeJSON{}}
	for i := range all {
		agent := &all[i].Agent
		out.Nodes = append(out.Nodes, nodeJSON{agent.Name, agent.Namespace, agent.Labels[label.Align], &all[i]})
	}
	return show.JSON(w, out)
}
