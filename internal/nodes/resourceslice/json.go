package resourceslice

import (
	"io"

	"gdr-features/internal/label"
	"gdr-features/internal/show"
)

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
