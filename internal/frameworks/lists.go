package frameworks

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/assign"
)

const ucxDevices = "UCX_NET_DEVICES"

// writeUCX lists the near NICs. UCX takes names with ports, exactly (ucx
// src/uct/ib/base/ib_device.c, uct_ib_device_query_ports; src/ucp/core/ucp_context.c,
// ucp_is_resource_in_device_list). It has no map: a process takes what its list holds.
func writeUCX(m *assign.Assignment) Settings {
	var s Settings
	s.set(ucxDevices, withPorts(m.Near()))
	s.perProcess(m, ucxDevices)
	return s
}

func withPorts(nics []*assign.NIC) string {
	var list []string
	for _, n := range nics {
		list = append(list, fmt.Sprintf("%s:%d", n.RDMA, n.Port))
	}
	return strings.Join(list, ",")
}

const (
	nvshmemSwitch  = "NVSHMEM_ENABLE_NIC_PE_MAPPING"
	nvshmemMapping = "NVSHMEM_HCA_PE_MAPPING"
	nvshmemList    = "NVSHMEM_HCA_LIST"
)

// writeNVSHMEM lists the near NICs: each PE takes, of the list, those nearest to its GPU. The
// other way, NVSHMEM_HCA_PE_MAPPING, counts PEs, and DeepEP starts each rank as the PE 0 of a
// world of its own, so that all ranks of a node would take the first NIC
// (deepseek-ai/DeepEP#336; nvshmem src/modules/transport/common/transport_ib_common.cpp).
func writeNVSHMEM(m *assign.Assignment) Settings {
	if slices.ContainsFunc(m.Choices, func(c assign.Choice) bool { return !c.GPU.GPU.CUDA }) {
		return Settings{Notes: []string{"NVSHMEM is for NVIDIA GPUs alone."}}
	}
	var s Settings
	s.set(nvshmemList, withPorts(s.verbsOnly(m, "NVSHMEM's InfiniBand transport")))
	if len(s.Variables) > 0 {
		s.note(nvshmemSwitch + " must not be set: NVSHMEM would give these NICs to its PEs in turn.")
	}
	return s
}

// inVerbsOrder orders NICs as libibverbs lists them: as the kernel registered them
// (rdma-core libibverbs/ibdev_nl.c). Where that is not known: the kernel numbers names in the
// same order, unless they are changed; devices with names of other forms are registered by
// address as a rule.
func inVerbsOrder(a, b *assign.NIC) int {
	if a.Registered > 0 && b.Registered > 0 {
		return cmp.Compare(a.Registered, b.Registered)
	}
	base, i := numbered(a.RDMA)
	other, j := numbered(b.RDMA)
	if base == other && i >= 0 && j >= 0 {
		return cmp.Compare(i, j)
	}
	return cmp.Or(a.Address.Compare(b.Address), strings.Compare(a.RDMA, b.RDMA))
}

// numbered splits a name that ends in a number, "mlx5_" and 10 for mlx5_10. number is -1
// for a name without one.
func numbered(name string) (base string, number int) {
	base = strings.TrimRight(name, "0123456789")
	n, err := strconv.Atoi(name[len(base):])
	if err != nil {
		return name, -1
	}
	return base, n
}
