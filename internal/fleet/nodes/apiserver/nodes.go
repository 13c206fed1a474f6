package apiserver

import (
	"cmp"
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"gdr-features/internal/fleet/nodes"
	"gdr-features/internal/journal"
	"gdr-features/internal/label"
)

const (
	manager = "gdr-features"
	// nodeName is the label of a NodeFeature that names its node. No other label selects those of
	// our agents: whoever takes such a label away must not hide the node.
	nodeName = "nfd.node.kubernetes.io/node-name"
	// mostNames is how many nodes are selected by name: the URL must not be too long.
	mostNames = 100
)

var nodeFeatures = resource{
	version: schema.GroupVersion{Group: "nfd.k8s-sigs.io", Version: "v1alpha1"}, name: "nodefeatures", kind: "NodeFeature",
	right:  "bind the ClusterRole gdr-features-reader of deploy/examples/reader.yaml",
	source: "install Node Feature Discovery 0.14 or newer",
}

// metadata is what is used of that of any object.
type metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels"`
	Annotations struct {
		Journal string `json:"gdr-features/journal"`
		Network string `json:"k8s.v1.cni.cncf.io/resourceName"`
	} `json:"annotations"`
	ManagedFields []struct {
		Manager string       `json:"manager"`
		Time    *metav1.Time `json:"time"`
	} `json:"managedFields"`
}

type object struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Labels   map[string]string `json:"labels"`
		Features struct {
			Attributes struct {
				State *struct {
					Elements state `json:"elements"`
				} `json:"gdr.state"`
			} `json:"attributes"`
			Instances struct {
				GPUs     instances[nodes.Function] `json:"gdr.gpu"`
				NICs     instances[nodes.Function] `json:"gdr.nic"`
				Findings instances[nodes.Finding]  `json:"gdr.finding"`
			} `json:"instances"`
		} `json:"features"`
	} `json:"spec"`
}

type state struct {
	nodes.Software
	// Findings are the codes that agents publish which have no gdr.finding, "A,B".
	Findings string `json:"findings"`
}

type instances[T any] struct {
	Elements []struct {
		Attributes T `json:"attributes"`
	} `json:"elements"`
}

// What is kept of an object. Our agents publish less; another object must not take the memory.
const (
	maxText     = 120 // characters
	maxLabels   = 128
	maxFindings = 64
	maxDevices  = 128 // GPUs, NICs that jobs use, and products
)

// List reads the nodes that the query asks for, sorted. An error says what to do.
func List(ctx context.Context, config *rest.Config, q Query) ([]nodes.Node, error) {
	selector := nodeName
	if n := len(q.Names); n > 0 && n <= mostNames {
		selector += " in (" + strings.Join(q.Names, ",") + ")"
	}
	known := texts{}
	all, err := readAll(ctx, config, nodeFeatures, q, selector, func(o *object) (nodes.Node, bool) {
		n, ok := o.node(known)
		if !ok || len(q.Names) > 0 && !slices.Contains(q.Names, n.Name) {
			return n, false
		}
		if q.Hardware {
			n.Hardware = o.hardware(known)
		}
		return n, true
	})
	nodes.Sort(all)
	return all, err
}

// node returns what an agent has published; ok is false for an object that an agent
// would have named differently.
func (o *object) node(known texts) (n nodes.Node, ok bool) {
	m := &o.Metadata
	n = nodes.Node{Name: m.Labels[nodeName], Namespace: m.Namespace}
	if !isName(n.Name) || m.Name != manager+"-"+n.Name {
		return n, false
	}
	known.share(&n.Namespace)
	n.Labels = known.set(o.Spec.Labels)
	for _, f := range m.ManagedFields {
		if f.Manager == manager && f.Time != nil && f.Time.After(n.Written) {
			n.Written = f.Time.Time
		}
	}
	of := &o.Spec.Features.Instances
	n.GPUs, n.NICs = products(of.GPUs, known), products(of.NICs, known)
	n.Findings = o.findings(known)
	n.Changes, n.JournalError = journal.Decode(m.Annotations.Journal)
	slices.SortStableFunc(n.Changes, func(a, b journal.Change) int { return a.Time.Compare(b.Time) })
	return n, true
}

