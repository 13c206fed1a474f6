// Package alike says which nodes of one kind are not alike, and in what: jobs hang or crawl
// when the nodes under them differ in the names of their NICs, the MTU or the number of NICs.
// It is pure: it compares what the agents have published.
package alike

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/fleet/nodes"
	"gdr-features/internal/show"
	"gdr-features/tristate"
)

// Result is how the nodes compare.
type Result struct {
	// Kinds are those with the most nodes first.
	Kinds []Kind
	// Older are nodes whose agent publishes less than is compared, and Unlabelled those
	// without a GPU. Neither are in a kind.
	Older, Unlabelled Names
}

// Name is a node, and the namespace of its agent.
type Name struct {
	Node      string `json:"node"`
	Namespace string `json:"namespace"`
}

// Names are those of nodes, in JSON without namespaces.
type Names []Name

// Kind are nodes with the same GPUs and NICs at the same places; some may lack devices.
type Kind struct {
	// GPUs and NICs are the products of most nodes. Only NICs that jobs use count.
	GPUs  []nodes.Product `json:"gpus"`
	NICs  []nodes.Product `json:"nics"`
	Nodes Names           `json:"nodes"`
	// Differences are in the order of the facts, then of the nodes.
	Differences []Difference `json:"differences"`
	// Unknown counts by the key of a fact the nodes on which it is not known, of at least
	// one NIC or as a whole, among the nodes that have such a NIC.
	Unknown map[string]int `json:"unknown"`
}

// Difference is a fact in which a node differs from the majority of its kind.
type Difference struct {
	Name
	// Fact is "active MTU", and Key the same for programs, "mtu". Job: the nodes of one job
	// should be alike in it.
	Fact string `json:"-"`
	Key  string `json:"fact"`
	Job  bool   `json:"job"`
	// Rail is the NIC that it is about, Address and RDMA that NIC on this node; whole, "" and
	// "" for the node as a whole.
	Rail    Rail   `json:"rail"`
	Address string `json:"address"`
	RDMA    string `json:"rdma"`
	// Here is what the node has, and Most what most have. Detail says more, "" for nothing.
	Here   string `json:"here"`
	Most   string `json:"most"`
	Detail string `json:"detail"`
	// With is how many nodes have Most, and Of of how many the fact is known.
	With int `json:"with"`
	Of   int `json:"of"`
}

// Rail is the number of a NIC among those that jobs use; whole is null in JSON.
type Rail int

const whole Rail = -1

// Compare compares nodes, of which Hardware must have been read. Their order does not matter.
func Compare(all []nodes.Node) Result {
	all = slices.Clone(all)
	nodes.Sort(all)
	r := Result{Kinds: []Kind{}}
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
func (k *Kind) Differing() Names {
	var names Names
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

func (k *kind) compare() Kind {
	main := &k.machines[0]
	out := Kind{GPUs: products(main.gpus), NICs: products(main.nics), Differences: []Difference{}, Unknown: map[string]int{}}
	aligned := make([]map[Rail]device, len(k.machines))
	for i := range k.machines {
		m := &k.machines[i]
		out.Nodes = append(out.Nodes, nameOf(m.node))
		aligned[i] = align(m.nics, main.nics)
	}
	slices.SortFunc(out.Nodes, compareNames)
	for i := range facts {
		found, unknown := k.compareFact(&facts[i], aligned)
		out.Differences = append(out.Differences, found...)
		if unknown > 0 {
			out.Unknown[facts[i].key] = unknown
		}
	}
	return out
}

// compareFact returns the differences in a fact by node, and how many do not know it.
func (k *kind) compareFact(f *fact, aligned []map[Rail]device) (found []Difference, unknown int) {
	main := &k.machines[0]
	first, last := whole, whole
	if f.rail != nil {
		first, last = 0, Rail(len(main.nics))-1
	}
	lacks := map[int]bool{} // the machines of which it is not known
	for rail := first; rail <= last; rail++ {
		values := make([]string, len(k.machines))
		for i := range k.machines {
			nic, ok := aligned[i][rail]
			switch {
			case f.node != nil:
				values[i] = f.node(&k.machines[i])
			case !ok, f.applies != nil && !f.applies(nic.Function):
				continue
			default:
				values[i] = f.rail(nic.Function)
			}
			lacks[i] = lacks[i] || values[i] == ""
		}
		most, with, of := majority(values)
		for i, value := range values {
			if value == "" || value == most {
				continue
			}
			m := &k.machines[i]
			d := Difference{
				Name: nameOf(m.node), Fact: f.name, Key: f.key, Job: f.job, Rail: rail,
				Here: value, Most: most, With: with, Of: of,
			}
			if nic, ok := aligned[i][rail]; ok {
				d.Address, d.RDMA = nic.Address, nic.RDMA
			}
			switch f.key {
			case "nics":
				d.Detail = changes(m.nics, main.nics)
			case "gpus":
				d.Detail = changes(m.gpus, main.gpus)
			}
			found = append(found, d)
		}
	}
	slices.SortStableFunc(found, func(a, b Difference) int {
		return cmp.Or(compareNames(a.Name, b.Name), int(a.Rail-b.Rail))
	})
	for _, is := range lacks {
		if is {
			unknown++
		}
	}
	return found, unknown
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

// changes says which devices are missing or more than most have, as far as places tell.
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
	list := []nodes.Product{}
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

// JSON writes the result. Nothing is folded.
func JSON(w io.Writer, r *Result) error {
	return show.JSON(w, struct {
		Alike   bool    `json:"alike"`
		Kinds   []Kind  `json:"kinds"`
		Older   Names   `json:"older"`
		Summary Summary `json:"summary"`
	}{r.Alike() == tristate.True, r.Kinds, r.Older, r.Summary()})
}

// MarshalJSON implements json.Marshaler.
func (n Names) MarshalJSON() ([]byte, error) { return json.Marshal(n.texts(false)) }

// MarshalJSON implements json.Marshaler.
func (r Rail) MarshalJSON() ([]byte, error) {
	if r == whole {
		return []byte("null"), nil
	}
	return json.Marshal(int(r))
}
