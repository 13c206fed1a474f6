package apiserver

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"gdr-features/internal/label"
	"gdr-features/internal/nodes"
)

const (
	manager = "gdr-features"
	// nodeName is the label of a NodeFeature that names its node.
	nodeName = "nfd.node.kubernetes.io/node-name"
	// ours selects the objects of our agents among all NodeFeatures.
	ours = "app.kubernetes.io/managed-by=" + manager
	// mostNames is how many nodes are selected by name: more would make the URL too
	// long.
	mostNames = 100
)

var nodeFeatures = resource{
	version: schema.GroupVersion{Group: "nfd.k8s-sigs.io", Version: "v1alpha1"}, name: "nodefeatures", kind: "NodeFeature",
	right:  "bind the ClusterRole gdr-features-reader of deploy/examples/reader.yaml",
	source: "install Node Feature Discovery 0.14 or newer",
}

// object is the part of a NodeFeature that is shown.
type object struct {
	Metadata struct {
		Name          string            `json:"name"`
		Namespace     string            `json:"namespace"`
		Labels        map[string]string `json:"labels"`
		ManagedFields []struct {
			Manager string    `json:"manager"`
			Time    time.Time `json:"time"`
		} `json:"managedFields"`
	} `json:"metadata"`
	Spec struct {
		Labels   map[string]string `json:"labels"`
		Features struct {
			Instances struct {
				GPU  instances[function] `json:"gdr.gpu"`
				NIC  instances[function] `json:"gdr.nic"`
				Pair instances[pair]     `json:"gdr.pair"`
			} `json:"instances"`
		} `json:"features"`
	} `json:"spec"`
}

// instances are those of a feature, with the attributes A.
type instances[A any] struct {
	Elements []struct {
		Attributes A `json:"attributes"`
	} `json:"elements"`
}

type function struct {
	Address  string `json:"address"`
	Family   string `json:"family"`
	Name     string `json:"name"`
	PCIeRoot string `json:"pcieRoot"`
	NUMANode string `json:"numaNode"`
	RDMA     string `json:"rdma"`
}

type pair struct {
	GPU   string `json:"gpu"`
	NIC   string `json:"nic"`
	Level string `json:"level"`
}

// List reads the nodes that the query asks for, sorted. An error says what to do.
func List(ctx context.Context, config *rest.Config, q Query) ([]nodes.Node, error) {
	options := metav1.ListOptions{LabelSelector: ours, Limit: int64(q.PageSize)}
	if n := len(q.Names); n > 0 && n <= mostNames {
		options.LabelSelector += "," + nodeName + " in (" + strings.Join(q.Names, ",") + ")"
	}
	all, err := readAll(ctx, config, nodeFeatures, q.Namespace, options, q.Progress, func(o *object) (nodes.Node, bool) {
		n, ok := o.node()
		if q.Hardware {
			n.Hardware = o.hardware()
		}
		return n, ok && (len(q.Names) == 0 || slices.Contains(q.Names, n.Name))
	})
	nodes.Sort(all)
	return all, err
}

// node returns what an agent has published; ok is false for an object that an agent
// would have named differently.
func (o *object) node() (n nodes.Node, ok bool) {
	m := &o.Metadata
	n = nodes.Node{Name: m.Labels[nodeName], Namespace: m.Namespace, Labels: label.Set{}}
	if n.Name == "" || m.Name != manager+"-"+n.Name {
		return n, false
	}
	for key, value := range o.Spec.Labels {
		if name, ok := label.Parse(key, value); ok {
			n.Labels[name] = value
		}
	}
	for _, f := range m.ManagedFields {
		if f.Manager == manager && f.Time.After(n.Written) {
			n.Written = f.Time
		}
	}
	n.GPUs, n.NICs = products(o.Spec.Features.Instances.GPU), products(o.Spec.Features.Instances.NIC)
	return n, true
}

// hardware returns the GPUs, NICs and levels. An RDMA device without a PCI function, such as
// rxe0, has no address and is left out.
func (o *object) hardware() *nodes.Hardware {
	list := func(all instances[function]) (functions []nodes.Function) {
		for _, e := range all.Elements {
			if a := e.Attributes; a.Address != "" {
				functions = append(functions, nodes.Function{Address: a.Address, Family: a.Family, PCIeRoot: a.PCIeRoot, NUMANode: a.NUMANode, RDMA: a.RDMA})
			}
		}
		return functions
	}
	i := &o.Spec.Features.Instances
	h := &nodes.Hardware{GPUs: list(i.GPU), NICs: list(i.NIC), Levels: map[nodes.Pair]string{}}
	for _, e := range i.Pair.Elements {
		if a := e.Attributes; a.Level != "" {
			h.Levels[nodes.Pair{GPU: a.GPU, NIC: a.NIC}] = a.Level
		}
	}
	return h
}

// products counts the functions of each product. A NIC with two RDMA devices has two
// elements and is one function.
func products(all instances[function]) []nodes.Product {
	type named struct{ name, address string }
	seen, counts := map[named]bool{}, map[string]int{}
	for _, e := range all.Elements {
		if f := (named{e.Attributes.Name, e.Attributes.Address}); f.name != "" && !seen[f] {
			seen[f] = true
			counts[f.name]++
		}
	}
	var list []nodes.Product
	for name, n := range counts {
		list = append(list, nodes.Product{Name: name, Count: n})
	}
	slices.SortFunc(list, func(a, b nodes.Product) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Name, b.Name))
	})
	return list
}
