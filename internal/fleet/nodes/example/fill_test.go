package example_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gdr-features/deploy/examples"
	"gdr-features/internal/fleet/nodes/example"
	"gdr-features/internal/label"
)

// node is one that is ready, with these resources: "nvidia.com/gpu=8".
func node(name, level, rate string, resources ...string) example.Node {
	n := example.Node{Name: name, Labels: label.Set{label.Level: level, label.Rate: rate}, Allocatable: map[string]string{
		"cpu": "128", "memory": "1056Gi", "pods": "110", "hugepages-2Mi": "0", "ephemeral-storage": "100Gi",
	}}
	for _, r := range resources {
		name, amount, _ := strings.Cut(r, "=")
		n.Allocatable[name] = amount
	}
	return n
}

var clusters = map[string]example.Cluster{
	"shared": {
		Image: "registry.example.com/platform/gdr-features:v1.2.0",
		Nodes: []example.Node{
			node("hgx-1", "PIX", "400", "nvidia.com/gpu=8", "rdma/rdma_shared_device_a=1000"),
			node("hgx-2", "PIX", "200", "nvidia.com/gpu=8", "rdma/rdma_shared_device_a=1000"),
			node("old-1", "PXB", "100", "nvidia.com/gpu=4", "rdma/rdma_shared_device_a=1000"),
		},
	},
	"sriov": {
		Where: []example.Requirement{
			{Key: "pool", Operator: "In", Values: []string{"train", "test"}}, {Key: "example.com/spare", Operator: "DoesNotExist"},
		},
		Nodes: []example.Node{
			func() example.Node {
				n := node("gb200-1", "NODE", "400", "nvidia.com/gpu=4", "openshift.io/mlnx_ib=4", "example.com/fpga=1")
				n.Taints = []example.Taint{
					{Key: "pool", Value: "train", Effect: "NoSchedule"},
					{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"},
					{Key: "soft", Effect: "PreferNoSchedule"},
				}
				return n
			}(),
		},
		Networks: []example.Network{{Name: "storage", Resource: "openshift.io/eth"}, {Name: "ib", Resource: "openshift.io/mlnx_ib"}},
	},
	"nothing": {
		Nodes:    []example.Node{node("bare-1", "", "", "example.com/fpga=1")},
		Networks: []example.Network{{Name: "storage"}},
		Unread:   []string{"the DaemonSet of the agents could not be read: forbidden"},
	},
}

// TestFill: every file with each cluster.
func TestFill(t *testing.T) {
	for name, c := range clusters {
		for _, job := range examples.Jobs() {
			file, ok := examples.Job(job)
			if !ok {
				t.Fatalf("no file %s", job)
			}
			got, err := example.Fill(file, &c)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", job+"."+name+".yaml")
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || string(want) != got {
				t.Errorf("%s differs, error %v; make golden writes it", path, err)
			}
		}
	}
}

// TestEveryPlace: nothing of what differs between clusters is left over in any file, and each file
// has each place: a file that is written in another way would keep its own values.
func TestEveryPlace(t *testing.T) {
	c := example.Cluster{
		Image:    "registry.local/gdr:v9",
		Nodes:    []example.Node{node("n", "NODE", "400", "amd.com/gpu=3", "vpc.amazonaws.com/efa=5")},
		Networks: []example.Network{{Name: "net", Resource: "vpc.amazonaws.com/efa"}},
	}
	c.Nodes[0].Taints = []example.Taint{{Key: "amd.com/gpu", Value: "yes", Effect: "NoSchedule"}}
	left := regexp.MustCompile(`\b8\b|\b16\b|nvidia\.com/gpu|rdma_shared|PXB\]|level, PXB|gdr-features:v1\.0\.0|NETWORKS`)
	allowed := regexp.MustCompile(`-b 8 -e 16G|"max_tokens": 16`)
	for _, job := range examples.Jobs() {
		file, _ := examples.Job(job)
		got, err := example.Fill(file, &c)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(got, "\n") {
			if left.MatchString(allowed.ReplaceAllString(line, "")) {
				t.Errorf("%s, line %d: %s", job, i+1, line)
			}
		}
		for _, want := range []string{
			"amd.com/gpu: 3", "vpc.amazonaws.com/efa: 5", "[PIX, PXB, PHB, NODE]", `gdr.rate, operator: Gt, values: ["399"]`, "--level, NODE",
			"image: registry.local/gdr:v9", `k8s.v1.cni.cncf.io/networks: "net,net,net,net,net"`, `- {key: amd.com/gpu, operator: Equal, value: "yes", effect: NoSchedule}`,
			"# Filled in by kubectl gdr example for nodes such as n: 1 of 1", "# TODO: your image in place of",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %s", job, want)
			}
		}
	}
}

