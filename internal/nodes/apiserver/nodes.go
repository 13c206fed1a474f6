package apiserver

import (
	"cmp"
	"context"
	"slices"
	"strings"

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
	// mostNames is how many nodes are selected by name: the URL must not be too long.
	mostNames = 100
)

var nodeFeatures = resource{
	version: schema.GroupVersion{Group: "nfd.k8s-sigs.io", Version: "v1alpha1"}, name: "nodefeatures", kind: "NodeFeature",
	right:  "bind the ClusterRole gdr-features-reader of deploy/examples/reader.yaml",
	source: "install Node Feature Discovery 0.14 or newer",
}

type object struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Labels   map[string]string `json:"labels"`
		Features struct {
			Attributes struct {
				State *struct {
					Elements nodes.Software `json:"elements"`
				} `json:"gdr.state"`
			} `json:"attributes"`
			Instances struct {
				GPUs instances[nodes.Function] `json:"gdr.gpu"`
				NICs instances[nodes.Function] `json:"gdr.nic"`
			} `json:"instances"`
		} `json:"features"`
	} `json:"spec"`
}

type instances[T any] struct {
	Elements []struct {
		Attributes T `json:"attributes"`
	} `json:"elements"`
}

// List reads the nodes that the query asks for, sorted. An error says what to do.
func List(ctx context.Context, config *rest.Config, q Query) ([]nodes.Node, error) {
	options := metav1.ListOptions{LabelSelector: ours, Limit: int64(q.PageSize)}
	if n := len(q.Names); n > 0 && n <= mostNames {
		options.LabelSelector += "," + nodeName + " in (" + strings.Join(q.Names, ",") + ")"
	}
	known := texts{}
	all, err := readAll(ctx, config, nodeFeatures, q.Namespace, options, q.Progress, func(o *object) (nodes.Node, bool) {
		n, ok := o.node()
		if q.Hardware {
			n.Hardware = o.hardware(known)
		}
		return n, ok && (len(q.Names) == 0 || slices.Contains(q.Names, n.Name))
	})
	nodes.Sort(all)
	return all, err
}

// node returns what an agent has published; ok is false for an object that an agent
// would have named differently.
func (o *object) node() (n nodes.Node, ok bool) {
	n = nodes.Node{Name: o.Labels[nodeName], Namespace: o.Namespace, Labels: label.Published(o.Spec.Labels)}
	if n.Name == "" || o.Name != manager+"-"+n.Name {
		return n, false
	}
	for _, f := range o.ManagedFields {
		if f.Manager == manager && f.Time != nil && f.Time.After(n.Written) {
			n.Written = f.Time.Time
		}
	}
	n.GPUs, n.NICs = products(o.Spec.Features.Instances.GPUs), products(o.Spec.Features.Instances.NICs)
	return n, true
}

// hardware returns the GPUs, NICs and software. An RDMA device without a PCI function, such
// as rxe0, has no address and is left out.
func (o *object) hardware(known texts) *nodes.Hardware {
	of := &o.Spec.Features
	list := func(all instances[nodes.Function]) (functions []nodes.Function) {
		for i := range all.Elements {
			if f := all.Elements[i].Attributes; f.Address != "" {
				known.share(&f.Address, &f.Family, &f.Device, &f.Name, &f.NUMANode, &f.Role,
					&f.RDMA, &f.Rail, &f.State, &f.Link, &f.Rate, &f.MTU, &f.GIDIndex)
				functions = append(functions, f)
			}
		}
		return functions
	}
	h := &nodes.Hardware{GPUs: list(of.Instances.GPUs), NICs: list(of.Instances.NICs)}
	// An agent leaves gdr.nic out where the object would become too large.
	if state := of.Attributes.State; state != nil && of.Instances.NICs.Elements != nil {
		h.Software = &state.Elements
		known.share(&h.Software.Kernel, &h.Software.Driver, &h.Software.DriverOpen, &h.Software.Findings)
	}
	return h
}

// texts are those that were read so far. A fleet has few different ones.
type texts map[string]string

// share makes texts the same for all nodes.
func (t texts) share(all ...*string) {
	for _, text := range all {
		if _, ok := t[*text]; !ok {
			t[*text] = *text
		}
		*text = t[*text]
	}
}

// products counts the functions of each product and role. A NIC with two RDMA devices has two
// elements and is one function.
func products(all instances[nodes.Function]) []nodes.Product {
	type placed struct {
		nodes.Product
		address string
	}
	seen, counts := map[placed]bool{}, map[nodes.Product]int{}
	for i := range all.Elements {
		a := &all.Elements[i].Attributes
		p := nodes.Product{Name: a.Name, Role: a.Role}
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
	return list
}

// coreNodes are the Nodes themselves, of which names are enough: whole ones list all images.
var coreNodes = resource{
	version: schema.GroupVersion{Version: "v1"}, name: "nodes", kind: "Node", clusterWide: true,
	accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
	right:  "bind the ClusterRole gdr-features-nodes of deploy/examples/nodes.yaml, or select by labels of gdr-features alone",
	source: "is this a Kubernetes API server?",
}

// NamesOf returns the names of the Nodes that a selector selects. An error says what to do.
func NamesOf(ctx context.Context, config *rest.Config, selector string, pageSize int) (map[string]bool, error) {
	options := metav1.ListOptions{LabelSelector: selector, Limit: int64(pageSize)}
	type node struct {
		metav1.ObjectMeta `json:"metadata"`
	}
	all, err := readAll(ctx, config, coreNodes, "", options, nil, func(n *node) (string, bool) { return n.Name, n.Name != "" })
	names := make(map[string]bool, len(all))
	for _, name := range all {
		names[name] = true
	}
	return names, err
}
