package apiserver

import (
	"context"
	"maps"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"gdr-features/internal/fleet/nodes/example"
	"gdr-features/internal/label"
	"gdr-features/internal/sanitize"
)

// readyNodes selects the Nodes that an example is for.
const readyNodes = label.DefaultPrefix + label.Ready + "=true"

var networks = resource{
	version: schema.GroupVersion{Group: "k8s.cni.cncf.io", Version: "v1"}, name: "network-attachment-definitions", kind: "NetworkAttachmentDefinition",
	right: "ask for the right, or take the names from whoever runs the network", source: "no Multus is installed",
}

// Example reads what an example is filled in from: the Nodes that are ready and that a selector
// selects, the networks of the job's namespace, and the image of the agents. It is an error if the
// Nodes cannot be read.
func Example(ctx context.Context, config *rest.Config, q Query, selector, namespace string) (c example.Cluster, err error) {
	if selector != "" {
		selector += ","
	}
	if c.Nodes, err = exampleNodes(ctx, config, q, selector+readyNodes); err != nil {
		return c, err
	}
	ofJob := q
	ofJob.Namespace = namespace
	c.Networks, err = readAll(ctx, config, networks, ofJob, "", func(n *networkObject) (example.Network, bool) {
		network := example.Network{Name: n.Metadata.Name}
		if plain(n.Metadata.Annotations.Network) {
			network.Resource = n.Metadata.Annotations.Network
		}
		return network, network.Name == label.Value(network.Name)
	})
	if err != nil && !apierrors.IsNotFound(err) { // without Multus there is no such resource
		c.Unread = append(c.Unread, "name the networks of the RDMA devices: "+sanitize.Terminal(err.Error()))
	}
	images, err := readAll(ctx, config, daemonSets, q, agents, (*imageObject).image)
	if err == nil && len(images) > 0 {
		c.Image = images[0]
	}
	return c, nil
}

type networkObject struct {
	Metadata metadata `json:"metadata"`
}

type imageObject struct {
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Image string `json:"image"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

func (o *imageObject) image() (string, bool) {
	if all := o.Spec.Template.Spec.Containers; len(all) > 0 {
		return all[0].Image, plain(all[0].Image)
	}
	return "", false
}

// What is kept of a Node. One has some ten resources and taints.
const (
	maxPlain     = 512 // characters: the longest is an image
	maxResources = 128
	maxTaints    = 128
)

var word = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/:@-]*[A-Za-z0-9])?$`)

// plain reports whether a text of the API server is printed: what names, values and images are made
// of, which is one word of YAML and nothing that a terminal obeys. Others are as if they were not there.
func plain(text string) bool { return len(text) <= maxPlain && word.MatchString(text) }

// node is a Node; one that is not read as a whole has only metadata.
type node struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Taints []example.Taint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Allocatable map[string]string `json:"allocatable"`
	} `json:"status"`
}

func exampleNodes(ctx context.Context, config *rest.Config, q Query, selector string) ([]example.Node, error) {
	whole, known := coreNodes, texts{}
	whole.accept = ""
	return readAll(ctx, config, whole, q, selector, func(n *node) (example.Node, bool) {
		kept := example.Node{Name: n.Metadata.Name, Labels: known.set(n.Metadata.Labels), Allocatable: map[string]string{}}
		for _, name := range slices.Sorted(maps.Keys(n.Status.Allocatable)) {
			amount := n.Status.Allocatable[name]
			if example.Extended(name, amount) > 0 && plain(name) && len(kept.Allocatable) < maxResources {
				kept.Allocatable[name] = amount
			}
		}
		for _, t := range n.Spec.Taints {
			if plain(t.Key) && (t.Value == "" || plain(t.Value)) && plain(t.Effect) && len(kept.Taints) < maxTaints {
				kept.Taints = append(kept.Taints, t)
			}
		}
		return kept, plain(kept.Name) && isName(kept.Name)
	})
}