// TestResources: which resources are requested, and which of them have to be chosen from.
func TestResources(t *testing.T) {
	networks := []example.Network{
		{Name: "storage", Resource: "openshift.io/eth"},
		{Name: "ib", Resource: "openshift.io/ib"},
		{Name: "sriov", Resource: "nvidia.com/mlnxnics"},
		{Name: "of-no-node", Resource: "openshift.io/other"},
	}
	const choose = "networks: which of these are for RDMA? storage ib sriov of-no-node"
	file, _ := examples.Job("nccl")
	requested := regexp.MustCompile(`(?m)^ +(?:# TODO: )?((?:openshift|nvidia|networking|example|rdma|RDMA|networks).*)$`)
	for _, tt := range []struct {
		name, resources string
		want            []string
	}{
		{"one with a network", "openshift.io/ib=8 example.com/fpga=1", []string{"openshift.io/ib: 8"}},
		{
			"two with networks, one of them maybe for storage", "openshift.io/ib=8 openshift.io/eth=2 example.com/fpga=1",
			[]string{"RDMA devices: which of these is it? openshift.io/eth openshift.io/ib", choose},
		},
		{"a known one beside one with a network", "openshift.io/eth=2 nvidia.com/mlnxnics=8", []string{"nvidia.com/mlnxnics: 8"}},
		{"none known, none with a network", "example.com/fpga=1", []string{"RDMA devices: which of these is it? example.com/fpga", choose}},
		{
			"GKE's addresses", "networking.gke.io.networks/rdma-0=1 networking.gke.io.networks/rdma-0.IP=1 networking.gke.io.networks/gvnic-1.IP=1",
			[]string{"networking.gke.io.networks/rdma-0: 1", choose},
		},
		{"GKE's addresses alone", "networking.gke.io.networks/gvnic-1.IP=1", []string{"RDMA devices: these nodes offer none as a resource: install a device plugin for RDMA", choose}},
		{"thousands, as Kubernetes writes them", "rdma/rdma_shared_device_a=1k", []string{"rdma/rdma_shared_device_a: 1"}},
		{"an amount that no node has", "openshift.io/ib=9223372036854775807", []string{"openshift.io/ib: 9223372036854775807"}},
		{"resources of Kubernetes itself", "x.kubernetes.io/y=1 rdma/a=0 rdma/b=-1 rdma/c=much rdma/d=63", []string{"rdma/d: 1"}},
	} {
		c := example.Cluster{Networks: networks, Nodes: []example.Node{node("n", "PIX", "400", strings.Fields(tt.resources)...)}}
		text, err := example.Fill(file, &c)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{} // a resource stands under requests and limits
		for _, m := range requested.FindAllStringSubmatch(text, -1) {
			if !strings.HasSuffix(m[1], ", as above") {
				got[m[1]] = true
			}
		}
		slices.Sort(tt.want)
		if got := slices.Sorted(maps.Keys(got)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q in\n%s", tt.name, got, tt.want, text)
		}
	}
}

// TestLargest: the job is for the kind that most nodes are of.
func TestLargest(t *testing.T) {
	file, _ := examples.Job("nccl")
	for _, tt := range []struct{ nodes, want string }{
		{"8 8 4", "nvidia.com/gpu: 8"}, {"4 8 4", "nvidia.com/gpu: 4"}, {"4 8", "nvidia.com/gpu: 4"}, {"8 4", "nvidia.com/gpu: 8"},
	} {
		var c example.Cluster
		for i, gpus := range strings.Fields(tt.nodes) {
			c.Nodes = append(c.Nodes, node(fmt.Sprint("n", i), "PIX", "400", "nvidia.com/gpu="+gpus))
		}
		if got, err := example.Fill(file, &c); err != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%s GPUs: no %s, error %v", tt.nodes, tt.want, err)
		}
	}
	if _, err := example.Fill(file, &example.Cluster{}); err == nil {
		t.Error("no node, and no error")
	}
}
