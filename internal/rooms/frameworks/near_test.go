package frameworks_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/tristate"
)

// twoPorts has two GPUs below a switch each, each beside a card with two ports.
const twoPorts = `
nodes 1
pci0000:10 numa=0
  0000:10:01.0 port 8086:352a
    0000:11:00.0 switch 1000:c030
      0000:12:00.0 port 1000:c030
        0000:13:00.0 gpu 10de:2330 name=GPU0
      0000:12:01.0 port 1000:c030
        0000:14:00.0 eth 15b3:1021 rdma=mlx5_0
        0000:14:00.1 eth 15b3:1021 rdma=mlx5_1
pci0000:20 numa=0
  0000:20:01.0 port 8086:352a
    0000:21:00.0 switch 1000:c030
      0000:22:00.0 port 1000:c030
        0000:23:00.0 gpu 10de:2330 name=GPU1
      0000:22:01.0 port 1000:c030
        0000:24:00.0 eth 15b3:1021 rdma=mlx5_2
        0000:24:00.1 eth 15b3:1021 rdma=mlx5_3
`

// unequal has two GPUs below a switch each, one beside a card with two ports, the other beside two.
const unequal = twoPorts + `      0000:22:02.0 port 1000:c030
        0000:25:00.0 eth 15b3:1021 rdma=mlx5_4
`

// twoCards has two GPUs and two cards with two ports each below one switch.
const twoCards = `
nodes 1
pci0000:10 numa=0
  0000:10:01.0 port 8086:352a
    0000:11:00.0 switch 1000:c030
      0000:12:00.0 port 1000:c030
        0000:13:00.0 gpu 10de:3182 name=GPU0
      0000:12:01.0 port 1000:c030
        0000:14:00.0 gpu 10de:3182 name=GPU1
      0000:12:02.0 port 1000:c030
        0000:15:00.0 ib 15b3:1023 rdma=mlx5_0
        0000:15:00.1 ib 15b3:1023 rdma=mlx5_1
      0000:12:03.0 port 1000:c030
        0000:16:00.0 ib 15b3:1023 rdma=mlx5_2
        0000:16:00.1 ib 15b3:1023 rdma=mlx5_3
`

// withDPU has a BlueField-3 nearer to a GPU than the two ConnectX-7 of the machine.
const withDPU = `
nodes 1
pci0000:10 numa=0
  0000:10:01.0 port 8086:352a
    0000:11:00.0 switch 1000:c030
      0000:12:00.0 port 1000:c030
        0000:13:00.0 gpu 10de:2bb5 name=GPU0
      0000:12:01.0 port 1000:c030
        0000:14:00.0 eth 15b3:a2dc rdma=mlx5_0
        0000:14:00.1 eth 15b3:a2dc rdma=mlx5_1
pci0000:20 numa=0
  0000:20:01.0 port 8086:352a
    0000:21:00.0 eth 15b3:1021 rdma=mlx5_2
  0000:20:02.0 port 8086:352a
    0000:22:00.0 eth 15b3:1021 rdma=mlx5_3
`

// storage has a second NIC with the same id in the same NUMA node.
const storage = `
nodes 1
pci0000:10 numa=0
  0000:10:01.0 port 8086:352a
    0000:11:00.0 switch 1000:c030
      0000:12:00.0 port 1000:c030
        0000:13:00.0 gpu 10de:2330 name=GPU0
      0000:12:01.0 port 1000:c030
        0000:14:00.0 ib 15b3:1021 rdma=mlx5_0
pci0000:20 numa=0
  0000:20:01.0 port 8086:352a
    0000:21:00.0 ib 15b3:1021 rdma=mlx5_1
`

