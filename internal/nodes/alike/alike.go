// Package alike says which nodes of one kind are not alike, and in what: jobs hang or crawl
// when the nodes under them differ in the names of their NICs, the MTU or the number of NICs.
// It is pure: it compares what the agents have published.
package alike

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/nodes"
	"gdr-features/tristate"
)

// Result is how the nodes compare.
type Result struct {
	// Kinds are those with the most nodes first.
	Kinds []Kind
	// Older are nodes whose agent publishes less than is compared, and Unlabelled those
	// without a GPU. Neither are in a kind.
	Older, Unlabelled []Name
}

// Name is a node, and the namespace of its agent.
type Name struct{ Node, Namespace string }

// Kind are nodes with the same GPUs and NICs at the same places, but for devices that are
// missing on some.
type Kind struct {
	// GPUs and NICs are the products of most nodes. Of the NICs only those count that jobs
	// use.
	GPUs, NICs []nodes.Product
	Nodes      []Name
	// Differences are in the order of the facts, then of the nodes.
	Differences []Difference
	// Unknown counts by the key of a fact the nodes on which it is not known, of at least
	// one NIC or as a whole, among the nodes that have such a NIC.
	Unknown map[string]int
}

// Difference is a fact in which a node differs from the majority of its kind.
type Difference struct {
	Name
	// Fact is "active MTU", and Key the same for programs, "mtu". Job: a job needs it alike
	// on all nodes of its ranks.
	Fact, Key string
	Job       bool
	// Rail is the number of the NIC that it is about, -1 for the node as a whole. Address and
	// RDMA are that NIC on this node.
	Rail          int
	Address, RDMA string
	// Here is what the node has, and Most what most have. Detail says more, "" for nothing.
	Here, Most, Detail string
	// With is how many nodes have Most, and Of of how many the fact is known.
	With, Of int
}

// Compare compares nodes, of which Hardware must have been read. Their order does not matter.
func Compare(all []nodes.Node) Result {
	all = slices.Clone(all)
	nodes.Sort(all)
	var r Result
	var machines []machine
	for i := range all {
		n := &all[i]
		switch {
		case len(n.Labels) == 0:
			r.Unlabelled = append(r.Unlabelled, nameOf(n))
		case n.Hardware == nil || n.Hardware.Software == nil:
			r.Older = append(r.Older, nameOf(n))
		default:
			machines = append(machines, newMachine(n))
		}
	}
	for _, k := range kindsOf(machines) {
		r.Kinds = append(r.Kinds, k.compare())
	}
	return r
}

// Alike reports whether no node differs from the majority of its kind.
func (r *Result) Alike() tristate.State {
	return tristate.Of(!slices.ContainsFunc(r.Kinds, func(k Kind) bool { return len(k.Differences) > 0 }))
}

// Differing are the nodes of a kind that differ, by name.
func (k *Kind) Differing() []Name {
	var names []Name
	for i := range k.Differences {
		names = append(names, k.Differences[i].Name)
	}
	slices.SortFunc(names, compareNames)
	return slices.Compact(names)
}

func compareNames(a, b Name) int {
	return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Namespace, b.Namespace))
}

func nameOf(n *nodes.Node) Name { return Name{n.Name, n.Namespace} }

// compare compares the machines of a kind.
func (k *kind) compare() Kind {
	main := &k.machines[0]
	out := Kind{GPUs: products(main.gpus), NICs: products(main.nics), Unknown: map[string]int{}}
	aligned := make([]map[int]device, len(k.machines))
	for i := range k.machines {
		m := &k.machines[i]
		out.Nodes = append(out.Nodes, nameOf(m.node))
		aligned[i] = align(m.nics, main.nics)
	}
	slices.SortFunc(out.Nodes, compareNames)
	for i := range facts {
		f := &facts[i]
		if f.node != nil {
			k.compareNodes(f, &out)
		} else {
			k.compareRails(f, aligned, &out)
		}
	}
	order := map[string]int{}
	for i := range facts {
		order[facts[i].key] = i
	}
	slices.SortStableFunc(out.Differences, func(a, b Difference) int {
		return cmp.Or(order[a.Key]-order[b.Key], compareNames(a.Name, b.Name), a.Rail-b.Rail)
	})
	return out
}

