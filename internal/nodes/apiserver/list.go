// Package apiserver reads from an API server what the agents of a fleet have
// published.
package apiserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
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
	// pageLimit is the timeout of a page.
	pageLimit = time.Minute
)

// Query is what to list.
type Query struct {
	// Namespace is where the agents publish, "" for all namespaces.
	Namespace string
	// Names are the nodes wanted, none for all.
	Names []string
	// PageSize is how many objects are asked for at a time, 0 for all at once.
	PageSize int
	// Progress, if not nil, is called after each page with the number of objects read
	// so far.
	Progress func(int)
}

// page and object are the parts of a list of NodeFeatures that are shown. The pairs of
// GPU and NIC, which are most of an object, are not decoded.
type page struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []object `json:"items"`
}

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
				GPU instances `json:"gdr.gpu"`
				NIC instances `json:"gdr.nic"`
			} `json:"instances"`
		} `json:"features"`
	} `json:"spec"`
}

type instances struct {
	Elements []struct {
		Attributes map[string]string `json:"attributes"`
	} `json:"elements"`
}

// List reads the nodes that the query asks for, sorted. An error says what to do.
func List(ctx context.Context, config *rest.Config, q Query) ([]nodes.Node, error) {
	client, err := open(config)
	if err != nil {
		return nil, err
	}
	all, err := list(ctx, client, q)
	if apierrors.IsResourceExpired(err) { // the list took so long that its version is gone
		all, err = list(ctx, client, q)
	}
	if err != nil {
		return nil, explain(err, q.Namespace)
	}
	nodes.Sort(all)
	return all, nil
}

// open returns a client for NodeFeatures. It decodes no types but those of errors.
func open(config *rest.Config) (rest.Interface, error) {
	version := schema.GroupVersion{Group: "nfd.k8s-sigs.io", Version: "v1alpha1"}
	types := runtime.NewScheme()
	metav1.AddToGroupVersion(types, version)
	c := rest.CopyConfig(config)
	c.APIPath, c.GroupVersion = "/apis", &version
	c.NegotiatedSerializer = serializer.NewCodecFactory(types).WithoutConversion()
	c.QPS = -1 // one request at a time, as fast as they are answered
	c.WarningHandler = rest.NoWarnings{}
	return rest.RESTClientFor(c)
}

// list reads page by page. client-go's pager would follow continue tokens that form
// a loop for ever, and reads everything at once when a token expires.
func list(ctx context.Context, client rest.Interface, q Query) ([]nodes.Node, error) {
	options := metav1.ListOptions{LabelSelector: ours, Limit: int64(q.PageSize)}
	if n := len(q.Names); n > 0 && n <= mostNames {
		options.LabelSelector += "," + nodeName + " in (" + strings.Join(q.Names, ",") + ")"
	}
	var all []nodes.Node
	asked := map[string]bool{}
	for read := 0; ; {
		p, err := readPage(ctx, client, q.Namespace, options)
		if err != nil {
			return nil, err
		}
		for i := range p.Items {
			n, ok := p.Items[i].node()
			if ok && (len(q.Names) == 0 || slices.Contains(q.Names, n.Name)) {
				all = append(all, n)
			}
		}
		if read += len(p.Items); q.Progress != nil {
			q.Progress(read)
		}
		next := p.Metadata.Continue
		switch {
		case next == "":
			return all, nil
		case asked[next]:
			return nil, errors.New("the API server returns the same part of the list again and again; a proxy in between may be broken")
		}
		asked[next], options.Continue = true, next
	}
}

func readPage(ctx context.Context, client rest.Interface, namespace string, options metav1.ListOptions) (*page, error) {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	answer := client.Get().Namespace(namespace).Resource("nodefeatures").VersionedParams(&options, metav1.ParameterCodec).Do(ctx)
	if err := answer.Error(); err != nil {
		return nil, err
	}
	text, err := answer.Raw()
	if err != nil {
		return nil, err
	}
	var p page
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("the answer of the API server is not a list of NodeFeatures: %w", err)
	}
	return &p, nil
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
	n.GPUs, n.NICs = o.Spec.Features.Instances.GPU.products(), o.Spec.Features.Instances.NIC.products()
	return n, true
}

// products counts the functions of each product. A NIC with two RDMA devices has two
// elements and is one function.
func (i *instances) products() []nodes.Product {
	type function struct{ name, address string }
	seen, counts := map[function]bool{}, map[string]int{}
	for _, e := range i.Elements {
		if f := (function{e.Attributes["name"], e.Attributes["address"]}); f.name != "" && !seen[f] {
			seen[f] = true
			counts[f.name]++
		}
	}
	var all []nodes.Product
	for name, n := range counts {
		all = append(all, nodes.Product{Name: name, Count: n})
	}
	slices.SortFunc(all, func(a, b nodes.Product) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Name, b.Name))
	})
	return all
}
