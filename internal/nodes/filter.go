package nodes

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"gdr-features/internal/label"
)

// Filter picks nodes. The zero value picks all.
type Filter struct {
	// Ready is "true", "false" or Unknown; "" for any.
	Ready string
	// Reasons are those that a node may have; none for any.
	Reasons  []string
	selector labels.Selector
}

// Select adds a label selector over the published labels, with or without their
// prefix.
func (f *Filter) Select(text string) error {
	selector, err := labels.Parse(text)
	if err != nil {
		return err
	}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if !label.Known(strings.TrimPrefix(r.Key(), label.DefaultPrefix)) {
			return fmt.Errorf("the agent publishes no label %s", r.Key())
		}
	}
	f.selector = selector
	return nil
}

// Pick gives the nodes that the filter lets through.
func (f *Filter) Pick(all []Node) []Node {
	var picked []Node
	for i := range all {
		if f.picks(&all[i]) {
			picked = append(picked, all[i])
		}
	}
	return picked
}

func (f *Filter) picks(n *Node) bool {
	return (f.Ready == "" || f.Ready == n.state(label.Ready)) &&
		(len(f.Reasons) == 0 || slices.Contains(f.Reasons, n.Labels[label.Reason])) &&
		(f.selector == nil || f.selector.Matches(published(n.Labels)))
}

// published are labels that a selector may name with or without prefix.
type published label.Set

// Has implements labels.Labels.
func (p published) Has(key string) bool {
	_, ok := p.Lookup(key)
	return ok
}

// Get implements labels.Labels.
func (p published) Get(key string) string {
	value, _ := p.Lookup(key)
	return value
}

// Lookup implements labels.Labels.
func (p published) Lookup(key string) (value string, ok bool) {
	value, ok = p[strings.TrimPrefix(key, label.DefaultPrefix)]
	return value, ok
}

// Missing gives the names that no node has, sorted.
func Missing(names []string, all []Node) []string {
	var missing []string
	for _, name := range names {
		if !slices.ContainsFunc(all, func(n Node) bool { return n.Name == name }) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}
