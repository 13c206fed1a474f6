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

// Select adds a label selector. It may name the published labels with or without their
// prefix.
func (f *Filter) Select(text string) error {
	var err error
	if f.selector, err = labels.Parse(strings.ReplaceAll(text, label.DefaultPrefix, "")); err != nil {
		return err
	}
	requirements, _ := f.selector.Requirements()
	for _, r := range requirements {
		if !label.Ours(r.Key()) {
			return fmt.Errorf("the agent publishes no label %s", r.Key())
		}
	}
	return nil
}

// Pick returns the nodes that match the filter.
func (f *Filter) Pick(all []Node) []Node {
	return slices.DeleteFunc(slices.Clone(all), func(n Node) bool { return !f.Matches(&n) })
}

// Matches reports whether a node matches the filter.
func (f *Filter) Matches(n *Node) bool {
	return (f.Ready == "" || f.Ready == n.state(label.Ready)) &&
		(len(f.Reasons) == 0 || slices.Contains(f.Reasons, n.Labels[label.Reason])) &&
		(f.selector == nil || f.selector.Matches(labels.Set(n.Labels)))
}

// Missing returns the names of which there is no node, sorted.
func Missing(names []string, all []Node) []string {
	missing := slices.Compact(slices.Sorted(slices.Values(names)))
	return slices.DeleteFunc(missing, func(name string) bool {
		return slices.ContainsFunc(all, func(n Node) bool { return n.Name == name })
	})
}