// TestNear: what lists hold, which NIC each GPU gets, and how lists are judged.
func TestNear(t *testing.T) {
	for _, tt := range []struct {
		name, machine, list string
		each                []string
		judged              map[string]string
	}{
		{"two ports for each GPU", twoPorts, "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1", []string{"mlx5_0", "mlx5_2"}, map[string]string{
			"=mlx5_0:1,mlx5_2:1":          "PART left out: mlx5_1, mlx5_3; bandwidth lost by the GPUs 0000:13:00.0, 0000:23:00.0: 50%",
			"=mlx5_0:1,mlx5_1:1,mlx5_2:1": "PART left out: mlx5_3; bandwidth lost by the GPU 0000:23:00.0: 50%",
			"^mlx5_9":                     "OK ",
		}},
		{"two and three for a GPU", unequal, "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1", []string{"mlx5_0", "mlx5_2"}, map[string]string{
			"=mlx5_0:1,mlx5_2:1,mlx5_4:1": "PART left out: mlx5_1; bandwidth lost by the GPU 0000:13:00.0: 50%; " +
				"left out: mlx5_3; bandwidth lost by the GPU 0000:23:00.0: 33%",
		}},
		{"cards before ports", twoCards, "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1", []string{"mlx5_0", "mlx5_2"}, map[string]string{
			"=mlx5_0,mlx5_1": "PART left out: mlx5_2, mlx5_3; bandwidth lost by the GPUs 0000:13:00.0, 0000:14:00.0: 50%",
		}},
		{"a nearer DPU", withDPU, "=mlx5_2:1,mlx5_3:1", []string{"mlx5_2"}, map[string]string{
			"=mlx5_2,mlx5_3":               "OK ",
			"=mlx5_0,mlx5_1,mlx5_2,mlx5_3": "OK ",
			"=mlx5_2":                      "PART left out: mlx5_3; bandwidth lost by the GPU 0000:13:00.0: 50%",
			"=mlx5_0,mlx5_1":               "WRONG the GPU 0000:13:00.0 is given only mlx5_0 (it is for north-south traffic)",
		}},
		{"a DPU while the others are down", strings.NewReplacer("rdma=mlx5_2", "rdma=mlx5_2 port=DOWN", "rdma=mlx5_3", "rdma=mlx5_3 port=DOWN").Replace(withDPU), "", []string{""}, map[string]string{
			"=mlx5_0,mlx5_1": "WRONG the GPU 0000:13:00.0 is given only mlx5_0 (it is for north-south traffic)",
		}},
		{"a DPU while the others have no RDMA device", strings.NewReplacer(" rdma=mlx5_2", "", " rdma=mlx5_3", "").Replace(withDPU), "", []string{""}, map[string]string{
			"=mlx5_0,mlx5_1": "WRONG the GPU 0000:13:00.0 is given only mlx5_0 (it is for north-south traffic)",
		}},
		{"a storage NIC", storage, "=mlx5_0:1", []string{"mlx5_0"}, map[string]string{
			"=mlx5_0":        "OK ",
			"=mlx5_0,mlx5_1": "OK ",
			"=mlx5_1":        "WRONG the GPU 0000:13:00.0 is given mlx5_1 at NODE; mlx5_0 is nearer, at PIX",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := described(t, tt.machine)
			s := frameworks.Named("nccl").Write(m)
			if tt.list == "" && len(s.Variables) > 0 || tt.list != "" && (len(s.Variables) != 1 || s.Variables[0].Value != tt.list) {
				t.Errorf("nccl: %v, want %q", s.Variables, tt.list)
			}
			var each []string
			for _, c := range m.Choices {
				name := ""
				if c.NIC != nil {
					name = c.NIC.RDMA
				}
				each = append(each, name)
			}
			if !slices.Equal(each, tt.each) {
				t.Errorf("one for each: %q, want %q", each, tt.each)
			}
			for list, want := range tt.judged {
				f := judged(t, m, []byte("NCCL_IB_HCA="+list))[0]
				got := map[bool]string{true: "OK ", false: "WRONG "}[len(f.Problems) == 0]
				if f.Part {
					got = "PART "
				}
				if got += strings.Join(f.Problems, "; "); got != want {
					t.Errorf("%s:\n%s, want\n%s", list, got, want)
				}
			}
		})
	}
}

