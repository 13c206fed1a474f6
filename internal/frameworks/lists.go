package frameworks

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/assign"
)

const ncclHCA = "NCCL_IB_HCA"

// writeNCCL lists the NICs in use; NCCL takes the nearest of them for each GPU. A leading
// "=" makes all names exact: "mlx5_1" would mean mlx5_10 too (nccl
// src/transport/net_ib/init.cc, ncclIbInitDevices; src/misc/utils.cc, parseStringList).
func writeNCCL(m *assign.Assignment) Settings {
	nics, notes := verbsOnly(m, "NCCL's own transport")
	s := Settings{Notes: notes}
	if len(nics) > 0 {
		s.Variables = []Variable{{ncclHCA, "=" + withPorts(nics)}}
	}
	return s
}

const ucxDevices = "UCX_NET_DEVICES"

// writeUCX lists the NICs in use. UCX takes names with ports, exactly (ucx
// src/uct/ib/base/ib_device.c, uct_ib_device_query_ports; src/ucp/core/ucp_context.c,
// ucp_is_resource_in_device_list). It has no map: a process takes what its list holds.
func writeUCX(m *assign.Assignment) Settings {
	nics := m.Used()
	var s Settings
	if len(nics) > 0 {
		s.Variables = []Variable{{ucxDevices, withPorts(nics)}}
	}
	if len(m.Choices) > 1 {
		s.Notes = []string{ucxDevices + " applies to a whole process: if each process has one GPU, run this for each with --gpus."}
	}
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

// writeNVSHMEM says how many PEs of the node use each NIC. NVSHMEM goes through the devices
// in the order of libibverbs, repeats each as often as its count says, and gives the PE n
// the n-th; the order of the list means nothing, and of two entries for one port the last
// counts (nvshmem src/modules/transport/common/transport_ib_common.cpp, and
// src/host/transport/transport.cpp, nvshmemi_setup_connections). A map in another order
// cannot be written.
func writeNVSHMEM(m *assign.Assignment) Settings {
	if slices.ContainsFunc(m.Choices, func(c assign.Choice) bool { return !c.GPU.GPU.CUDA }) {
		return Settings{Notes: []string{"NVSHMEM is for NVIDIA GPUs alone."}}
	}
	nics, notes := verbsOnly(m, "NVSHMEM's InfiniBand transport")
	s := Settings{Notes: notes}
	if len(m.Choices) == 0 || len(nics) < len(m.Used()) {
		return s
	}
	var want []*assign.NIC
	for _, c := range m.Choices {
		if c.NIC == nil {
			s.Notes = append(s.Notes, nvshmemMapping+" cannot leave a GPU out, and one has no usable NIC.")
			return s
		}
		want = append(want, c.NIC)
	}
	if !slices.IsSortedFunc(want, inVerbsOrder) {
		s.Notes = append(s.Notes, "NVSHMEM assigns NICs to its PEs in the order of libibverbs, so "+nvshmemMapping+
			" cannot express this map. Without "+nvshmemSwitch+" each PE takes the NIC nearest to its GPU.")
		return s
	}
	var list []string
	for _, n := range slices.Compact(want) {
		list = append(list, fmt.Sprintf("%s:%d:%d", n.RDMA, n.Port, m.Users(n)))
	}
	s.Variables = append(ordered(m), Variable{nvshmemSwitch, "1"}, Variable{nvshmemMapping, strings.Join(list, ",")})
	s.Notes = append(s.Notes, "The PE n of the node must use its GPU n, and "+nvshmemList+" must not be set.")
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
