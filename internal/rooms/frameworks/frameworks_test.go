package frameworks_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// mapOf assigns all GPUs of a machine.
func mapOf(t *testing.T, dir string) *assign.Assignment {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	r := report.Collect(t.Context(), fs, report.ForEnv)
	here := assign.NewMachine(&r.Node, func(string) bool { return true })
	return here.Assign(here.EveryGPU(), nil)
}

// forms are all that env prints for a framework.
func forms(t *testing.T, m *assign.Assignment, f frameworks.Framework) map[string][]byte {
	t.Helper()
	s := f.Write(m)
	s.Notes = append(m.Notes(), s.Notes...)
	document, err := json.Marshal(frameworks.NewDocument(m, []frameworks.Framework{f}))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{"shell": frameworks.Shell(s), "dotenv": frameworks.DotEnv(s), "json": document}
	if f.HasFile {
		if all["file"], err = json.Marshal(s.File); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestPrintedIsRight: on every machine in every state, what is printed in any form is read
// back and found right. Where a level is not known that is said, and where a GPU has no NIC
// SGLang has no map.
func TestPrintedIsRight(t *testing.T) {
	for _, described := range testsize.Share(machine.All(t, "../../../testdata/machines")) {
		t.Run(described.Name, func(t *testing.T) {
			for s, dir := range described.Trees(t, testsize.Few(described.States())) {
				m := mapOf(t, dir)
				unknown := slices.ContainsFunc(m.Choices, func(c assign.Choice) bool { return c.Level == topology.Unknown })
				none := len(m.Choices) == 0 || slices.ContainsFunc(m.Choices, func(c assign.Choice) bool { return c.NIC == nil })
				for _, f := range frameworks.All {
					for form, text := range forms(t, m, f) {
						for _, finding := range judged(t, m, text) {
							if none && finding.Name == "sglang" { // it stops on a GPU without an entry
								if finding.State != tristate.False {
									t.Errorf("%s sglang -o %s: %+v\n%s", s.Name, form, *finding, text)
								}
								continue
							}
							if finding.State == tristate.False || finding.State == tristate.Unknown && !unknown {
								t.Errorf("%s %s -o %s: %+v\n%s", s.Name, f.Name, form, *finding, text)
							}
						}
					}
				}
			}
		})
	}
}

func judged(t *testing.T, m *assign.Assignment, text []byte) []*frameworks.Finding {
	t.Helper()
	given, err := frameworks.Parse(text)
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	var all []*frameworks.Finding
	for _, g := range given {
		all = append(all, frameworks.Check(m, g)...)
	}
	for _, f := range all {
		if (f.Harmless || f.MayBeMeant) && f.State != tristate.False {
			t.Errorf("%s is harmless or may be meant, and not wrong: %v", f.Name, f.State)
		}
	}
	return all
}

// four has two switches with two GPUs and two NICs each, and a NIC far from all.
const four = `
nodes 2
pci0000:10 numa=0
  0000:10:01.0 port 8086:352a
    0000:11:00.0 switch 1000:c030
      0000:12:00.0 port 1000:c030
        0000:13:00.0 gpu 10de:2330 name=GPU0
      0000:12:01.0 port 1000:c030
        0000:14:00.0 gpu 10de:2330 name=GPU1
      0000:12:02.0 port 1000:c030
        0000:15:00.0 ib 15b3:1021 rdma=mlx5_0
      0000:12:03.0 port 1000:c030
        0000:16:00.0 ib 15b3:1021 rdma=mlx5_1
pci0000:80 numa=1
  0000:80:01.0 port 8086:352a
    0000:81:00.0 switch 1000:c030
      0000:82:00.0 port 1000:c030
        0000:83:00.0 gpu 10de:2330 name=GPU2
      0000:82:01.0 port 1000:c030
        0000:84:00.0 gpu 10de:2330 name=GPU3
      0000:82:02.0 port 1000:c030
        0000:85:00.0 ib 15b3:1021 rdma=mlx5_2
      0000:82:03.0 port 1000:c030
        0000:86:00.0 ib 15b3:1021 rdma=mlx5_3
      0000:82:04.0 port 1000:c030
        0000:87:00.0 ib 15b3:1021 rdma=mlx5_4 port=DOWN
`

func fourGPUs(t *testing.T) *assign.Assignment {
	t.Helper()
	return described(t, four)
}

// described is a machine that is ready for GPUDirect RDMA.
func described(t *testing.T, text string) *assign.Assignment {
	t.Helper()
	described, err := machine.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return mapOf(t, described.Tree(t, described.Ready()))
}

// TestFindsWrong: each mistake is found, with the entry named.
func TestFindsWrong(t *testing.T) {
	const (
		vars    = "VLLM_NIC_SELECTION_VARS=UCX_NET_DEVICES:1,NVSHMEM_HCA_LIST:1\n"
		vllm    = "VLLM_GPU_NIC_PCIE_MAPPING="
		pairs   = "0000:13:00.0=0000:15:00.0,0000:14:00.0=0000:16:00.0,"
		nvshmem = "CUDA_DEVICE_ORDER=PCI_BUS_ID\nNVSHMEM_ENABLE_NIC_PE_MAPPING=1\nNVSHMEM_HCA_PE_MAPPING="
	)
	tests := []struct{ name, given, want string }{
		{"nothing", "PATH=/bin", ""},
		{"nccl: right in other words", "NCCL_IB_HCA=mlx5", "OK NCCL_IB_HCA"},
		{"nccl: right by exclusion", "NCCL_IB_HCA=^mlx5_4", "OK NCCL_IB_HCA"},
		{"nccl: unknown", "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_9:1", `WRONG NCCL_IB_HCA: "mlx5_9:1": there is no RDMA device "mlx5_9"`},
		{"nccl: not active", "NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4", `WRONG NCCL_IB_HCA: "mlx5_4": no port of mlx5_4 is active here`},
		{"nccl: another port", "NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_2,mlx5_3:2", `WRONG NCCL_IB_HCA: "mlx5_3:2": port 2 of mlx5_3 is not active; left out: mlx5_3; bandwidth lost by the GPUs 0000:83:00.0, 0000:84:00.0: 50%`},
		{"nccl: far", "NCCL_IB_HCA==mlx5_0,mlx5_1", "WRONG NCCL_IB_HCA: the GPU 0000:83:00.0 is given mlx5_0 at SYS; mlx5_2 is nearer, at PIX"},
		{"nccl: shared", "NCCL_IB_HCA==mlx5_0,mlx5_2,mlx5_3", "PART NCCL_IB_HCA: left out: mlx5_1; bandwidth lost by the GPUs 0000:13:00.0, 0000:14:00.0: 50%"},
		{"nccl: rails and planes", "NCCL_IB_HCA==mlx5_0:1:0:0,mlx5_1:1:1:0,mlx5_2::2,mlx5_3:1:3:", "OK NCCL_IB_HCA"},
		{"nccl: no rail", "NCCL_IB_HCA==mlx5_0:1:a,mlx5_1,mlx5_2,mlx5_3", `WRONG NCCL_IB_HCA: "mlx5_0:1:a": not of the form NAME:PORT:RAIL:PLANE`},
		{"nccl: one device for a GPU", "NCCL_NETDEVS_POLICY=MAX:1", "PART NCCL_NETDEVS_POLICY: NCCL_NETDEVS_POLICY=MAX:1 is set: NCCL uses only 1 of the 2 devices near a GPU."},
		{"nccl: blanks", "NCCL_IB_HCA==mlx5_0, mlx5_1,mlx5_2,mlx5_3", `WRONG NCCL_IB_HCA: " mlx5_1": there is no RDMA device " mlx5_1"`},
		{"nccl: an empty port is any", "NCCL_IB_HCA==mlx5_0:,mlx5_1,mlx5_2,mlx5_3", "OK NCCL_IB_HCA"},
		{"nccl: port 0", "NCCL_IB_HCA==mlx5_0:0,mlx5_1,mlx5_2,mlx5_3", `WRONG NCCL_IB_HCA: "mlx5_0:0": no port of mlx5_0 has this number; left out: mlx5_0`},
		{"nccl: no number", "NCCL_IB_HCA==mlx5_0:x,mlx5_1,mlx5_2,mlx5_3", `WRONG NCCL_IB_HCA: "mlx5_0:x": no port of mlx5_0 has this number; left out: mlx5_0`},
		{"nccl: excludes no port 0", "NCCL_IB_HCA=^mlx5_0:0", "OK NCCL_IB_HCA"},
		{"ucx: right", "UCX_NET_DEVICES=all", "OK UCX_NET_DEVICES"},
		{"ucx: of an MPI beside NCCL", "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1\nUCX_TLS=tcp\nUCX_NET_DEVICES=eth0", "OK UCX_NET_DEVICES: UCX_TLS=tcp is an MPI beside NCCL, and not judged"},
		{"ucx: all, excluded", "UCX_NET_DEVICES=^all", "OK UCX_NET_DEVICES"},
		{"ucx: all and others", "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,all", `WRONG UCX_NET_DEVICES: "all": it must stand alone`},
		{"ucx: no port", "UCX_NET_DEVICES=mlx5_0:1,mlx5_1,mlx5_2:1,mlx5_3:1", `UNKNOWN UCX_NET_DEVICES: "mlx5_1": UCX before 1.22 reads no name without a port; write mlx5_1:1`},
		{"ucx: no number", "UCX_NET_DEVICES=mlx5_0:x,mlx5_1:1,mlx5_2:1,mlx5_3:1", `WRONG UCX_NET_DEVICES: "mlx5_0:x": not of the form NAME:PORT`},
		{"ucx: a range", "UCX_NET_DEVICES=mlx5_[0-3]:1", `UNKNOWN UCX_NET_DEVICES: "mlx5_[0-3]:1": UCX before 1.22 reads no ranges`},
		{"ucx: a range with too many", "UCX_NET_DEVICES=mlx5_[0-5]:1", `WRONG UCX_NET_DEVICES: "mlx5_[0-5]:1": UCX before 1.22 reads no ranges; "mlx5_4:1": no port of mlx5_4 is active here; "mlx5_5:1": there is no RDMA device "mlx5_5"`},
		{"ucx: a range without an end", "UCX_NET_DEVICES=mlx5_[0-x]:1", `WRONG UCX_NET_DEVICES: "mlx5_[0-x]:1": there is no RDMA device`},
		{"ucx: no range", "UCX_NET_DEVICES=mlx5_[3-0]:1", `WRONG UCX_NET_DEVICES: "mlx5_[3-0]:1": there is no RDMA device`},
		{"ucx: perhaps a network device", "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,eth0", `UNKNOWN UCX_NET_DEVICES: "eth0": there is no RDMA device of this name`},
		{"ucx: none is usable", "UCX_NET_DEVICES=mlx5_4:1", `WRONG UCX_NET_DEVICES: "mlx5_4:1": no port of mlx5_4 is active here; the GPU 0000:13:00.0 has no usable entry`},
		{"nvshmem: swapped", nvshmem + "mlx5_2:1:2,mlx5_1:1:1,mlx5_3:1:1", "WRONG NVSHMEM_HCA_PE_MAPPING: the GPU 0000:14:00.0 is given mlx5_2 at SYS"},
		{"nvshmem: half", nvshmem + "mlx5_0:1:1,mlx5_1:1:1", "WRONG NVSHMEM_HCA_PE_MAPPING: 2 entries for 4 GPUs; the GPU 0000:83:00.0 is given mlx5_0"},
		{"nvshmem: shared", nvshmem + "mlx5_0:1:2,mlx5_2:1:2", "WRONG NVSHMEM_HCA_PE_MAPPING: 2 GPUs share mlx5_0, while mlx5_1"},
		{"nvshmem: no count", nvshmem + "mlx5_0:1,mlx5_1:1:1,mlx5_2:1,mlx5_3:1", "UNKNOWN NVSHMEM_HCA_PE_MAPPING: DeepEP starts each rank as the PE 0"},
		{"nvshmem: names", nvshmem + "mlx5_0,mlx5_1,mlx5_2,mlx5_3", "UNKNOWN NVSHMEM_HCA_PE_MAPPING: DeepEP starts each rank as the PE 0"},
		{"nvshmem: names swapped", nvshmem + "mlx5_0,mlx5_2", "WRONG NVSHMEM_HCA_PE_MAPPING: the GPU 0000:14:00.0 is given mlx5_2 at SYS"},
		{"nvshmem: no port", nvshmem + "mlx5_0:x:1,mlx5_1:1:1", `WRONG NVSHMEM_HCA_PE_MAPPING: "mlx5_0:x:1": not of the form`},
		{"nvshmem: count 0", nvshmem + "mlx5_0:1:0,mlx5_1:1:1", `WRONG NVSHMEM_HCA_PE_MAPPING: "mlx5_0:1:0": not of the form`},
		{"nvshmem: a name and its port", nvshmem + "mlx5_0,mlx5_0:1:1", `WRONG NVSHMEM_HCA_PE_MAPPING: "mlx5_0:1:1": of two entries for a port the last counts`},
		{"nvshmem: two entries", nvshmem + "mlx5_0:1:1,mlx5_0:1:1", `WRONG NVSHMEM_HCA_PE_MAPPING: "mlx5_0:1:1": of two entries for a port the last counts`},
		{"nvshmem: no switch", "CUDA_DEVICE_ORDER=PCI_BUS_ID\nNVSHMEM_HCA_PE_MAPPING=mlx5_0:1:1,mlx5_1:1:1,mlx5_2:1:1,mlx5_3:1:1", "WRONG NVSHMEM_HCA_PE_MAPPING: NVSHMEM ignores it without NVSHMEM_ENABLE_NIC_PE_MAPPING=1"},
		{"nvshmem: switched off", strings.Replace(nvshmem, "MAPPING=1", "MAPPING=false", 1) + "mlx5_0:1:1,mlx5_1:1:1,mlx5_2:1:1,mlx5_3:1:1", "WRONG NVSHMEM_HCA_PE_MAPPING: NVSHMEM ignores it without NVSHMEM_ENABLE_NIC_PE_MAPPING=1"},
		{"nvshmem: switched on in other words", strings.Replace(nvshmem, "MAPPING=1", "MAPPING=on", 1) + "mlx5_0:1:1,mlx5_1:1:1,mlx5_2:1:1,mlx5_3:1:1", "UNKNOWN NVSHMEM_HCA_PE_MAPPING: DeepEP starts each rank as the PE 0"},
		{"nvshmem: another order", "NVSHMEM_ENABLE_NIC_PE_MAPPING=1\nNVSHMEM_HCA_PE_MAPPING=mlx5_0:1:1,mlx5_1:1:1,mlx5_2:1:1,mlx5_3:1:1", "WRONG NVSHMEM_HCA_PE_MAPPING: GPUs are counted, and CUDA_DEVICE_ORDER=PCI_BUS_ID is not set"},
		{"nvshmem: defeated", nvshmem + "mlx5_0:1:1,mlx5_1:1:1,mlx5_2:1:1,mlx5_3:1:1\nNVSHMEM_HCA_LIST=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1", "WRONG NVSHMEM_HCA_PE_MAPPING: NVSHMEM ignores it, because NVSHMEM_HCA_LIST is set"},
		{"nvshmem: defeated by vLLM", nvshmem + "mlx5_0:1:1,mlx5_1:1:1,mlx5_2:1:1,mlx5_3:1:1\n" + vars, "WRONG NVSHMEM_HCA_PE_MAPPING: NVSHMEM ignores it, because vLLM sets NVSHMEM_HCA_LIST"},
		{"nvshmem: right by turns", "CUDA_DEVICE_ORDER=PCI_BUS_ID\nNVSHMEM_ENABLE_NIC_PE_MAPPING=1", "UNKNOWN NVSHMEM_ENABLE_NIC_PE_MAPPING: DeepEP starts each rank as the PE 0"},
		{"deepep: right", "EP_NIC_NAME=mlx5_2", "OK EP_NIC_NAME"},
		{"deepep: not active", "EP_NIC_NAME=mlx5_4", `WRONG EP_NIC_NAME: "mlx5_4": no port of mlx5_4 is active here`},
		{"uccl: right", "UCCL_P2P_RDMA_DEV= mlx5_3 ,,mlx5_2,mlx5_1,mlx5_0", "OK UCCL_P2P_RDMA_DEV"},
		{"uccl: places", "UCCL_P2P_RDMA_DEV=0,1,2,3", `UNKNOWN UCCL_P2P_RDMA_DEV: "0": a place in the order of libibverbs; write the name`},
		{"uccl: a port", "UCCL_P2P_RDMA_DEV=mlx5_0:1,mlx5_1,mlx5_2,mlx5_3", `WRONG UCCL_P2P_RDMA_DEV: "mlx5_0:1": there is no RDMA device "mlx5_0:1"`},
		{"uccl: far", "UCCL_P2P_RDMA_DEV=mlx5_0,mlx5_1", "WRONG UCCL_P2P_RDMA_DEV: the GPU 0000:83:00.0 is given mlx5_0 at SYS"},
		{"uccl: one for two", "UCCL_P2P_RDMA_DEV=mlx5_0,mlx5_2,mlx5_3", "PART UCCL_P2P_RDMA_DEV: left out: mlx5_1"},
		{"uccl: in NCCL's form", "UCCL_IB_HCA==mlx5_0,mlx5_2,mlx5_3", "PART UCCL_IB_HCA: left out: mlx5_1; bandwidth lost by the GPUs 0000:13:00.0, 0000:14:00.0: 50%"},
		{"modelexpress: right", "CUDA_DEVICE_ORDER=PCI_BUS_ID\nMX_RDMA_NIC_PIN=mlx5_0:1, mlx5_1:1,,mlx5_2:1,mlx5_3:1", "OK MX_RDMA_NIC_PIN"},
		{"modelexpress: chooses", "MX_RDMA_NIC_PIN=auto", ""},
		{"modelexpress: off", "MX_RDMA_NIC_PIN=off", ""},
		{"modelexpress: no list", "MX_RDMA_NIC_PIN=mlx5_0:1", `WRONG MX_RDMA_NIC_PIN: "mlx5_0:1": without a comma this is no list`},
		{"modelexpress: swapped", "CUDA_DEVICE_ORDER=PCI_BUS_ID\nMX_RDMA_NIC_PIN=mlx5_0:1,mlx5_2:1,mlx5_1:1,mlx5_3:1", "WRONG MX_RDMA_NIC_PIN: the GPU 0000:14:00.0 is given mlx5_2 at SYS"},
		{"modelexpress: half", "CUDA_DEVICE_ORDER=PCI_BUS_ID\nMX_RDMA_NIC_PIN=mlx5_0:1,mlx5_1:1", "WRONG MX_RDMA_NIC_PIN: the GPU 0000:83:00.0 has no usable entry"},
		{"modelexpress: too many", "CUDA_DEVICE_ORDER=PCI_BUS_ID\nMX_RDMA_NIC_PIN=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_3:1", `WRONG MX_RDMA_NIC_PIN: "mlx5_3:1": there is no GPU 4`},
		{"modelexpress: no port", "CUDA_DEVICE_ORDER=PCI_BUS_ID\nMX_RDMA_NIC_PIN=mlx5_0,mlx5_1:1,mlx5_2:1,mlx5_3:1", `UNKNOWN MX_RDMA_NIC_PIN: "mlx5_0": UCX before 1.22`},
		{"modelexpress: another order", "MX_RDMA_NIC_PIN=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1", "WRONG MX_RDMA_NIC_PIN: GPUs are counted, and CUDA_DEVICE_ORDER=PCI_BUS_ID is not set"},
		{"store: right", "MOONCAKE_DEVICE=mlx5_0, mlx5_1,mlx5_2,mlx5_3", "OK MOONCAKE_DEVICE"},
		{"store: chooses", "MOONCAKE_DEVICE=auto-discovery", "OK MOONCAKE_DEVICE"},
		{"store: a port", "MOONCAKE_DEVICE=mlx5_0:1,mlx5_1,mlx5_2,mlx5_3", `WRONG MOONCAKE_DEVICE: "MOONCAKE_DEVICE: mlx5_0:1": there is no RDMA device "mlx5_0:1"`},
		{"store: one for two", "MOONCAKE_DEVICE=mlx5_0,mlx5_2,mlx5_3", "PART MOONCAKE_DEVICE: left out: mlx5_1"},
		{"store: ignored", "MC_MS_AUTO_DISC=1\nMOONCAKE_DEVICE=mlx5_0,mlx5_1,mlx5_2,mlx5_3", "WRONG MOONCAKE_DEVICE: Mooncake's store ignores it, because MC_MS_AUTO_DISC=1 is set"},
		{"store: by rank", `MOONCAKE_DEVICE={"0":"mlx5_0,mlx5_1","1":"mlx5_0,mlx5_1","2":"mlx5_2,mlx5_3","3":"mlx5_2,mlx5_3"}`, "OK MOONCAKE_DEVICE"},
		{"store: by rank, swapped", `MOONCAKE_DEVICE={"0":"mlx5_0,mlx5_1","1":"mlx5_2,mlx5_3","2":"mlx5_2,mlx5_3","3":"mlx5_2,mlx5_3"}`, "WRONG MOONCAKE_DEVICE: the GPU 0000:14:00.0 is given mlx5_2 at SYS"},
		{"store: no JSON", `MOONCAKE_DEVICE={"0":1}`, "WRONG MOONCAKE_DEVICE: SGLang cannot read this JSON"},
		{"vllm: right in other words", vars + vllm + "13:00.0=00000000:15:00.0, 0x14:00.0=16:00.0,83:00.0=85:00.0,84:00.0=86:00.0", "OK VLLM_GPU_NIC_PCIE_MAPPING"},
		{"vllm: swapped", vars + vllm + "13:00.0=85:00.0,14:00.0=16:00.0,83:00.0=15:00.0,84:00.0=86:00.0", "WRONG VLLM_GPU_NIC_PCIE_MAPPING: the GPU 0000:13:00.0 is given mlx5_2 at SYS; mlx5_0 is nearer, at PIX"},
		{"vllm: shared", vars + vllm + pairs + "83:00.0=85:00.0,84:00.0=85:00.0", "WRONG VLLM_GPU_NIC_PCIE_MAPPING: 2 GPUs share mlx5_2, while mlx5_3"},
		{"vllm: half", vars + vllm + pairs + "83:00.0=85:00.0", "WRONG VLLM_GPU_NIC_PCIE_MAPPING: the GPU 0000:84:00.0 has no usable entry; mlx5_3 is at PIX"},
		{"vllm: stale GPU", vars + vllm + pairs + "93:00.0=85:00.0", `WRONG VLLM_GPU_NIC_PCIE_MAPPING: "93:00.0=85:00.0": there is no GPU at 0000:93:00.0`},
		{"vllm: stale NIC", vars + vllm + pairs + "83:00.0=95:00.0", `WRONG VLLM_GPU_NIC_PCIE_MAPPING: "83:00.0=95:00.0": there is no RDMA device at 0000:95:00.0`},
		{"vllm: down", vars + vllm + pairs + "83:00.0=87:00.0", `WRONG VLLM_GPU_NIC_PCIE_MAPPING: "83:00.0=87:00.0": no port of mlx5_4 is active here`},
		{"vllm: the name of a GPU", vars + vllm + pairs + "GPU2=85:00.0", `WRONG VLLM_GPU_NIC_PCIE_MAPPING: "GPU2=85:00.0": not of the form GPU=NIC`},
		{"vllm: more than an address", vars + vllm + pairs + "83:00.0=0000:85:00:00.0", `WRONG VLLM_GPU_NIC_PCIE_MAPPING: "83:00.0=0000:85:00:00.0": not of the form GPU=NIC`},
		{"vllm: names", vars + vllm + "0=mlx5_0", `WRONG VLLM_GPU_NIC_PCIE_MAPPING: "0=mlx5_0": not of the form GPU=NIC`},
		{"vllm: the name of a NIC", vars + vllm + pairs + "83:00.0=mlx5_2,84:00.0=86:00.0", `WRONG VLLM_GPU_NIC_PCIE_MAPPING: "83:00.0=mlx5_2": not of the form GPU=NIC`},
		{"vllm: one variable", vllm + pairs + "83:00.0=85:00.0,84:00.0=86:00.0", "WRONG VLLM_GPU_NIC_PCIE_MAPPING: vLLM stops: VLLM_NIC_SELECTION_VARS must be set too"},
		{"vllm: the other", vars, "WRONG VLLM_NIC_SELECTION_VARS: vLLM stops: VLLM_GPU_NIC_PCIE_MAPPING must be set too"},
		{"vllm: set already", vars + vllm + pairs + "83:00.0=85:00.0,84:00.0=86:00.0\nUCX_NET_DEVICES=all", `WRONG VLLM_NIC_SELECTION_VARS: "UCX_NET_DEVICES:1": UCX_NET_DEVICES is set already ("all")`},
		{"vllm: another port", "VLLM_NIC_SELECTION_VARS=UCX_NET_DEVICES:2\n" + vllm + pairs + "83:00.0=85:00.0,84:00.0=86:00.0", `WRONG VLLM_NIC_SELECTION_VARS: "UCX_NET_DEVICES:2": port 2 of mlx5_0 is not active`},
		{"vllm: no port", "VLLM_NIC_SELECTION_VARS=UCX_NET_DEVICES\n" + vllm + pairs + "83:00.0=85:00.0,84:00.0=86:00.0", `UNKNOWN VLLM_NIC_SELECTION_VARS: "UCX_NET_DEVICES": UCX before 1.22 reads no name without a port`},
		{"vllm: port 0", "VLLM_NIC_SELECTION_VARS=UCX_NET_DEVICES:0\n" + vllm + pairs + "83:00.0=85:00.0,84:00.0=86:00.0", `WRONG VLLM_NIC_SELECTION_VARS: "UCX_NET_DEVICES:0": no port has this number`},
		{"sglang: for all", `{"default":"mlx5_0"}`, `WRONG sglang: "default": not the number of a GPU, at which SGLang stops; the GPU 0000:13:00.0 has no usable entry`},
		{"sglang: others", `{"0":"mlx5_0","1":"mlx5_1","2":"mlx5_2","3":"mlx5_3","*":"mlx5_0"}`, `WRONG sglang: "*": not the number of a GPU`},
		{"sglang: minus 0", `{"-0":"mlx5_0","1":"mlx5_1","2":"mlx5_2","3":"mlx5_3"}`, `WRONG sglang: "-0": not the number of a GPU`},
		{"sglang: a number twice", `{"0":"mlx5_0","00":"mlx5_0","1":"mlx5_1","2":"mlx5_2","3":"mlx5_3"}`, `WRONG sglang: "00": another entry for the GPU 0`},
		{"sglang: empty", `{}`, "WRONG sglang: SGLang stops at an empty map"},
		{"sglang: half", `{"0":"mlx5_0","1":"mlx5_1","2":"mlx5_2"}`, "WRONG sglang: the GPU 0000:84:00.0 has no usable entry"},
		{"sglang: unknown", `{"0":"mlx5_0","1":"mlx5_1","2":"mlx5_2","3":"mlx5_7"}`, `WRONG sglang: "3: mlx5_7": there is no RDMA device "mlx5_7"`},
		{"sglang: a GPU too many", `{"0":"mlx5_0","1":"mlx5_1","2":"mlx5_2","3":"mlx5_3","4":"mlx5_3"}`, `WRONG sglang: "4": there is no GPU 4`},
		{"sglang: lists of names", `{"0":"mlx5_0,mlx5_1","1":"mlx5_1,mlx5_0","2":"mlx5_2","3":"mlx5_3"}`, "OK sglang"},
		{"sglang: one of two", `{"0":"mlx5_0,mlx5_1","1":"mlx5_1,mlx5_0","2":"mlx5_2","3":"mlx5_2"}`, "PART sglang: left out: mlx5_3; bandwidth lost by the GPUs 0000:83:00.0, 0000:84:00.0: 50%"},
		{"mooncake: one list", `{"cuda:0":[["mlx5_0"]]}`, `WRONG mooncake: "cuda:0": not two lists of names`},
		{"mooncake: swapped", `{"cuda:0":[["mlx5_2"],[]],"cuda:1":[["mlx5_1"],[]],"cuda:2":[["mlx5_0"],[]],"cuda:3":[["mlx5_3"],[]]}`, "WRONG mooncake: the GPU 0000:13:00.0 is given mlx5_2 at SYS"},
	}
	m := fourGPUs(t)
	words := map[tristate.State]string{tristate.True: "OK", tristate.False: "WRONG", tristate.Unknown: "UNKNOWN"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, f := range judged(t, m, []byte(tt.given)) {
				text := words[f.State] + " " + f.Name
				if f.Part {
					text = "PART " + f.Name
				}
				if len(f.Problems) > 0 {
					text += ": " + strings.Join(f.Problems, "; ")
				}
				got = append(got, text)
				if f.State == tristate.False && f.Want == "" && f.Name != "NCCL_NETDEVS_POLICY" && !strings.HasPrefix(f.Name, "NVSHMEM_") {
					t.Errorf("%s: what would be right is not said", f.Name)
				}
			}
			if tt.want == "" {
				if len(got) > 0 {
					t.Errorf("%q", got)
				}
				return
			}
			head, problem, _ := strings.Cut(tt.want, ": ")
			if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, head) && strings.Contains(s, problem) }) {
				t.Errorf("got %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestNamed(t *testing.T) {
	for _, name := range frameworks.Names() {
		if f := frameworks.Named(name); f == nil || f.Name != name {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if f := frameworks.Named("none"); f != nil {
		t.Errorf("there is no framework of this name: %+v", f)
	}
}