// shape is a machine as ai2-compute-gpu/oci-dr-hpc-v2 describes it (internal/shapes/shapes.json):
// the GPUs with the NICs that are theirs, by the first part of the address, and the NICs of the
// front end. Of the places only that is published.
func shape(gpu, card string, pairs, frontEnd []string) string {
	var b strings.Builder
	b.WriteString("nodes 2\n")
	for i, pair := range pairs {
		words := strings.Fields(pair)
		fmt.Fprintf(&b, "pci00%02x:00 numa=%d\n  00%02x:00:01.0 port 8086:352a\n    00%02x:01:00.0 switch 1000:c030\n", i+1, 2*i/len(pairs), i+1, i+1)
		fmt.Fprintf(&b, "      00%02x:02:00.0 port 1000:c030\n        0000:%s:00.0 %s\n      00%02x:02:01.0 port 1000:c030\n", i+1, words[0], gpu, i+1)
		for function, name := range words[2:] {
			fmt.Fprintf(&b, "        0000:%s:00.%d eth %s rdma=%s\n", words[1], function, card, name)
		}
	}
	for i, nic := range frontEnd {
		fmt.Fprintf(&b, "pci01%02x:00 numa=%d\n  01%02x:00:01.0 port 8086:352a\n", i, i*2/len(frontEnd), i)
		for function, name := range strings.Fields(nic)[2:] {
			fmt.Fprintf(&b, "    0000:%s:00.%d eth %s rdma=%s\n", strings.Fields(nic)[0], function, strings.Fields(nic)[1], name)
		}
	}
	return b.String()
}

// TestPublishedLists: lists that clouds and vendors publish for their machines are ours, name for
// name, and right.
func TestPublishedLists(t *testing.T) {
	const a100, cx5, cx7 = "gpu 10de:20b2", "15b3:1019", "15b3:1021"
	sxm := strings.Fields("0f 2d 44 5b 89 a8 c0 d8")
	mi300x := strings.Fields("11 2f 46 5d 8b aa c2 da")
	with := func(gpus []string, names string) (pairs []string) {
		for i, name := range strings.Fields(names) {
			pairs = append(pairs, gpus[i]+" "+strings.Fields("0c 2a 41 58 86 a5 bd d5")[i]+" "+name)
		}
		return pairs
	}
	frontEnd := []string{"1f 15b3:1021 mlx5_1 mlx5_2", "9a 15b3:1021 mlx5_7 mlx5_8"}
	for _, tt := range []struct{ name, machine, list string }{
		// oracle-quickstart/oci-hpc-oke 61d210a, docs/recommended-nccl-rccl-parameters-by-shape.md
		{"oke-gb200-v3", "", "=mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_5,mlx5_6,mlx5_7,mlx5_8"},
		{"oci-h100", "", "=mlx5_0,mlx5_1,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7,mlx5_8,mlx5_9,mlx5_10,mlx5_12,mlx5_13,mlx5_14,mlx5_15,mlx5_16,mlx5_17"},
		{
			"BM.GPU4.8", shape(a100, cx5, []string{
				"0f 0c mlx5_6 mlx5_7", "15 16 mlx5_8 mlx5_9", "51 48 mlx5_0 mlx5_1", "54 4c mlx5_2 mlx5_3",
				"8d 8a mlx5_14 mlx5_15", "92 94 mlx5_16 mlx5_17", "d6 c3 mlx5_10 mlx5_11", "da d1 mlx5_12 mlx5_13",
			}, []string{"2d 15b3:1019 mlx5_4"}),
			"=mlx5_0,mlx5_2,mlx5_6,mlx5_8,mlx5_10,mlx5_12,mlx5_14,mlx5_16,mlx5_1,mlx5_3,mlx5_7,mlx5_9,mlx5_11,mlx5_13,mlx5_15,mlx5_17",
		},
		{
			"BM.GPU.A100-v2.8", shape(a100, cx5, []string{
				"0f 0c mlx5_5 mlx5_6", "15 16 mlx5_7 mlx5_8", "50 47 mlx5_1 mlx5_2", "53 4b mlx5_3 mlx5_4",
				"8c 89 mlx5_14 mlx5_15", "91 93 mlx5_16 mlx5_17", "d6 c3 mlx5_9 mlx5_10", "da d1 mlx5_11 mlx5_12",
			}, []string{"6b 15b3:101d mlx5_0"}),
			"=mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7,mlx5_8,mlx5_14,mlx5_15,mlx5_16,mlx5_17,mlx5_9,mlx5_10,mlx5_11,mlx5_12",
		},
		{
			"BM.GPU.H200.8", shape("gpu 10de:2335", cx7, with(sxm, "mlx5_0 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_9 mlx5_10 mlx5_11"), frontEnd),
			"=mlx5_0,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_9,mlx5_10,mlx5_11",
		},
		{
			"BM.GPU.B200.8", shape("gpu 10de:2901", cx7, with(sxm, "mlx5_0 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_9 mlx5_10 mlx5_11"), frontEnd),
			"=mlx5_0,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_9,mlx5_10,mlx5_11",
		},
		{
			"BM.GPU.MI300X.8", shape("accel 1002:74a1", cx7, with(mi300x, "mlx5_0 mlx5_2 mlx5_3 mlx5_4 mlx5_5 mlx5_7 mlx5_8 mlx5_9"),
				[]string{"1f 15b3:101d mlx5_1", "9a 15b3:101d mlx5_6"}),
			"=mlx5_0,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_7,mlx5_8,mlx5_9",
		},
		// NVIDIA/k8s-launch-kit 7e9cc56, presets/ThinkSystem-SR675-V3-RTX-PRO-6000/topology.yaml:
		// what it calls east-west, without the two of Ethernet: no list has two link layers.
		{"lenovo-sr675-v3-rtxpro", "", "=mlx5_6,mlx5_7,mlx5_8,mlx5_9,mlx5_4,mlx5_5"},
		// The source is named in the description: storage NICs of the same id at NODE.
		{"dgx-h100-e810-mixed", "", "mlx5_0,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_9,mlx5_10,mlx5_11"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := []byte(tt.machine)
			if tt.machine == "" {
				var err error
				if text, err = os.ReadFile("../../../testdata/machines/" + tt.name + ".txt"); err != nil {
					t.Fatal(err)
				}
			}
			m := described(t, string(text))
			var got []string
			for _, nic := range m.Near() {
				got = append(got, nic.RDMA)
			}
			want := strings.Split(strings.TrimPrefix(tt.list, "="), ",")
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%q, published is %q", got, want)
			}
			for _, f := range judged(t, m, []byte("NCCL_IB_HCA="+tt.list)) {
				if f.State != tristate.True {
					t.Errorf("the published list: %s", f.Text())
				}
			}
		})
	}
}

