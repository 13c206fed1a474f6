package apiserver

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// coreNodes are the Nodes themselves, of which names are enough: whole ones list all images.
var coreNodes = resource{
	version: schema.GroupVersion{Version: "v1"}, name: "nodes", kind: "Node", clusterWide: true,
	accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
	right:  "bind the ClusterRole gdr-features-nodes of deploy/examples/nodes.yaml, or select by labels of gdr-features alone",
	source: "is this a Kubernetes API server?",
}

// NamesOf returns the names of the Nodes that a label selector selects. An error says what
// to do.
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
