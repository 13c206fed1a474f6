package nodes

import (
	"cmp"
	"fmt"
	"slices"

	"gdr-features/internal/label"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/show"
)

// Waiting says which of the selected nodes are not ready yet, "" for none. all are those that have
// published something, and names those that were named. A selected node that has published nothing
// counts, as far as names, Nodes or the number of agents tell of it; and so does a node whose label
// is not on its Node, which schedulers look at. Nodes, agents or Pods that there is no right to read
// are left out; what could not be read just now is waited for.
func (f *Filter) Waiting(all []Node, names []string, c *Cluster) string {
	picked, ready := f.Pick(all), 0
	var not []string
	for i := range picked {
		n := &picked[i]
		switch {
		case n.state(label.Ready) != "true":
			not = append(not, fmt.Sprintf("%s (%s)", n.Name, cmp.Or(n.Labels[label.Reason], "no labels")))
		case !c.OnNode(n, label.Ready):
			not = append(not, n.Name+" ("+notOnNode(c.Labels[n.Name][label.Ready])+")")
		default:
			ready++
		}
	}
	expected := slices.Clone(names)
	if len(names) == 0 {
		for name := range f.Only {
			expected = append(expected, name)
		}
	}
	for _, name := range Missing(expected, all) {
		not = append(not, name+" (nothing published)")
	}
	unread := slices.IndexFunc(c.NotRead, func(n NotRead) bool { return !n.Denied })
	published := 0 // by agents that run
	for i := range all {
		if _, runs := c.Pods[all[i].Name]; runs || c.Pods == nil {
			published++
		}
	}
	text := fmt.Sprintf("%d of %s ready", ready, show.Count(ready+len(not), "node"))
	switch {
	case len(not) > 0:
		return text + ", waiting for " + sanitize.Terminal(Few(not))
	case len(expected) == 0 && c.Agents != nil && c.Agents.Wanted > published:
		return fmt.Sprintf("%s, but %d of %s have published nothing", text, c.Agents.Wanted-published, show.Count(c.Agents.Wanted, "agent"))
	case ready == 0:
		return "no node matches"
	case unread >= 0:
		return fmt.Sprintf("%s, but the %ss could not be read: %s", text, c.NotRead[unread].Kind, sanitize.Terminal(c.NotRead[unread].Why))
	}
	return ""
}

// notOnNode says what a Node has in place of the label that its agent has published.
func notOnNode(value string) string {
	if value == "" {
		return "label not on the Node"
	}
	return label.Ready + " is " + value + " on the Node"
}
