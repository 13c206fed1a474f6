package resourceslice

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/dradriver"
	"gdr-features/internal/label"
	"gdr-features/internal/nodes"
)

// agent is a node with two GPUs and two NICs: a GPU and a NIC at PIX below each of two roots, each
// of them a NUMA node. All other pairs are at SYS.
func agent(name string) nodes.Node {
	return nodes.Node{
		Name: name, Namespace: "gdr", Labels: label.Set{label.Align: "pcieRoot", label.Ready: "true"},
		Hardware: &nodes.Hardware{
			GPUs: []nodes.Function{
				{Address: "0000:11:00.0", Family: "nvidia", PCIeRoot: "pci0000:10", NUMANode: "0"},
				{Address: "0000:21:00.0", Family: "nvidia", PCIeRoot: "pci0000:20", NUMANode: "1"},
			},
			NICs: []nodes.Function{
				{Address: "0000:12:00.0", Family: "mlx5", PCIeRoot: "pci0000:10", NUMANode: "0", RDMA: "mlx5_0"},
				{Address: "0000:22:00.0", Family: "mlx5", PCIeRoot: "pci0000:20", NUMANode: "1", RDMA: "mlx5_1"},
			},
			Levels: map[nodes.Pair]string{
				{GPU: "0000:11:00.0", NIC: "0000:12:00.0"}: "PIX", {GPU: "0000:11:00.0", NIC: "0000:22:00.0"}: "SYS",
				{GPU: "0000:21:00.0", NIC: "0000:12:00.0"}: "SYS", {GPU: "0000:21:00.0", NIC: "0000:22:00.0"}: "PIX",
			},
		},
	}
}

// device has the attributes that a text lists: "resource.kubernetes.io/" is left out before
// names without a domain, and | separates values.
func device(name, attributes string) Device {
	d := Device{Name: name, Attributes: map[string]Values{}}
	for pair := range strings.FieldsSeq(attributes) {
		key, value, _ := strings.Cut(pair, "=")
		if !strings.Contains(key, "/") {
			key = "resource.kubernetes.io/" + key
		}
		d.Attributes[key] = strings.Split(value, "|")
	}
	return d
}

// slice is the only one of its pool.
func slice(node, driver string, devices ...Device) Slice {
	return Slice{Node: node, Driver: dradriver.Find(driver), Pool: Pool{node, 1, 1}, Devices: devices}
}

const (
	nvidia, dranet, sriov = "gpu.nvidia.com", "dra.net", "sriovnetwork.k8snetworkplumbingwg.io"

	gpu0 = "pciBusID=0000:11:00.0 pcieRoot=pci0000:10 numaNode=0"
	gpu1 = "pciBusID=0000:21:00.0 pcieRoot=pci0000:20 numaNode=1"
	nic0 = "dra.net/pciAddress=0000:12:00.0 dra.net/rdma=true dra.net/rdmaDevice=mlx5_0 pcieRoot=pci0000:10 numaNode=0"
	nic1 = "dra.net/pciAddress=0000:22:00.0 dra.net/rdma=true dra.net/rdmaDevice=mlx5_1 pcieRoot=pci0000:20 numaNode=1"
)

// published is what drivers publish of the node of agent.
func published(node string) []Slice {
	return []Slice{
		slice(node, nvidia, device("gpu-0", gpu0), device("gpu-1", gpu1)),
		slice(node, dranet, device("pci-0000-12-00-0", nic0), device("pci-0000-22-00-0", nic1), device("eth0", "dra.net/rdma=false")),
	}
}

// without returns a text without the words that contain any of the given.
func without(text string, words ...string) string {
	var rest []string
	for word := range strings.FieldsSeq(text) {
		keep := true
		for _, w := range words {
			keep = keep && !strings.Contains(word, w)
		}
		if keep {
			rest = append(rest, word)
		}
	}
	return strings.Join(rest, " ")
}

