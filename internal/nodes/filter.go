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
	Reasons []string
	// Only are the names of the nodes that it picks among; nil for all.
	Only     map[string]bool
	selector labels.Selector
}

// Select adds a label selector, which names published labels, with or without their prefix.
// With others it may name other labels of Nodes too; then nothing is added, and ofNodes is the
// selector with all prefixes: the caller asks the API server which Nodes it selects, and sets
// Only to them.
func (f *Filter) Select(text string, others bool) (ofNodes string, err error) {
	parsed, err := labels.Parse(text)
	if err != nil {
		return "", err
	}
	requirements, _ := parsed.Requirements()
	name := func(r labels.Requirement) string { return strings.TrimPrefix(r.Key(), label.DefaultPrefix) }
	foreign := slices.IndexFunc(requirements, func(r labels.Requirement) bool { return !label.Ours(name(r)) })
	prefix := ""
	if foreign >= 0 {
		if !others {
			return "", fmt.Errorf("the agent publishes no label %s", requirements[foreign].Key())
		}
		prefix = label.DefaultPrefix
	}
	selector := labels.NewSelector()
	for _, r := range requirements {
		key := r.Key()
		if label.Ours(name(r)) {
			key = prefix + name(r)
		}
		one, err := labels.NewRequirement(key, r.Operator(), r.ValuesUnsorted())
		if err != nil {
			return "", err
		}
		selector = selector.Add(*one)
	}
	if foreign >= 0 {
		return selector.String(), nil
	}
	f.selector = selector
	return "", nil
}

// Pick returns the nodes that match the filter.
func (f *Filter) Pick(all []Node) []Node {
	return slices.DeleteFunc(slices.Clone(all), func(n Node) bool { return !f.Matches(&n) })
}

// Matches reports whether a node matches the filter.
func (f *Filter) Matches(n *Node) bool {
	return (f.Ready == "" || f.Ready == n.state(label.Ready)) &&
		(len(f.Reasons) == 0 || slices.Contains(f.Reasons, n.Labels[label.Reason])) &&
		(f.Only == nil || f.Only[n.Name]) &&
		(f.selector == nil || f.selector.Matches(labels.Set(n.Labels)))
}

// Missing returns the names of which there is no node, sorted.
func Missing(names []string, all []Node) []string {
	missing := slices.Compact(slices.Sorted(slices.Values(names)))
	return slices.DeleteFunc(missing, func(name string) bool {
		return slices.ContainsFunc(all, func(n Node) bool { return n.Name == name })
	})
}
