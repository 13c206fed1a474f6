package alike

import (
	"io"

	"gdr-features/internal/nodes"
	"gdr-features/internal/show"
	"gdr-features/tristate"
)

type resultJSON struct {
	Alike   bool       `json:"alike"`
	Kinds   []kindJSON `json:"kinds"`
	Older   []string   `json:"older"`
	Summary Summary    `json:"summary"`
}

type kindJSON struct {
	GPUs        []nodes.Product  `json:"gpus"`
	NICs        []nodes.Product  `json:"nics"`
	Nodes       []string         `json:"nodes"`
	Differences []differenceJSON `json:"differences"`
	// Unknown counts nodes by fact.
	Unknown map[string]int `json:"unknown"`
}

type differenceJSON struct {
	Node      string `json:"node"`
	Namespace string `json:"namespace"`
	Fact      string `json:"fact"` // one stable word
	Job       bool   `json:"job"`
	Rail      *int   `json:"rail"` // null for the node as a whole; then address and rdma are ""
	Address   string `json:"address"`
	RDMA      string `json:"rdma"`
	Here      string `json:"here"`
	Most      string `json:"most"`
	Detail    string `json:"detail"`
	With      int    `json:"with"` // nodes that have most, of so many of which it is known
	Of        int    `json:"of"`
}

// JSON writes the result. Nothing is folded.
func JSON(w io.Writer, r *Result) error {
	out := resultJSON{
		Alike: r.Alike() == tristate.True, Kinds: []kindJSON{}, Older: append([]string{}, names(r.Older, false)...), Summary: r.Summary(),
	}
	for i := range r.Kinds {
		k := &r.Kinds[i]
		one := kindJSON{
			GPUs: append([]nodes.Product{}, k.GPUs...), NICs: append([]nodes.Product{}, k.NICs...),
			Nodes: names(k.Nodes, false), Differences: []differenceJSON{}, Unknown: k.Unknown,
		}
		for j := range k.Differences {
			one.Differences = append(one.Differences, k.Differences[j].json())
		}
		out.Kinds = append(out.Kinds, one)
	}
	return show.JSON(w, out)
}

func (d *Difference) json() differenceJSON {
	out := differenceJSON{
		Node: d.Node, Namespace: d.Namespace, Fact: d.Key, Job: d.Job, Address: d.Address, RDMA: d.RDMA,
		Here: d.Here, Most: d.Most, Detail: d.Detail, With: d.With, Of: d.Of,
	}
	if d.Rail >= 0 {
		out.Rail = &d.Rail
	}
	return out
}
