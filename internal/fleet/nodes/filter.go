package nodes

import (
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
	// Only are the Nodes that it picks among, by name; nil for all.
	Only     map[string]label.Set
	selector labels.Selector
}

// Select adds a label selector. Labels of ours, with or without their prefix, are those that agents
// have published. All others are those of Nodes: ofNodes is the selector for them, "" for none, and
// the caller sets Only to the Nodes that it selects.
func (f *Filter) Select(text string) (ofNodes string, err error) {
	all, err := Selector(text)
	if err != nil {
		return "", err
	}
	requirements, _ := all.Requirements()
	published, others := labels.NewSelector(), labels.NewSelector()
	for _, r := range requirements {
		if name, ok := strings.CutPrefix(r.Key(), label.DefaultPrefix); ok && label.Ours(name) {
			published = published.Add(r)
		} else {
			others = others.Add(r)
		}
	}
	f.selector = published
	return others.String(), nil
}

// Selector is a label selector in which labels of ours have got their prefix.
func Selector(text string) (labels.Selector, error) {
	requirements, err := labels.ParseToRequirements(text)
	if err != nil {
		return nil, err
	}
	selector := labels.NewSelector()
	for _, r := range requirements {
		key := r.Key()
		if label.Ours(key) && !strings.Contains(key, "/") {
			key = label.DefaultPrefix + key
		}
		prefixed, err := labels.NewRequirement(key, r.Operator(), r.ValuesUnsorted())
		if err != nil {
			return nil, err
		}
		selector = selector.Add(*prefixed)
	}
	return selector, nil
}

// Pick returns the nodes that match the filter.
func (f *Filter) Pick(all []Node) []Node {
	return slices.DeleteFunc(slices.Clone(all), func(n Node) bool { return !f.Matches(&n) })
}

// Matches reports whether a node matches the filter.
func (f *Filter) Matches(n *Node) bool {
	return (f.Ready == "" || f.Ready == n.state(label.Ready)) &&
		(len(f.Reasons) == 0 || slices.Contains(f.Reasons, n.Labels[label.Reason])) &&
		(f.Only == nil || f.Only[n.Name] != nil) &&
		(f.selector == nil || f.selector.Matches(labels.Set(n.Labels.Prefixed(label.DefaultPrefix))))
}

// All reports whether every node matches the filter.
func (f *Filter) All() bool {
	return f.Ready == "" && len(f.Reasons) == 0 && f.Only == nil && (f.selector == nil || f.selector.Empty())
}

// Missing returns the names of which there is no node, sorted.
func Missing(names []string, all []Node) []string {
	missing := slices.Compact(slices.Sorted(slices.Values(names)))
	return slices.DeleteFunc(missing, func(name string) bool {
		return slices.ContainsFunc(all, func(n Node) bool { return n.Name == name })
	})
}
