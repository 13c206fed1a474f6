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

// Select adds a label selector. It may name the published labels with or without their
// prefix.
func (f *Filter) Select(text string) error {
	foreign, err := f.selects(text)
	if err == nil && foreign != "" {
		err = fmt.Errorf("the agent publishes no label %s", foreign)
	}
	return err
}

// SelectNodes does the same with a selector that may name other labels of Nodes too. If it
// does, it is returned with the prefix of the published ones, for the API server to apply to
// the Nodes; Only is then to be set to the result.
func (f *Filter) SelectNodes(text string) (ofNodes string, err error) {
	foreign, err := f.selects(text)
	if err != nil || foreign == "" {
		return "", err
	}
	requirements, _ := f.selector.Requirements()
	f.selector = nil
	all := labels.NewSelector()
	for _, r := range requirements {
		key := r.Key()
		if label.Ours(key) {
			key = label.DefaultPrefix + key
		}
		one, err := labels.NewRequirement(key, r.Operator(), r.ValuesUnsorted())
		if err != nil {
			return "", err
		}
		all = all.Add(*one)
	}
	return all.String(), nil
}

// selects adds a selector, and returns the first of its labels that the agent does not
// publish, "" for none.
func (f *Filter) selects(text string) (foreign string, err error) {
	if f.selector, err = labels.Parse(strings.ReplaceAll(text, label.DefaultPrefix, "")); err != nil {
		return "", err
	}
	requirements, _ := f.selector.Requirements()
	for _, r := range requirements {
		if !label.Ours(r.Key()) {
			return r.Key(), nil
		}
	}
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