// TestNCCLNotes: what in the environment keeps NCCL from using all of a list.
func TestNCCLNotes(t *testing.T) {
	one := regexp.MustCompile(`(?m)^ *0000:1[56]:00\.1 .*\n`).ReplaceAllString(twoCards, "")
	uneven := strings.Replace(twoPorts, "        0000:24:00.1 eth 15b3:1021 rdma=mlx5_3\n", "", 1)
	for _, tt := range []struct {
		name, machine, variable, value, want string
	}{
		{"both cards", twoCards, "NCCL_NETDEVS_POLICY", "MAX:1", "NCCL_NETDEVS_POLICY=MAX:1 is set: NCCL uses only 1 of the 2 devices near a GPU."},
		{"the ports of a card are one device", twoPorts, "NCCL_NETDEVS_POLICY", "MAX:1", ""},
		{"another policy", twoCards, "NCCL_NETDEVS_POLICY", "ALL", ""},
		{"ports apart", twoPorts, "NCCL_IB_MERGE_NICS", "0", "NCCL_IB_MERGE_NICS=0 is set: NCCL does not join the ports of a card, and each channel uses one of them."},
		{"one port a card", one, "NCCL_IB_MERGE_NICS", "0", ""},
		{"ports together", twoPorts, "NCCL_IB_MERGE_NICS", "1", ""},
		{"even rails", twoPorts, "NCCL_CROSS_NIC", "0", ""},
		{"uneven rails", uneven, "NCCL_CROSS_NIC", "0", "NCCL_CROSS_NIC=0 is set: NCCL stays on one rail from node to node, and rails are uneven here."},
	} {
		m := described(t, tt.machine)
		notes := frameworks.NCCLNotes(m, map[string]string{tt.variable: tt.value})
		if got := strings.Join(notes, " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		rails := strings.Join(frameworks.Named("nccl").Write(m).Notes, " ")
		if want := tt.machine == uneven; strings.Contains(rails, "The rails are uneven: NICs near the GPU 0000:23:00.0: 1, near the GPU 0000:13:00.0: 2.") != want {
			t.Errorf("%s: notes %q", tt.name, rails)
		}
	}
}

// TestMore: what frameworks are told that have lists of their own, for one GPU with two NICs and
// for all four GPUs.
func TestMore(t *testing.T) {
	m := fourGPUs(t)
	for _, tt := range []struct{ framework, one, all, note string }{
		{
			"deepep", "NVSHMEM_HCA_LIST=mlx5_0:1,mlx5_1:1 NCCL_IB_HCA==mlx5_0:1,mlx5_1:1 EP_NIC_NAME=mlx5_0",
			"NVSHMEM_HCA_LIST=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1 NCCL_IB_HCA==mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1 EP_NIC_NAME=mlx5_0",
			"NVSHMEM_ENABLE_NIC_PE_MAPPING must not be set",
		},
		{"uccl", "UCCL_P2P_RDMA_DEV=mlx5_0,mlx5_1", "UCCL_P2P_RDMA_DEV=mlx5_0,mlx5_1,mlx5_2,mlx5_3", "NCCL_IB_HCA (--for nccl)"},
		{"nixl", "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1", "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1", `device_list="mlx5_0, mlx5_1`},
		{"modelexpress", "CUDA_DEVICE_ORDER=PCI_BUS_ID MX_RDMA_NIC_PIN=mlx5_0:1,", "CUDA_DEVICE_ORDER=PCI_BUS_ID MX_RDMA_NIC_PIN=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1", ""},
		{"mooncake-store", "MOONCAKE_DEVICE=mlx5_0,mlx5_1", "MOONCAKE_DEVICE=mlx5_0,mlx5_1,mlx5_2,mlx5_3", "MC_MS_AUTO_DISC=1 must not be set"},
	} {
		for want, s := range map[string]frameworks.Settings{
			tt.one: frameworks.Named(tt.framework).Write(m.Only([]int{0})), tt.all: frameworks.Named(tt.framework).Write(m),
		} {
			var got []string
			for _, v := range s.Variables {
				got = append(got, v.Name+"="+v.Value)
			}
			if strings.Join(got, " ") != want || !strings.Contains(strings.Join(s.Notes, "\n"), tt.note) {
				t.Errorf("%s: %q, notes %q; want %s, %s", tt.framework, got, s.Notes, want, tt.note)
			}
		}
	}
}

// TestPlannedRate: DeepEP plans with the rate of a NIC that need not be near.
func TestPlannedRate(t *testing.T) {
	m := switched(t, 1, "ib 15b3:1021 rdma=mlx5_0", "eth 15b3:1021 rdma=mlx5_1 rate=100", "ib 15b3:1021 rdma=mlx5_2")
	for name, want := range map[string]string{
		"mlx5_1": "DeepEP plans with the rate of mlx5_1, 100 Gbit/s; that of mlx5_0 is 400 Gbit/s",
		"mlx5_2": "",
	} {
		if f := judged(t, m, []byte("EP_NIC_NAME="+name))[0]; strings.Join(f.Problems, "; ") != want {
			t.Errorf("%s: %q, want %q", name, f.Problems, want)
		}
	}
}

// TestRightForAll: a list that is right for all GPUs is not that of one process.
func TestRightForAll(t *testing.T) {
	m := described(t, `
nodes 1
pci0000:10 numa=0
  0000:10:01.0 port 8086:352a
    0000:11:00.0 switch 1000:c030
      0000:12:00.0 port 1000:c030
        0000:13:00.0 gpu 10de:2330
      0000:12:01.0 port 1000:c030
        0000:14:00.0 gpu 10de:2330
      0000:12:02.0 port 1000:c030
        0000:15:00.0 ib 15b3:1021 rdma=mlx5_0
`)
	for _, given := range []string{"MOONCAKE_DEVICE=mlx5_0", "UCCL_P2P_RDMA_DEV=mlx5_0", "UCX_NET_DEVICES=mlx5_0:1"} {
		if f := judged(t, m, []byte(given))[0]; f.State != tristate.True {
			t.Errorf("%s: %+v", given, *f)
		}
	}
}

// TestOfOneProcess: a list that holds for a process may be that of one of several GPUs.
func TestOfOneProcess(t *testing.T) {
	m := described(t, twoPorts)
	for given, want := range map[string]bool{
		"UCX_NET_DEVICES=mlx5_2:1,mlx5_3:1":           true,
		"UCX_NET_DEVICES=mlx5_2:1":                    true,
		"UCX_NET_DEVICES=mlx5_1:1,mlx5_3:1":           false,
		"UCCL_P2P_RDMA_DEV=mlx5_2,mlx5_3":             true,
		"MOONCAKE_DEVICE=mlx5_0,mlx5_1":               true,
		"MOONCAKE_DEVICE=mlx5_1,mlx5_3":               false,
		"UCCL_P2P_RDMA_DEV=mlx5_1,mlx5_2,mlx5_3,nope": false,
	} {
		if f := judged(t, m, []byte(given))[0]; f.MayBeMeant != want || f.State != tristate.False {
			t.Errorf("%s: %+v", given, *f)
		}
	}
	one := m.Only([]int{0}) // then the list is for this GPU
	for _, given := range []string{"UCX_NET_DEVICES=mlx5_0:1", "UCX_NET_DEVICES=mlx5_2:1,mlx5_3:1"} {
		if f := judged(t, one, []byte(given))[0]; f.MayBeMeant || f.State != tristate.False {
			t.Errorf("of one GPU, %s: %+v", given, *f)
		}
	}
	for gpus, notes := range map[*assign.Assignment]bool{m: true, one: false} {
		s := frameworks.Named("ucx").Write(gpus)
		if strings.Contains(strings.Join(s.Notes, " "), "applies to a whole process") != notes {
			t.Errorf("%d GPUs: %q", len(gpus.Choices), s.Notes)
		}
	}
}

// TestSharesInOrder: what a list leaves out is said of the GPUs that lose most first, and of those
// that lose the same share, of those with fewer NICs first.
func TestSharesInOrder(t *testing.T) {
	var b strings.Builder
	b.WriteString("nodes 1\n")
	device := 0
	for i, nics := range []int{4, 3, 2, 2} {
		fmt.Fprintf(&b, "pci00%d0:00 numa=0\n  00%[1]d0:00:01.0 port 8086:352a\n    00%[1]d0:01:00.0 switch 1000:c030\n", i+1)
		fmt.Fprintf(&b, "      00%d0:02:00.0 port 1000:c030\n        00%[1]d0:03:00.0 gpu 10de:2330\n", i+1)
		for n := range nics {
			fmt.Fprintf(&b, "      00%d0:02:0%d.0 port 1000:c030\n        00%[1]d0:0%[3]d:00.0 ib 15b3:1021 rdma=mlx5_%[4]d\n", i+1, n+1, n+4, device)
			device++
		}
	}
	m := described(t, b.String())
	f := judged(t, m, []byte("NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_4,mlx5_5,mlx5_7,mlx5_9,mlx5_10"))[0]
	want := []string{
		"left out: mlx5_8; bandwidth lost by the GPU 0030:03:00.0: 50%",
		"left out: mlx5_2, mlx5_3; bandwidth lost by the GPU 0010:03:00.0: 50%",
		"left out: mlx5_6; bandwidth lost by the GPU 0020:03:00.0: 33%",
	}
	if !slices.Equal(f.Problems, want) {
		t.Errorf("%q, want %q", f.Problems, want)
	}
}
