package apiserver

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"gdr-features/internal/fleet/nodes"
	"gdr-features/internal/label"
)

// agents selects the DaemonSet of agents, and its Pods.
const agents = "app.kubernetes.io/name=" + manager

var (
	core       = schema.GroupVersion{Version: "v1"}
	daemonSets = resource{
		version: schema.GroupVersion{Group: "apps", Version: "v1"}, name: "daemonsets", kind: "DaemonSet",
		right: nodeFeatures.right, source: notKubernetes,
	}
	pods = resource{
		version: core, name: "pods", kind: "Pod",
		right: nodeFeatures.right, source: notKubernetes,
	}
	// coreNodes are the Nodes themselves, of which names and labels are enough: whole ones list all images.
	coreNodes = resource{
		version: core, name: "nodes", kind: "Node", clusterWide: true,
		accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
		right:  "bind the ClusterRole gdr-features-nodes of deploy/examples/reader.yaml", source: notKubernetes,
	}
)

const notKubernetes = "is this a Kubernetes API server?"

// Cluster reads what the cluster has beside the NodeFeatures, of the Nodes of a selector. What
// cannot be read is named in it; it is an error if that are the Nodes of a selector.
func Cluster(ctx context.Context, config *rest.Config, q Query, selector string) (c nodes.Cluster, err error) {
	note := func(kind string, err error) bool {
		if err != nil {
			c.NotRead = append(c.NotRead, nodes.NotRead{Kind: kind, Why: err.Error(), Denied: apierrors.IsForbidden(err)})
		}
		return err == nil
	}
	sets, err := agentSets(ctx, config, q)
	if note(daemonSets.kind, err) {
		c.Agents = &nodes.Agents{}
		for _, s := range sets {
			c.Agents.Ready, c.Agents.Wanted = c.Agents.Ready+s.Ready, c.Agents.Wanted+s.Wanted
		}
	}
	running, err := agentPods(ctx, config, q)
	if note(pods.kind, err) {
		c.Pods = running
	}
	labels, err := Nodes(ctx, config, q, selector)
	if note(coreNodes.kind, err) {
		c.Labels, c.AllNodes = labels, selector == ""
	}
	if selector == "" {
		err = nil
	}
	return c, err
}

func agentSets(ctx context.Context, config *rest.Config, q Query) ([]nodes.Agents, error) {
	type set struct {
		Status struct {
			Ready  int `json:"numberReady"`
			Wanted int `json:"desiredNumberScheduled"`
		} `json:"status"`
	}
	return readAll(ctx, config, daemonSets, q, agents, func(s *set) (nodes.Agents, bool) {
		return nodes.Agents(s.Status), true
	})
}

// agentPods are the nodes that have a Pod of an agent, and whether it is ready.
func agentPods(ctx context.Context, config *rest.Config, q Query) (map[string]bool, error) {
	type condition struct {
		Type   string `json:"type"`
		Status string `json:"status"`
	}
	type pod struct {
		Spec struct {
			Node string `json:"nodeName"`
		} `json:"spec"`
		Status struct {
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}
	ready := map[string]bool{}
	_, err := readAll(ctx, config, pods, q, agents, func(p *pod) (struct{}, bool) {
		if isName(p.Spec.Node) {
			ready[p.Spec.Node] = ready[p.Spec.Node] || slices.Contains(p.Status.Conditions, condition{"Ready", "True"})
		}
		return struct{}{}, false
	})
	return ready, err
}

// Nodes returns the labels of ours on the Nodes that a selector selects, "" for all, by name. An
// error says what to do.
func Nodes(ctx context.Context, config *rest.Config, q Query, selector string) (map[string]label.Set, error) {
	all, known := map[string]label.Set{}, texts{}
	_, err := readAll(ctx, config, coreNodes, q, selector, func(n *node) (struct{}, bool) {
		if isName(n.Metadata.Name) {
			all[n.Metadata.Name] = known.set(n.Metadata.Labels)
		}
		return struct{}{}, false
	})
	return all, err
}