func lines(n *Node) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%v %v", n.GPUs, n.NICs)
	for _, way := range ways {
		fmt.Fprintf(&out, "; %s %d", n.matched(way), n.Matches[way].Pairs)
	}
	for _, f := range n.Findings {
		fmt.Fprintf(&out, "\n%s %s", f.Code, f.Text)
	}
	return out.String()
}

// Each finding, and what claims can match. The smallest change to what is published, or listed,
// shows it.
func TestCompare(t *testing.T) {
	const all = "2/2 2/2; 2/2 PIX 2; 2/2 PIX 2; 2/2 PIX 2"
	for _, test := range []struct {
		name   string
		change func(n *nodes.Node, s *[]Slice)
		want   string
	}{
		{"as it should be", func(*nodes.Node, *[]Slice) {}, all},
		{
			"no agent", func(n *nodes.Node, _ *[]Slice) { n.Hardware = nil },
			"2/0 2/0; 2/2 2; 2/2 2; 0/2 0\nNoAgent no agent has published a NodeFeature of this node, so there is nothing to compare with",
		},
		{
			"no driver", func(_ *nodes.Node, s *[]Slice) { *s = nil },
			"0/2 0/2;  0;  0;  0\nNoSlices gpu.nvidia.com has published no ResourceSlice of this node, which has 2 such GPUs" +
				"\nNoSlices neither dra.net nor sriovnetwork.k8snetworkplumbingwg.io has published a ResourceSlice of this node, which has 2 RDMA NICs",
		},
		{"a node without GPUs and NICs", func(n *nodes.Node, s *[]Slice) { n.Hardware, *s = &nodes.Hardware{}, nil }, "0/0 0/0;  0;  0;  0"},
		{
			"a part of a pool", func(_ *nodes.Node, s *[]Slice) { (*s)[0].Count = 2 },
			"0/2 2/2;  0;  0;  0\nPoolIncomplete gpu.nvidia.com has published 1 ResourceSlice of its newest generation instead of 2, and until that is right the scheduler gives out none of its devices",
		},
		{"more slices than there should be", func(_ *nodes.Node, s *[]Slice) {
			*s = append(*s, slice("n", nvidia, device("gpu-2", "pciBusID=0000:31:00.0")))
		}, "0/2 2/2;  0;  0;  0\nPoolIncomplete gpu.nvidia.com has published 2 ResourceSlices of its newest generation instead of 1, and until that is right the scheduler gives out none of its devices"},
		{
			"a name twice", func(_ *nodes.Node, s *[]Slice) { (*s)[1].Devices[1].Name = (*s)[1].Devices[0].Name },
			"2/2 0/2; 0/2 0; 0/2 0; 0/2 0\nPoolInvalid dra.net has published two devices of the name pci-0000-12-00-0 in one pool, so the scheduler gives out none of its devices",
		},
		{"a GPU in parts alone", func(_ *nodes.Node, s *[]Slice) {
			mig := gpu1 + " gpu.nvidia.com/type=mig"
			(*s)[0].Devices = []Device{device("gpu-0", gpu0+" gpu.nvidia.com/type=gpu"), device("gpu-1-mig-0", mig), device("gpu-1-mig-1", mig)}
		}, "1/2 2/2; 1/1 PIX 1; 1/1 PIX 1; 1/1 PIX 1" +
			"\nOnlyParts gpu.nvidia.com publishes 0000:21:00.0 only in parts (MIG) or for virtual machines (vfio): no claim of the DeviceClass gpu.nvidia.com is given it"},
		{"an older generation", func(_ *nodes.Node, s *[]Slice) {
			old := slice("n", nvidia, device("gpu-0", "pciBusID=0000:31:00.0"))
			old.Generation = 0
			*s = append(*s, old)
		}, all},
		{"a pool of two slices", func(_ *nodes.Node, s *[]Slice) {
			one, two := slice("n", nvidia, (*s)[0].Devices[0]), slice("n", nvidia, (*s)[0].Devices[1])
			one.Count, two.Count = 2, 2
			*s = []Slice{one, (*s)[1], two}
		}, all},
		{
			"a GPU that is not published", func(_ *nodes.Node, s *[]Slice) { (*s)[0].Devices = (*s)[0].Devices[:1] },
			"1/2 2/2; 1/1 PIX 1; 1/1 PIX 1; 1/1 PIX 1\nNotPublished gpu.nvidia.com does not publish 0000:21:00.0",
		},
		{
			"a NIC that is not published", func(_ *nodes.Node, s *[]Slice) { (*s)[1].Devices = (*s)[1].Devices[:1] },
			"2/2 1/2; 1/2 PIX 1; 1/2 PIX 1; 2/2 SYS 1\nNotPublished dra.net does not publish 0000:22:00.0" +
				"\nNoMatch 1 of 2 GPUs have the pcieRoot of no RDMA NIC that is published: a Pod that claims such a pair stays Pending",
		},
		{
			"devices that are not listed", func(n *nodes.Node, _ *[]Slice) {
				n.Hardware.GPUs, n.Hardware.NICs = n.Hardware.GPUs[:1], n.Hardware.NICs[1:]
			},
			"2/1 2/1; 2/2 PIX 2; 2/2 PIX 2; 2/2 PIX 2\nNotListed gpu.nvidia.com publishes 0000:21:00.0, which the agent does not list" +
				"\nNotListed dra.net publishes 0000:12:00.0, which the agent does not list",
		},
		{"a network device that is not listed", func(_ *nodes.Node, s *[]Slice) {
			(*s)[1].Devices = append((*s)[1].Devices, device("e", "dra.net/pciAddress=0000:01:00.0 dra.net/rdma=false"))
		}, all},
		{"two drivers of one NIC", func(_ *nodes.Node, s *[]Slice) {
			*s = append(*s, slice("n", sriov, device("0000-12-00-0", "pciBusID=0000:12:00.0 pcieRoot=pci0000:10 "+sriov+"/rdmaCapable=true numaNode=0")))
		}, all + "\nPublishedTwice two drivers publish 0000:12:00.0"},
		{"a GPU in parts", func(_ *nodes.Node, s *[]Slice) {
			(*s)[0].Devices = append((*s)[0].Devices, device("gpu-0-mig-1", gpu0))
		}, all},
		{"SR-IOV without its root", func(_ *nodes.Node, s *[]Slice) {
			vf := func(name, address string) Device {
				return device(name, "pciBusID="+address+" pcieRoot= dra.net/numaNode=0 "+sriov+"/rdmaCapable=true")
			}
			(*s)[1] = slice("n", sriov, vf("v0", "0000:12:00.0"), vf("v1", "0000:22:00.0"))
		}, "2/2 2/2; 0/2 0; 0/2 0; 2/2 PIX 2" +
			"\nNoMatch 2 of 2 GPUs have the pcieRoot of no RDMA NIC that is published: a Pod that claims such a pair stays Pending" +
			"\nAttributeMissing sriovnetwork.k8snetworkplumbingwg.io publishes no resource.kubernetes.io/pcieRoot of 0000:12:00.0, 0000:22:00.0" +
			"\nAttributeMissing sriovnetwork.k8snetworkplumbingwg.io publishes no resource.kubernetes.io/numaNode of 0000:12:00.0, 0000:22:00.0"},
		{"an older GPU driver", func(_ *nodes.Node, s *[]Slice) {
			(*s)[0].Devices[0] = device("gpu-0", without(gpu0, "numaNode", "pciBusID")+" gpu.nvidia.com/pcieBusID=0000:11:00.0")
		}, "2/2 2/2; 2/2 PIX 2; 1/2 PIX 1; 2/2 PIX 2\nAttributeMissing gpu.nvidia.com publishes no resource.kubernetes.io/numaNode of 0000:11:00.0"},
		{
			"a GPU without address", func(_ *nodes.Node, s *[]Slice) { (*s)[0].Devices[0] = device("gpu-0", without(gpu0, "pciBusID")) },
			"2/2 2/2; 2/2 2; 2/2 2; 1/2 PIX 1" +
				"\nAttributeMissing gpu.nvidia.com publishes no resource.kubernetes.io/pciBusID of gpu-0",
		},
		{
			"another root", func(_ *nodes.Node, s *[]Slice) {
				(*s)[0].Devices[0] = device("gpu-0", strings.Replace(gpu0, "pci0000:10", "pci0000:20", 1))
			},
			"2/2 2/2; 2/2 SYS 1; 2/2 PIX 2; 2/2 PIX 2" +
				"\nAttributeDiffers resource.kubernetes.io/pcieRoot of 0000:11:00.0 is pci0000:20 in the ResourceSlice of gpu.nvidia.com, and pci0000:10 on the node",
		},
		{"another node", func(_ *nodes.Node, s *[]Slice) {
			for i, d := range []string{nic0, nic1} {
				(*s)[1].Devices[i] = device(fmt.Sprint("n", i), without(d, "numaNode")+" numaNode=7")
			}
		}, "2/2 2/2; 2/2 PIX 2; 0/2 0; 2/2 PIX 2" +
			"\nAttributeDiffers resource.kubernetes.io/numaNode of 0000:12:00.0 is 7 in the ResourceSlice of dra.net, and 0 on the node; 2 devices differ"},
		{
			"a list of nodes", func(_ *nodes.Node, s *[]Slice) {
				(*s)[0].Devices[0] = device("gpu-0", without(gpu0, "numaNode")+" numaNode=0|1")
			},
			"2/2 2/2; 2/2 PIX 2; 2/2 SYS 2; 2/2 PIX 2",
		},
		{
			"another RDMA device", func(_ *nodes.Node, s *[]Slice) {
				(*s)[1].Devices[0] = device("n", strings.Replace(nic0, "mlx5_0", "mlx5_9", 1))
			},
			all + "\nAttributeDiffers dra.net/rdmaDevice of 0000:12:00.0 is mlx5_9 in the ResourceSlice of dra.net, and mlx5_0 on the node",
		},
		{"no RDMA", func(_ *nodes.Node, s *[]Slice) {
			(*s)[1].Devices[0] = device("n", without(nic0, "rdma")+" dra.net/rdma=false")
		}, "2/2 1/2; 1/2 PIX 1; 1/2 PIX 1; 2/2 SYS 1" +
			"\nAttributeDiffers dra.net/rdma of 0000:12:00.0 is false in the ResourceSlice of dra.net, and true on the node" +
			"\nNoMatch 1 of 2 GPUs have the pcieRoot of no RDMA NIC that is published: a Pod that claims such a pair stays Pending"},
		{"two RDMA devices of a function", func(n *nodes.Node, _ *[]Slice) {
			second := n.Hardware.NICs[0]
			second.RDMA = "mlx5_2"
			n.Hardware.NICs = append(n.Hardware.NICs, second)
		}, all},
		{"facts that the agent does not know", func(n *nodes.Node, _ *[]Slice) {
			n.Hardware.GPUs[0].PCIeRoot, n.Hardware.GPUs[1].NUMANode, n.Hardware.NICs[0].RDMA = "", "", ""
		}, "2/2 2/1; 2/2 PIX 2; 2/2 PIX 2; 2/2 PIX 2"},
		{"a level that is not known", func(n *nodes.Node, _ *[]Slice) {
			delete(n.Hardware.Levels, nodes.Pair{GPU: "0000:11:00.0", NIC: "0000:12:00.0"})
		}, "2/2 2/2; 2/2 2; 2/2 2; 2/2 SYS 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, s := agent("n"), published("n")
			test.change(&n, &s)
			c := compare(n, s)
			if diff := cmp.Diff(test.want, lines(&c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, f := range c.Findings {
				if f.Fix == "" || row(f.Code) < 0 {
					t.Errorf("no fix or no order: %+v", f)
				}
			}
		})
	}
}