// findings are those that are not OK and are known, what failed first. Of an older agent they are codes.
func (o *object) findings(known texts) (all []nodes.Finding) {
	of := &o.Spec.Features
	add := func(f nodes.Finding) {
		if f.Code != "" && f.Code == label.Value(f.Code) && len(all) < maxFindings {
			known.share(&f.Check, &f.Status, &f.Code)
			all = append(all, f)
		}
	}
	if of.Instances.Findings.Elements != nil {
		for _, status := range []string{nodes.Fail, nodes.Warn} {
			for _, e := range of.Instances.Findings.Elements {
				if e.Attributes.Status == status {
					add(e.Attributes)
				}
			}
		}
	} else if of.Attributes.State != nil {
		for code := range strings.SplitSeq(of.Attributes.State.Elements.Findings, ",") {
			add(nodes.Finding{Code: code})
		}
	}
	return all
}

// hardware returns the GPUs, the NICs that jobs use, and software. An RDMA device without a PCI
// function, such as rxe0, has no address and is left out.
func (o *object) hardware(known texts) *nodes.Hardware {
	of := &o.Spec.Features
	list := func(all instances[nodes.Function], counts func(*nodes.Function) bool) (functions []nodes.Function) {
		for i := range all.Elements {
			if f := all.Elements[i].Attributes; f.Address != "" && counts(&f) && len(functions) < maxDevices {
				known.share(&f.Address, &f.Family, &f.Device, &f.Name, &f.NUMANode, &f.Role,
					&f.RDMA, &f.Rail, &f.State, &f.Link, &f.Rate, &f.MTU, &f.GIDIndex)
				functions = append(functions, f)
			}
		}
		return functions
	}
	h := &nodes.Hardware{
		GPUs: list(of.Instances.GPUs, func(*nodes.Function) bool { return true }),
		NICs: list(of.Instances.NICs, func(f *nodes.Function) bool { return f.Rail != "" }),
	}
	// An agent leaves gdr.nic out where the object would become too large.
	if state := of.Attributes.State; state != nil && of.Instances.NICs.Elements != nil {
		h.Software = &state.Elements.Software
		known.share(&h.Software.Kernel, &h.Software.Driver, &h.Software.DriverOpen)
	}
	return h
}

// texts are those that were read so far. A fleet has few different ones.
type texts map[string]string

// share makes texts the same for all nodes, and cuts those that are too long.
func (t texts) share(all ...*string) {
	for _, text := range all {
		if len(*text) > maxText {
			*text = strings.ToValidUTF8(strings.Clone((*text)[:maxText]), "") + "…"
		}
		if _, ok := t[*text]; !ok {
			t[*text] = *text
		}
		*text = t[*text]
	}
}

// set returns those of the labels of an object that are ours.
func (t texts) set(labels map[string]string) label.Set {
	all := label.Published(labels)
	set := make(label.Set, len(all))
	for _, name := range all.Names()[:min(len(all), maxLabels)] {
		value := all[name]
		t.share(&name, &value)
		set[name] = value
	}
	return set
}

// products counts the functions of each product and role. A NIC with two RDMA devices has two
// elements and is one function.
func products(all instances[nodes.Function], known texts) []nodes.Product {
	type placed struct {
		nodes.Product
		address string
	}
	seen, counts := map[placed]bool{}, map[nodes.Product]int{}
	for i := range all.Elements {
		a := &all.Elements[i].Attributes
		p := nodes.Product{Name: a.Name, Role: a.Role}
		known.share(&p.Name, &p.Role)
		if f := (placed{p, a.Address}); p.Name != "" && !seen[f] {
			seen[f] = true
			counts[p]++
		}
	}
	var list []nodes.Product
	for p, n := range counts {
		p.Count = n
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b nodes.Product) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Name, b.Name), strings.Compare(a.Role, b.Role))
	})
	return slices.Clip(list[:min(len(list), maxDevices)])
}
