package frameworks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/assign"
	"gdr-features/internal/mechanism"
	"gdr-features/source/pci"
)

const (
	vllmMapping   = "VLLM_GPU_NIC_PCIE_MAPPING"
	vllmVariables = "VLLM_NIC_SELECTION_VARS"
)

// writeVLLM pairs addresses. vLLM looks for the RDMA device whose PCI function has the
// NIC's address, and puts its name and what follows the first colon into the variables
// named; both variables must be set (vllm/v1/executor/vllm_net_devices.py). NCCL needs none:
// it finds the nearest NIC of each GPU itself.
func writeVLLM(m *assign.Assignment) Settings {
	var s Settings
	var pairs []string
	for _, c := range m.Choices {
		switch {
		case c.NIC == nil:
			s.note("vLLM will not start on the GPU %v, because it has no entry.", c.GPU.Address)
		case vllmFinds(m.Machine, c.NIC.Address) != c.NIC:
			s.note("vLLM knows NICs by the address of their function and cannot be told to use %s at %v.", c.NIC.RDMA, c.NIC.Address)
			return s
		default:
			pairs = append(pairs, fmt.Sprintf("%v=%v", c.GPU.Address, c.NIC.Address))
		}
	}
	if len(pairs) == 0 {
		return s
	}
	port := commonPort(m.Used())
	if port == 0 {
		s.note(vllmVariables + " takes one port number for all NICs, and none is active on all of them.")
		return s
	}
	s.set(vllmMapping, strings.Join(pairs, ","))
	s.set(vllmVariables, fmt.Sprintf("%s:%d,%s:%d", ucxDevices, port, nvshmemList, port))
	return s
}

// vllmFinds is the usable NIC that vLLM takes for an address: the first by name among those
// that are PCI devices themselves. Devices that cannot be used are not looked at.
func vllmFinds(m *assign.Machine, address pci.Address) *assign.NIC {
	var found *assign.NIC
	for _, n := range m.NICs {
		if n.Address == address && !n.Auxiliary && (found == nil || n.RDMA < found.RDMA) {
			found = n
		}
	}
	return found
}

// commonPort is a port that is active on all NICs, the one chosen where it is the same for
// all; 0 for none.
func commonPort(nics []*assign.NIC) int {
	if len(nics) == 0 {
		return 0
	}
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
// get_ib_devices_for_gpu). Versions between the pull requests 17598 and 26114 take the path
// for the name of a device.
func writeSGLang(m *assign.Assignment) Settings {
	file := sglangFile{}
	s := Settings{Variables: ordered(m), File: file, Notes: []string{
		"SGLang reads the map from a file (-o file) whose name ends in .json: --disaggregation-ib-device FILE.json.",
		"SGLang of January to May 2026 (from pull request 17598 until 26114) refuses such a file.",
	}}
	for i, c := range m.Choices {
		if c.NIC != nil {
			file[strconv.Itoa(i)] = strings.Join(namesOf(c.Near), ",")
		} else {
			s.note("SGLang stops on the GPU %v: a GPU without an entry is an error to it.", c.GPU.Address)
		}
	}
	s.useEngine(m)
	return s
}

const mooncakePort = "MC_IB_PORT"

// useEngine tells Mooncake's engine, which SGLang uses too, which port of its NICs to use: one
// for all, 1 by default (Mooncake mooncake-transfer-engine/src/config.cpp, loadGlobalConfig). It
// tells it to register GPU memory by DMA-BUF where that is the only way: it uses peermem unless
// it is told otherwise (internal/mechanism has the sources).
func (s *Settings) useEngine(m *assign.Assignment) {
	nics := m.Near()
	switch port := commonPort(nics); {
	case len(nics) == 0, port == 1:
	case port == 0:
		s.note(mooncakePort + " has one port for all NICs, and here no port is active on all of them.")
	default:
		s.set(mooncakePort, strconv.Itoa(port))
	}
	if v := &m.Node.Verdict; (mechanism.Ways{Peermem: v.Peermem, DMABuf: v.DMABuf}).OnlyDMABuf() {
		s.set("WITH_NVIDIA_PEERMEM", "0")
		s.note("DMA-BUF is the only way to GPU memory here, which Mooncake 0.3.11 and newer uses with WITH_NVIDIA_PEERMEM=0.")
	}
}

// namesOf are the names of RDMA devices.
func namesOf(nics []*assign.NIC) []string {
	names := []string{}
	for _, n := range nics {
		names = append(names, n.RDMA)
	}
	return names
}

// mooncakeFile has the preferred NICs of each GPU and of each NUMA node, and after them the
// others: {"cuda:0": [["mlx5_0"], ["mlx5_1"]], "cpu:0": [["mlx5_0"], ["mlx5_1"]]}. AMD's GPUs
// are "hip:0" and so on.
type mooncakeFile map[string][][]string

const mooncakeVariable = "MC_CUSTOM_TOPO_JSON"

// writeMooncake makes the file that MC_CUSTOM_TOPO_JSON names. Each value must be an array
// of two arrays; Mooncake takes the NICs of the second when those of the first fail (Mooncake
// mooncake-transfer-engine/src/topology.cpp, Topology::parse and selectDevice).
func writeMooncake(m *assign.Assignment) Settings {
	file := mooncakeFile{}
	names := mooncakeNames(m)
	for i, c := range m.Choices {
		if c.NIC != nil && names[i] != "" {
			file[names[i]] = split(m.NICs, func(n *assign.NIC) bool { return slices.Contains(c.Near, n) })
		}
	}
	if len(m.NICs) > 0 {
		nodes := max(m.Node.PCI.NUMANodes, 1)
		for node := range nodes {
			file["cpu:"+strconv.Itoa(node)] = split(m.NICs, func(n *assign.NIC) bool { return n.NUMA == node || nodes == 1 })
		}
	}
	s := Settings{
		Variables: ordered(m), File: file,
		Notes: []string{"Mooncake reads the map from a file (-o file): " + mooncakeVariable + "=FILE."},
	}
	s.useEngine(m)
	return s
}

// mooncakeNames are the names of the GPUs, "cuda:0", numbered for each family from 0; "" for
// those that Mooncake has none for.
func mooncakeNames(m *assign.Assignment) []string {
	names := make([]string, len(m.Choices))
	count := map[string]int{}
	for i, c := range m.Choices {
		if prefix := c.GPU.GPU.Mooncake; prefix != "" {
			names[i] = prefix + strconv.Itoa(count[prefix])
			count[prefix]++
		}
	}
	return names
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