func (k *kind) compareNodes(f *fact, out *Kind) {
	values := make([]string, len(k.machines))
	for i := range k.machines {
		if values[i] = f.node(&k.machines[i]); values[i] == "" {
			out.Unknown[f.key]++
		}
	}
	most, with, of := majority(values)
	for i, value := range values {
		if value == "" || value == most {
			continue
		}
		m := &k.machines[i]
		d := Difference{Name: nameOf(m.node), Fact: f.name, Key: f.key, Job: f.job, Rail: -1, Here: value, Most: most, With: with, Of: of}
		switch main := &k.machines[0]; f.key {
		case "nics":
			d.Detail = changes(m.nics, main.nics)
		case "gpus":
			d.Detail = changes(m.gpus, main.gpus)
		}
		out.Differences = append(out.Differences, d)
	}
}

func (k *kind) compareRails(f *fact, aligned []map[int]device, out *Kind) {
	unknown := make([]bool, len(k.machines))
	for rail := range k.machines[0].nics {
		values := make([]string, len(k.machines))
		for i := range k.machines {
			if d, ok := aligned[i][rail]; ok && (f.applies == nil || f.applies(d.Function)) {
				values[i] = f.rail(d.Function)
				unknown[i] = unknown[i] || values[i] == ""
			}
		}
		most, with, of := majority(values)
		for i, value := range values {
			if value == "" || value == most {
				continue
			}
			at := aligned[i][rail]
			out.Differences = append(out.Differences, Difference{
				Name: nameOf(k.machines[i].node), Fact: f.name, Key: f.key, Job: f.job, Rail: rail,
				Address: at.Address, RDMA: at.RDMA, Here: value, Most: most, With: with, Of: of,
			})
		}
	}
	for _, is := range unknown {
		if is {
			out.Unknown[f.key]++
		}
	}
}

// majority returns the most frequent of the values that are known, the first of several, how
// often it is there, and how many are known.
func majority(values []string) (most string, with, of int) {
	counts := map[string]int{}
	for _, v := range values {
		if v != "" {
			counts[v]++
			of++
		}
	}
	for _, v := range values {
		if n := counts[v]; n > with {
			most, with = v, n
		}
	}
	return most, with, of
}

// changes says which devices are missing or more than in the list of the kind, as far as their
// places tell.
func changes(here, most []device) string {
	if common(here, byPlace(most)) == 0 {
		return ""
	}
	var parts []string
	for _, side := range []struct {
		word     string
		of, than []device
	}{{"without", most, here}, {"with", here, most}} {
		than := byPlace(side.than)
		var names []string
		for _, d := range side.of {
			if _, ok := than[d.place]; !ok {
				names = append(names, cmp.Or(d.RDMA, d.Address))
			}
		}
		if len(names) > 0 {
			parts = append(parts, side.word+" "+strings.Join(names, " "))
		}
	}
	return strings.Join(parts, ", ")
}

// products counts devices by name, the most frequent first. A function counts once.
func products(all []device) []nodes.Product {
	var list []nodes.Product
	seen := map[string]bool{}
	for _, d := range all {
		if seen[d.Address] {
			continue
		}
		seen[d.Address] = true
		name := cmp.Or(d.Name, strings.TrimSpace(d.Family+" "+d.Device), strconv.Itoa(len(list)))
		if i := slices.IndexFunc(list, func(p nodes.Product) bool { return p.Name == name }); i >= 0 {
			list[i].Count++
		} else {
			list = append(list, nodes.Product{Name: name, Count: 1})
		}
	}
	slices.SortStableFunc(list, func(a, b nodes.Product) int { return b.Count - a.Count })
	return list
}
