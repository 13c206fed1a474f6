package frameworks_test

import (
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/frameworks"
	"gdr-features/test/machine"
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
		{"cards before ports", twoCards, "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1", []string{"mlx5_0", "mlx5_2"}, map[string]string{
			"=mlx5_0,mlx5_1": "PART left out: mlx5_2, mlx5_3; bandwidth lost by the GPUs 0000:13:00.0, 0000:14:00.0: 50%",
		}},
		{"a nearer DPU", withDPU, "=mlx5_2:1,mlx5_3:1", []string{"mlx5_2"}, map[string]string{
			"=mlx5_2,mlx5_3":               "OK ",
			"=mlx5_0,mlx5_1,mlx5_2,mlx5_3": "OK ",
			"=mlx5_2":                      "PART left out: mlx5_3; bandwidth lost by the GPU 0000:13:00.0: 50%",
			"=mlx5_0,mlx5_1":               "WRONG the GPU 0000:13:00.0 is given only mlx5_0 (it is for north-south traffic)",
		}},
		{"a storage NIC", storage, "=mlx5_0:1", []string{"mlx5_0"}, map[string]string{
			"=mlx5_0":        "OK ",
			"=mlx5_0,mlx5_1": "OK ",
			"=mlx5_1":        "WRONG the GPU 0000:13:00.0 is given mlx5_1 at NODE; mlx5_0 is nearer, at PIX",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := described(t, tt.machine)
			if s := frameworks.Named("nccl").Write(m); len(s.Variables) != 1 || s.Variables[0].Value != tt.list {
				t.Errorf("nccl: %v, want %q", s.Variables, tt.list)
			}
			var each []string
			for _, c := range m.Choices {
				each = append(each, c.NIC.RDMA)
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

// TestPublishedLists: lists that clouds publish for their shapes.
func TestPublishedLists(t *testing.T) {
	for name, want := range map[string]string{
		// oracle-quickstart/oci-hpc-oke, docs/recommended-nccl-rccl-parameters-by-shape.md: all
		// ports of the eight, without the one of the frontend.
		"oke-gb200-v3": "mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_5,mlx5_6,mlx5_7,mlx5_8",
	} {
		described, err := machine.Load("../../testdata/machines/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		m := mapOf(t, described.Tree(t, described.Ready()))
		var got []string
		for _, nic := range m.Near() {
			got = append(got, nic.RDMA)
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestNCCLNotes: what in the environment keeps NCCL from using all of a list.
func TestNCCLNotes(t *testing.T) {
	uneven := strings.Replace(twoPorts, "        0000:24:00.1 eth 15b3:1021 rdma=mlx5_3\n", "", 1)
	for _, tt := range []struct {
		name, machine, variable, value, want string
	}{
		{"both cards", twoCards, "NCCL_NETDEVS_POLICY", "MAX:1", "NCCL_NETDEVS_POLICY=MAX:1 is set: NCCL uses only 1 of the 2 devices near a GPU."},
		{"the ports of a card are one device", twoPorts, "NCCL_NETDEVS_POLICY", "MAX:1", ""},
		{"another policy", twoCards, "NCCL_NETDEVS_POLICY", "ALL", ""},
		{"ports apart", twoPorts, "NCCL_IB_MERGE_NICS", "0", "NCCL_IB_MERGE_NICS=0 is set: NCCL does not join the ports of a card, and each channel uses one of them."},
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
		if f := judged(t, m, []byte(given))[0]; f.Harmless != want || f.State != tristate.False {
			t.Errorf("%s: %+v", given, *f)
		}
	}
}
