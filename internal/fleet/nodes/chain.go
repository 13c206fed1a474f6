package nodes

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"gdr-features/internal/label"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/show"
)

// Cluster is what an API server has beside the NodeFeatures. What could not be read is nil.
type Cluster struct {
	Agents *Agents
	// Pods are those of agents, by node: whether one is ready.
	Pods map[string]bool
	// Labels are those of ours that each Node has. AllNodes tells whether no Node is left out.
	Labels   map[string]label.Set
	AllNodes bool
	// Whole tells whether the NodeFeatures of all agents and all nodes were read.
	Whole bool
	// NotRead is what could not be read.
	NotRead []NotRead
}

// Agents counts the Pods of the DaemonSets of agents.
type Agents struct {
	Ready  int `json:"ready"`
	Wanted int `json:"wanted"`
}

// NotRead is a kind of objects that could not be read.
type NotRead struct {
	Kind string `json:"kind"` // "Node"
	Why  string `json:"why"`
	// Denied: there is no right to read it, which waiting does not change.
	Denied bool `json:"-"`
}

// Chain says what is wrong between agents and the labels of Nodes. Lists are null where what they
// follow from could not be read.
type Chain struct {
	Agents *Agents `json:"agents"`
	// NotReady are the nodes whose agent is not ready, as far as it is known where one is missing.
	NotReady     []string  `json:"notReady"`
	Differing    []Differs `json:"differing"`
	WithoutAgent []string  `json:"withoutAgent"`
	// Unpublished are the Nodes with labels of which there is no NodeFeature of an agent. It is null
	// where not all Nodes and all NodeFeatures of agents were read.
	Unpublished []Differs `json:"unpublished"`
	// Cause is the likely cause of what differs, "" for nothing.
	Cause   string    `json:"cause"`
	NotRead []NotRead `json:"notRead"`
}

// Differs is a Node with other labels than its agent published.
type Differs struct {
	Node string `json:"node"`
	// Seconds since the agent published: it cannot differ for longer. Null for unknown.
	Seconds *int        `json:"seconds"`
	Labels  []Different `json:"labels"`
}

// Different is a label, with the values that it has in the two places, "" for none.
type Different struct {
	Label     string `json:"label"`
	OnNode    string `json:"onNode"`
	Published string `json:"published"`
}

// Chain compares what the agents of nodes have published with what the cluster has.
func (c *Cluster) Chain(all []Node, now time.Time) Chain {
	chain := Chain{Agents: c.Agents, NotReady: c.notReady(), NotRead: append([]NotRead{}, c.NotRead...)}
	if c.Labels != nil {
		chain.Differing = []Differs{}
	}
	if c.Pods != nil || c.Labels != nil {
		chain.WithoutAgent = []string{}
	}
	arrived := false // a label that was published, on a Node that differs
	for i := range all {
		n := &all[i]
		onNode, exists := c.Labels[n.Name]
		_, runs := c.Pods[n.Name]
		if c.Pods != nil && !runs || c.Labels != nil && !exists {
			chain.WithoutAgent = append(chain.WithoutAgent, n.Name)
		}
		if differs := different(onNode, n.Labels); exists && len(differs) > 0 {
			arrived = arrived || len(n.Labels) == 0
			for name := range n.Labels {
				arrived = arrived || onNode[name] != ""
			}
			chain.Differing = append(chain.Differing, Differs{n.Name, seconds(n.Written, now), differs})
		}
	}
	chain.Unpublished = c.unpublished(all)
	if len(chain.Differing) > 0 {
		chain.Cause = cause(chain.Differing, arrived)
	}
	return chain
}

// notReady are the nodes with a Pod of an agent that is not ready, and, if Nodes have no Pod and just so
// many are missing, these. It is nil if the Pods could not be read.
func (c *Cluster) notReady() []string {
	if c.Pods == nil {
		return nil
	}
	names, without := []string{}, []string{}
	for name, ready := range c.Pods {
		if !ready {
			names = append(names, name)
		}
	}
	for name := range c.Labels {
		if _, has := c.Pods[name]; !has {
			without = append(without, name)
		}
	}
	if c.AllNodes && c.Agents != nil && c.Agents.Ready < c.Agents.Wanted && len(without) == c.Agents.Wanted-len(c.Pods) {
		names = append(names, without...)
	}
	slices.Sort(names)
	return names
}

// unpublished are the Nodes with labels of which no agent has published a NodeFeature, nil for unknown.
// The labels may be right all the same: those of a feature file are in an object of NFD's own.
func (c *Cluster) unpublished(all []Node) []Differs {
	if !c.AllNodes || !c.Whole {
		return nil
	}
	published := map[string]bool{}
	for i := range all {
		published[all[i].Name] = true
	}
	found := []Differs{}
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		if onNode := c.Labels[name]; len(onNode) > 0 && !published[name] {
			found = append(found, Differs{Node: name, Labels: different(onNode, nil)})
		}
	}
	return found
}

// OnNode reports whether the Node of a node has a label as its agent has published it, or may have:
// the Nodes could not be read.
func (c *Cluster) OnNode(n *Node, name string) bool {
	return c.Labels == nil || c.Labels[n.Name][name] == n.Labels[name]
}

