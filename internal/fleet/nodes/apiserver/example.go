package apiserver

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"gdr-features/internal/fleet/nodes/example"
	"gdr-features/internal/label"
)

// readyNodes selects the Nodes that an example is for.
const readyNodes = label.DefaultPrefix + label.Ready + "=true"

var (
	wholeNodes = resource{
		version: schema.GroupVersion{Version: "v1"}, name: "nodes", kind: "Node", clusterWide: true,
		right: coreNodes.right, source: notKubernetes,
	}
	networks = resource{
		version: schema.GroupVersion{Group: "k8s.cni.cncf.io", Version: "v1"}, name: "network-attachment-definitions", kind: "NetworkAttachmentDefinition",
		right: "ask for the right, or take the names from whoever runs the network", source: "no Multus is installed",
	}
)

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
	options := metav1.ListOptions{Limit: int64(q.PageSize)}
	c.Networks, err = readAll(ctx, config, networks, namespace, options, nil, func(n *networkObject) (example.Network, bool) {
		return example.Network{Name: n.Metadata.Name, Resource: n.Metadata.Annotations.Resource}, n.Metadata.Name == label.Value(n.Metadata.Name)
	})
	if err != nil && !apierrors.IsNotFound(err) { // without Multus there is no such resource
		c.Unread = append(c.Unread, fmt.Sprintf("name the networks of the RDMA devices: %v", err))
	}
	images, err := readAll(ctx, config, daemonSets, q.Namespace, metav1.ListOptions{LabelSelector: agents, Limit: int64(q.PageSize)}, nil, (*imageObject).image)
	if err == nil && len(images) > 0 {
		c.Image = images[0]
	}
	return c, nil
}

type networkObject struct {
	Metadata struct {
		Name        string `json:"name"`
		Annotations struct {
			Resource string `json:"k8s.v1.cni.cncf.io/resourceName"`
		} `json:"annotations"`
	} `json:"metadata"`
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
		return all[0].Image, true
	}
	return "", false
}

func exampleNodes(ctx context.Context, config *rest.Config, q Query, selector string) ([]example.Node, error) {
	type node struct {
		Metadata struct {
			Name   string            `json:"name"`
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec struct {
			Taints []example.Taint `json:"taints"`
		} `json:"spec"`
		Status struct {
			Allocatable map[string]string `json:"allocatable"`
		} `json:"status"`
	}
	options := metav1.ListOptions{LabelSelector: selector, Limit: int64(q.PageSize)}
	return readAll(ctx, config, wholeNodes, "", options, nil, func(n *node) (example.Node, bool) {
		return example.Node{
			Name: n.Metadata.Name, Labels: label.Published(n.Metadata.Labels), Allocatable: n.Status.Allocatable, Taints: n.Spec.Taints,
		}, n.Metadata.Name != ""
	})
}
