package frameworks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/assign"
)

const (
	vllmMapping   = "VLLM_GPU_NIC_PCIE_MAPPING"
	vllmVariables = "VLLM_NIC_SELECTION_VARS"
)

// writeVLLM pairs addresses. vLLM looks for the RDMA device whose PCI function has the
// NIC's address, and puts its name and what follows the first colon into the variables
// named; both variables must be set (vllm/v1/executor/vllm_net_devices.py). NCCL needs none:
// it finds the nearest NIC of each GPU itself.
func writeVLLM(m *assign.Map) Settings {
	var s Settings
	var pairs []string
	for _, c := range m.Choices {
		switch {
		case c.NIC == nil:
			s.Notes = append(s.Notes, fmt.Sprintf("vLLM will not start on the GPU %v, because it has no entry.", c.GPU.Address))
		case vllmFinds(m.Machine, c.NIC) != c.NIC:
			s.Notes = append(s.Notes, fmt.Sprintf("vLLM knows NICs by the address of their function and cannot be told to use %s at %v.", c.NIC.RDMA, c.NIC.Address))
			return Settings{Notes: s.Notes}
		default:
			pairs = append(pairs, fmt.Sprintf("%v=%v", c.GPU.Address, c.NIC.Address))
		}
	}
	if len(pairs) == 0 {
		return s
	}
	port := commonPort(m.Used())
	if port == 0 {
		s.Notes = append(s.Notes, vllmVariables+" takes one port number for all NICs, and none is active on all of them.")
		return s
	}
	s.Variables = []Variable{
		{vllmMapping, strings.Join(pairs, ",")},
		{vllmVariables, fmt.Sprintf("%s:%d,%s:%d", ucxDevices, port, nvshmemList, port)},
	}
	return s
}

// vllmFinds is the usable NIC that vLLM takes for the address of another: the first by name
// among those that are PCI devices themselves. Devices that cannot be used are not looked at.
func vllmFinds(m *assign.Machine, nic *assign.NIC) *assign.NIC {
	var found *assign.NIC
	for _, n := range m.NICs {
		if n.Address == nic.Address && !n.Auxiliary && (found == nil || n.RDMA < found.RDMA) {
			found = n
		}
	}
	return found
}

// commonPort is a port that is active on all NICs, the one chosen where it is the same for
// all; 0 for none.
func commonPort(nics []*assign.NIC) int {
	for _, port := range slices.Concat([]int{nics[0].Port}, nics[0].Active) {
		if !slices.ContainsFunc(nics, func(n *assign.NIC) bool { return !slices.Contains(n.Active, port) }) {
			return port
		}
	}
	return 0
}

// sglangFile is {"0": "mlx5_0", "1": "mlx5_1,mlx5_2"}: by the number of the GPU.
type sglangFile map[string]string

// writeSGLang makes the file for --disaggregation-ib-device, which must end in .json (sglang
// python/sglang/srt/distributed/device_communicators/mooncake_transfer_engine.py,
// get_ib_devices_for_gpu). Versions that split the flag at commas first take no JSON in it.
func writeSGLang(m *assign.Map) Settings {
	file := sglangFile{}
	for i, c := range m.Choices {
		if c.NIC != nil {
			file[strconv.Itoa(i)] = c.NIC.RDMA
		}
	}
	return Settings{
		Variables: []Variable{{deviceOrder, byAddress}}, File: file,
		Notes: []string{"SGLang reads the map from a file (-o file) whose name ends in .json: --disaggregation-ib-device FILE.json."},
	}
}

// mooncakeFile has the preferred NICs of each GPU and of each NUMA node, and after them the
// others: {"cuda:0": [["mlx5_0"], ["mlx5_1"]], "cpu:0": [["mlx5_0"], ["mlx5_1"]]}.
type mooncakeFile map[string][][]string

const mooncakeVariable = "MC_CUSTOM_TOPO_JSON"

// writeMooncake makes the file that MC_CUSTOM_TOPO_JSON names. Each value must be an array
// of two arrays; Mooncake takes the NICs of the second when those of the first fail (Mooncake
// mooncake-transfer-engine/src/topology.cpp, Topology::parse and selectDevice).
func writeMooncake(m *assign.Map) Settings {
	file := mooncakeFile{}
	for i, c := range m.Choices {
		if c.NIC != nil {
			file["cuda:"+strconv.Itoa(i)] = split(m.NICs, func(n *assign.NIC) bool { return n == c.NIC })
		}
	}
	if len(m.NICs) > 0 {
		for node := range m.NUMANodes {
			file["cpu:"+strconv.Itoa(node)] = split(m.NICs, func(n *assign.NIC) bool { return n.NUMA == node || m.NUMANodes == 1 })
		}
	}
	return Settings{
		Variables: []Variable{{deviceOrder, byAddress}}, File: file,
		Notes: []string{"Mooncake reads the map from a file (-o file): " + mooncakeVariable + "=FILE."},
	}
}

// split lists the names of preferred NICs and of the others.
func split(nics []*assign.NIC, preferred func(*assign.NIC) bool) [][]string {
	lists := [][]string{{}, {}}
	for _, n := range nics {
		at := 1
		if preferred(n) {
			at = 0
		}
		lists[at] = append(lists[at], n.RDMA)
	}
	return lists
}
