// Package example fills in the example files of deploy/examples from what a cluster has. It is
// pure: package apiserver reads the cluster.
package example

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/label"
)

// Node is a Node of a cluster.
type Node struct {
	Name        string
	Labels      label.Set         // ours
	Allocatable map[string]string // amounts of resources, as Kubernetes writes them
	Taints      []Taint
}

// Requirement is one of a node affinity: operator "In", "NotIn", "Exists", "DoesNotExist", "Gt" or "Lt".
type Requirement struct {
	Key, Operator string
	Values        []string
}

// Taint is one that keeps Pods without a toleration away.
type Taint struct{ Key, Value, Effect string }

// Network is a NetworkAttachmentDefinition, and the resource that its devices are taken from.
type Network struct{ Name, Resource string }

// Cluster is what an example is filled in from.
type Cluster struct {
	Nodes    []Node        // those that the job may run on
	Where    []Requirement // what they were selected by, beside being ready
	Networks []Network
	Image    string // of the agents, "" if it is not known
	// Unread says what could not be read, and why.
	Unread []string
}

// Resource is an amount of an extended resource.
type Resource struct {
	Name   string
	Amount int
}

// kind is what the nodes of a job have alike.
type kind struct {
	nodes    []string
	gpus     Resource   // the zero value for none
	rdma     []Resource // by name
	other    []string   // extended resources that may be for RDMA, if rdma is empty
	level    string     // "" if it is not known
	rate     int        // Gbit/s, 0 if it is not known: the least of the nodes
	taints   []Taint
	networks []string
}

// gpuResources are whole GPUs as NVIDIA's and AMD's device plugins name them.
var gpuResources = []string{"nvidia.com/gpu", "amd.com/gpu"}

// rdmaResource is how a device plugin names NICs.
type rdmaResource struct {
	prefix string
	shared bool // all Pods of the node share the NICs, and one unit is enough
}

// rdmaResources are the default names of device plugins, by prefix. The administrator of a
// SR-IOV plugin chooses the name: a NetworkAttachmentDefinition tells what it is.
//   - Mellanox/k8s-rdma-shared-dev-plugin, README.md: rdma/NAME
//   - Mellanox/network-operator, example/crs: nvidia.com/hostdev, nvidia.com/mlnxnics
//   - aws/amazon-vpc-cni-k8s and aws-efa-k8s-device-plugin: vpc.amazonaws.com/efa
//   - GoogleCloudPlatform/container-engine-accelerators, gpudirect-rdma:
//     networking.gke.io.networks/NAME
var rdmaResources = []rdmaResource{
	{"rdma/", true},
	{"nvidia.com/hostdev", false},
	{"nvidia.com/mlnxnics", false},
	{"vpc.amazonaws.com/efa", false},
	{"networking.gke.io.networks/rdma", false},
}

// Extended returns the amount of an extended resource, 0 for another one: those of Kubernetes itself,
// and the addresses that GKE lists beside its networks (networking.gke.io.networks/rdma-0.IP).
func Extended(name, amount string) int {
	domain, of, extended := strings.Cut(name, "/")
	if !extended || strings.HasSuffix(domain, "kubernetes.io") || domain == "networking.gke.io.networks" && strings.HasSuffix(of, ".IP") {
		return 0
	}
	if thousands, ok := strings.CutSuffix(amount, "k"); ok { // Kubernetes writes 1k for 1000
		amount = thousands + "000"
	}
	n, err := strconv.Atoi(amount)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// kindOf sorts out what a node has.
func (c *Cluster) kindOf(n *Node) kind {
	k := kind{nodes: []string{n.Name}, level: n.Labels[label.Level]}
	k.rate, _ = strconv.Atoi(n.Labels[label.Rate])
	var networked []Resource // that networks take their devices from, and no row knows
	for _, name := range slices.Sorted(maps.Keys(n.Allocatable)) {
		amount := Extended(name, n.Allocatable[name])
		if amount == 0 {
			continue
		}
		of := func(n Network) bool { return n.Resource == name }
		row := slices.IndexFunc(rdmaResources, func(r rdmaResource) bool { return strings.HasPrefix(name, r.prefix) })
		switch {
		case slices.Contains(gpuResources, name):
			if k.gpus.Name == "" {
				k.gpus = Resource{name, amount}
			}
		case row >= 0 && rdmaResources[row].shared:
			k.rdma = append(k.rdma, Resource{name, 1})
		case row >= 0:
			k.rdma = append(k.rdma, Resource{name, amount})
		case slices.ContainsFunc(c.Networks, of):
			networked = append(networked, Resource{name, amount})
		default:
			k.other = append(k.other, name)
		}
	}
	switch { // of several networks one may be for storage
	case len(k.rdma) > 0:
	case len(networked) == 1:
		k.rdma = networked
	case len(networked) > 1:
		k.other = nil
		for _, r := range networked {
			k.other = append(k.other, r.Name)
		}
	}
	for _, t := range n.Taints {
		if domain, _, _ := strings.Cut(t.Key, "/"); !strings.HasSuffix(domain, "node.kubernetes.io") && t.Effect != "PreferNoSchedule" {
			k.taints = append(k.taints, t)
		}
	}
	return k
}

// largest is the kind that most nodes are of; of equally many the one with the first node.
func (c *Cluster) largest() kind {
	kinds := map[string]*kind{}
	for i := range c.Nodes {
		k := c.kindOf(&c.Nodes[i])
		key := fmt.Sprint(k.gpus, k.rdma, k.level)
		same, ok := kinds[key]
		if !ok {
			kinds[key] = &k
			continue
		}
		same.nodes = append(same.nodes, k.nodes...)
		same.rate = min(same.rate, k.rate)
		for _, t := range k.taints {
			if !slices.Contains(same.taints, t) {
				same.taints = append(same.taints, t)
			}
		}
	}
	all := slices.SortedFunc(maps.Values(kinds), func(a, b *kind) int {
		return cmp.Or(len(b.nodes)-len(a.nodes), cmp.Compare(a.nodes[0], b.nodes[0]))
	})
	k := *all[0]
	const most = 1 << 12 // virtual functions: what a node says may be wrong
	for _, r := range k.rdma {
		for _, n := range c.Networks {
			if n.Resource == r.Name {
				k.networks = append(k.networks, slices.Repeat([]string{n.Name}, min(r.Amount, most))...)
				break // a second network of the resource would need units of its own
			}
		}
	}
	return k
}
