package resourceslice

import (
	"io"

	"gdr-features/internal/label"
	"gdr-features/internal/nodes"
)

type nodeJSON struct {
	Node      string           `json:"node"`
	Namespace string           `json:"namespace"` // "" if no agent has published anything
	Align     string           `json:"align"`     // the label gdr.align, "" if it is absent
	Drivers   []string         `json:"drivers"`
	GPUs      Count            `json:"gpus"`
	NICs      Count            `json:"nics"`
	Matches   map[string]Match `json:"matches"`
	Findings  []Finding        `json:"findings"`
}

// JSON writes the nodes.
func JSON(w io.Writer, all []Node) error {
	out := struct {
		Nodes []nodeJSON `json:"nodes"`
	}{[]nodeJSON{}}
	for i := range all {
		n := &all[i]
		one := nodeJSON{
			Node: n.Agent.Name, Namespace: n.Agent.Namespace, Align: n.Agent.Labels[label.Align], Drivers: append([]string{}, n.Drivers...),
			GPUs: n.GPUs, NICs: n.NICs, Matches: map[string]Match{}, Findings: append([]Finding{}, n.Findings...),
		}
		for way := range Ways {
			one.Matches[Ways[way].Name] = n.Matches[way]
		}
		out.Nodes = append(out.Nodes, one)
	}
	return nodes.WriteJSON(w, out)
}
