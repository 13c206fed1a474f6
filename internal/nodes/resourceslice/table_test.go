package resourceslice

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/nodes"
)

// fleet is sorted: one node as it should be, one without an agent, two with the same finding.
func fleet() []Node {
	var agents []nodes.Node
	var all []Slice
	for _, name := range []string{"c", "a", "d"} {
		agents = append(agents, agent(name))
		s := published(name)
		if name != "a" {
			s[0].Devices[0] = device("gpu-0", without(gpu0, "pcieRoot"))
		}
		all = append(all, s...)
	}
	all = append(all, published("b")...)
	all = append(all, slice("cpu-1", dranet, device("pci-0000-12-00-0", nic0))) // no agent and no GPU
	return Compare(agents, all)
}

func TestTable(t *testing.T) {
	var out strings.Builder
	if err := Table(&out, fleet(), nodes.Style{Headers: true}); err != nil {
		t.Fatal(err)
	}
	if err := Text(&out, fleet()); err != nil {
		t.Fatal(err)
	}
	const want = `NODE   GPUS   NICS   PCIEROOT   NUMANODE   ADDRESS   FINDINGS
a      2/2    2/2    2/2 PIX    2/2 PIX    2/2 PIX   -
b      2/0    2/0    2/2        2/2        0/2       NoAgent
c      2/2    2/2    1/2 PIX    2/2 PIX    2/2 PIX   NoMatch,AttributeMissing
d      2/2    2/2    1/2 PIX    2/2 PIX    2/2 PIX   NoMatch,AttributeMissing

NoAgent: b: no agent has published a NodeFeature of this node, so there is nothing to compare with
    fix: run the agent of gdr-features on the node
NoMatch: c, d: 1 of 2 GPUs have the pcieRoot of no RDMA NIC that is published: a Pod that claims such a pair stays Pending
    fix: claim by numaNode, which gives PIX or nearer; gdr-features claim prints such a claim on the node
AttributeMissing: c, d: gpu.nvidia.com publishes no resource.kubernetes.io/pcieRoot of 0000:11:00.0
    fix: claim by numaNode, which gives PIX or nearer; gdr-features claim prints such a claim on the node (drivers find no pcieRoot below the VMBus of Hyper-V, nor at addresses with a domain of five digits)
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	if err := Table(&out, fleet()[2:3], nodes.Style{Wide: true, Namespaces: true}); err != nil {
		t.Fatal(err)
	}
	const wide = "gdr   c   2/2   2/2   1/2 PIX   2/2 PIX   2/2 PIX   1   2   2   gpu.nvidia.com,dra.net   NoMatch,AttributeMissing\n"
	if diff := cmp.Diff(wide, out.String()); diff != "" {
		t.Errorf("-o wide (-want +got):\n%s", diff)
	}
}

// What a cluster says cannot control a terminal or break a line.
func TestHostile(t *testing.T) {
	n := agent("n\x1b[2J\ny")
	s := published(n.Name)
	s[0].Devices[0] = device("gpu-0", strings.Replace(gpu0, "pci0000:10", "x\x1b", 1))
	var out strings.Builder
	all := Compare([]nodes.Node{n}, s)
	if err := Table(&out, all, nodes.Style{}); err != nil {
		t.Fatal(err)
	}
	if err := Text(&out, all); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(out.String(), 0x1b) || strings.Count(out.String(), "\n") != 6 {
		t.Errorf("printed %q", out.String())
	}
}

func TestJSON(t *testing.T) {
	var out strings.Builder
	if err := JSON(&out, fleet()[2:3]); err != nil {
		t.Fatal(err)
	}
	const want = `{
  "nodes": [
    {
      "node": "c",
      "namespace": "gdr",
      "align": "pcieRoot",
      "drivers": [
        "gpu.nvidia.com",
        "dra.net"
      ],
      "gpus": {
        "listed": 2,
        "published": 2
      },
      "nics": {
        "listed": 2,
        "published": 2
      },
      "matches": {
        "address": {
          "gpus": 2,
          "pairs": 2,
          "level": "PIX"
        },
        "numaNode": {
          "gpus": 2,
          "pairs": 2,
          "level": "PIX"
        },
        "pcieRoot": {
          "gpus": 1,
          "pairs": 1,
          "level": "PIX"
        }
      },
      "findings": [
        {
          "code": "NoMatch",
          "driver": "",
          "attribute": "resource.kubernetes.io/pcieRoot",
          "devices": [
            "0000:11:00.0"
          ],
          "text": "1 of 2 GPUs have the pcieRoot of no RDMA NIC that is published: a Pod that claims such a pair stays Pending",
          "fix": "claim by numaNode, which gives PIX or nearer; gdr-features claim prints such a claim on the node"
        },
        {
          "code": "AttributeMissing",
          "driver": "gpu.nvidia.com",
          "attribute": "resource.kubernetes.io/pcieRoot",
          "devices": [
            "0000:11:00.0"
          ],
          "text": "gpu.nvidia.com publishes no resource.kubernetes.io/pcieRoot of 0000:11:00.0",
          "fix": "claim by numaNode, which gives PIX or nearer; gdr-features claim prints such a claim on the node (drivers find no pcieRoot below the VMBus of Hyper-V, nor at addresses with a domain of five digits)"
        }
      ]
    }
  ]
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	if err := JSON(&out, nil); err != nil || out.String() != "{\n  \"nodes\": []\n}\n" {
		t.Errorf("of none: %q, error %v", out.String(), err)
	}
}

// The pairs are as many as an exhaustive search finds, for all small cases.
func TestMostPairs(t *testing.T) {
	var most func(nicsOf [][]int, taken int) int
	most = func(nicsOf [][]int, taken int) int {
		if len(nicsOf) == 0 {
			return 0
		}
		best := most(nicsOf[1:], taken)
		for _, n := range nicsOf[0] {
			if taken&(1<<n) == 0 {
				best = max(best, 1+most(nicsOf[1:], taken|1<<n))
			}
		}
		return best
	}
	const gpus, nics = 3, 3
	for bits := range 1 << (gpus * nics) {
		nicsOf := make([][]int, gpus)
		for i := range gpus * nics {
			if bits&(1<<i) != 0 {
				nicsOf[i/nics] = append(nicsOf[i/nics], i%nics)
			}
		}
		if got, want := mostPairs(nicsOf, nics), most(nicsOf, 0); got != want {
			t.Errorf("%v: %d pairs, want %d", nicsOf, got, want)
		}
	}
}