func different(onNode, published label.Set) (all []Different) {
	names := slices.Concat(onNode.Names(), published.Names())
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if a, b := onNode[name], published[name]; a != b {
			all = append(all, Different{name, a, b})
		}
	}
	return all
}

func seconds(since, now time.Time) *int {
	if since.IsZero() {
		return nil
	}
	n := max(0, int(now.Sub(since)/time.Second))
	return &n
}

// Likely causes. Node Feature Discovery 0.19 with allowOverwrite false adds labels and removes them,
// and changes none (pkg/nfd-master/nfd-master.go, createPatches).
const (
	fresh      = "Node Feature Discovery needs a few seconds"
	noneCame   = "nfd-master does not run, or its configuration keeps the labels back"
	onlyValues = "changed by hand, nfd-master does not run, or allowOverwrite is false"
	someCame   = "nfd-master does not run, has restrictions, or its updates fail"
	leftBehind = "left by a NodeFeature that is gone, or set in another way"
)

// settled is when Node Feature Discovery should have done what an agent has published.
const settled = 15 // seconds

func cause(all []Differs, arrived bool) string {
	changed, recent := true, true
	for _, d := range all {
		recent = recent && d.Seconds != nil && *d.Seconds < settled
		for _, l := range d.Labels {
			changed = changed && l.OnNode != "" && l.Published != ""
		}
	}
	switch {
	case recent:
		return fresh
	case !arrived:
		return noneCame
	case changed:
		return onlyValues
	}
	return someCame
}

// page tells what to do about a chain that is broken.
const page = "docs/oncall.md#do-the-labels-reach-the-nodes"

// Text writes a line, and one for each thing that is wrong.
func (c *Chain) Text(w io.Writer) error {
	var out bytes.Buffer
	var parts []string
	if a := c.Agents; a != nil {
		parts = append(parts, fmt.Sprintf("%d of %s ready", a.Ready, show.Count(a.Wanted, "agent")))
	}
	if c.Differing != nil {
		parts = append(parts, c.differing())
	}
	if n := len(c.WithoutAgent); n > 0 {
		parts = append(parts, show.Count(n, "NodeFeature")+" without agent")
	}
	if n := len(c.Unpublished); n > 0 {
		parts = append(parts, "labels without an agent's NodeFeature on "+show.Count(n, "Node"))
	}
	if len(parts) == 0 {
		parts = []string{"unknown"}
	}
	fmt.Fprintln(&out, inLines("chain: ", parts))
	if len(c.NotReady) > 0 {
		fmt.Fprintln(&out, inLines("  agents:  not ready on ", few(c.NotReady)))
	}
	if c.Cause != "" {
		fmt.Fprintln(&out, inLines("  differs: ", examples(c.Differing)))
		fmt.Fprintf(&out, "  likely:  %s\n           (%s)\n", c.Cause, page)
	}
	if len(c.WithoutAgent) > 0 {
		fmt.Fprintln(&out, inLines("  without: ", few(c.WithoutAgent)))
	}
	if len(c.Unpublished) > 0 {
		fmt.Fprintln(&out, inLines("  labels:  ", examples(c.Unpublished)))
		fmt.Fprintf(&out, "  likely:  %s\n           (%s)\n", leftBehind, page)
	}
	for _, n := range c.NotRead {
		fmt.Fprintf(&out, "  not read: %ss: %s\n", n.Kind, sanitize.Terminal(n.Why))
	}
	_, err := w.Write(out.Bytes())
	return err
}

// inLines writes parts with commas between them, after a heading, and goes on below the first part
// where a line would have more than 80 columns.
func inLines(heading string, parts []string) string {
	const most = 80
	text, column := heading, len(heading)
	for i, part := range parts {
		if i < len(parts)-1 {
			part += ","
		}
		switch {
		case i == 0:
		case column+1+len(part) > most:
			text, column = text+"\n"+strings.Repeat(" ", len(heading)), len(heading)
		default:
			text, column = text+" ", column+1
		}
		text, column = text+part, column+len(part)
	}
	return text
}

// differing is "2 Nodes differ (340 s)", with the longest time.
func (c *Chain) differing() string {
	if len(c.Differing) == 0 {
		return "no Node differs"
	}
	most, known := 0, false
	for _, d := range c.Differing {
		if d.Seconds != nil {
			most, known = max(most, *d.Seconds), true
		}
	}
	text := "1 Node differs"
	if n := len(c.Differing); n > 1 {
		text = show.Count(n, "Node") + " differ"
	}
	if known {
		text += fmt.Sprintf(" (%d s)", most)
	}
	return text
}

// examples are "hgx-2 (gpudirect.rdma is true, published false)", "hgx-3", "hgx-4 and 5 more".
func examples(all []Differs) []string {
	var names []string
	for _, d := range all {
		names = append(names, d.Node)
	}
	first := all[0].Labels
	shown := first[max(0, slices.IndexFunc(first, func(l Different) bool { return l.Label == label.Ready }))]
	parts := few(names)
	parts[0] += sanitize.Terminal(fmt.Sprintf(" (%s is %s, published %s)", shown.Label, cmp.Or(shown.OnNode, "absent"), cmp.Or(shown.Published, "none")))
	return parts
}

// few are the first of many names, as Few has them.
func few(names []string) []string { return strings.Split(sanitize.Terminal(Few(names)), ", ") }
