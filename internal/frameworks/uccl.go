package frameworks

import (
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/assign"
)

const (
	ucclDevices = "UCCL_P2P_RDMA_DEV"
	ucclHCA     = "UCCL_IB_HCA"
	// ucclMost is how many NICs a process can use, and ucclPort the port of each
	// (uccl-project/uccl da914a2, p2p/util/common.h, kNICContextNumber and kPortNum).
	ucclMost, ucclPort = 4, 1
)

// writeUCCL lists the near NICs for UCCL's P2P engine. It takes names without ports, or places
// in the order of libibverbs, and uses all of the list for each GPU of the process; without a
// list it takes the NICs at the smallest distance in the PCI tree itself (uccl-project/uccl
// da914a2, p2p/rdma/rdma_device.cc, RdmaDeviceManager::get_best_dev_idx). More than four end the
// process (p2p/rdma/rdma_endpoint.cc, initialize_contexts). Its collectives and its EP read
// UCCL_IB_HCA, and NCCL_IB_HCA where that is not set, in NCCL's form (ep/src/rdma.cpp,
// rdma_hca_filter_from_env; include/util/net.h, parse_interfaces).
func writeUCCL(m *assign.Assignment) Settings {
	nics := m.Near()
	var s Settings
	s.note("UCCL's collectives and EP read %s (--for nccl), unless %s is set.", ncclHCA, ucclHCA)
	s.perProcess(m, ucclDevices)
	switch {
	case len(nics) == 0:
	case len(nics) > ucclMost:
		s.note("%s takes at most %d NICs, and %d are near these GPUs.", ucclDevices, ucclMost, len(nics))
	case slices.ContainsFunc(nics, func(n *assign.NIC) bool { return !slices.Contains(n.Active, ucclPort) }):
		s.note("UCCL uses the port %d of each NIC, and it is not active on all of them.", ucclPort)
	default:
		s.set(ucclDevices, strings.Join(namesOf(nics), ","))
	}
	return s
}

// judgeUCCLHCAs: the variable is not printed, but one in NCCL's form would be read.
func judgeUCCLHCAs(j *judge, f *Finding) {
	f.Want = "=" + withPorts(j.Near())
	judgeHCAs(j, f)
}

// judgeUCCL reads the list of names and places. UCCL leaves out those that it does not find, and
// chooses itself where it finds none.
func judgeUCCL(j *judge, f *Finding) {
	var listed []*assign.NIC
	for _, entry := range trimmed(j.Variables[ucclDevices]) {
		if _, err := strconv.ParseUint(entry, 10, 32); err == nil && j.at(entry) < 0 {
			f.unknown("%q: a place in the order of libibverbs; write the name", entry)
		} else {
			listed = with(listed, j.device(f, entry, entry, ucclPort))
		}
	}
	if len(listed) > ucclMost {
		f.wrong("UCCL takes at most %d NICs, and stops at %d", ucclMost, len(listed))
	}
	if len(f.Problems) == 0 || len(listed) > 0 {
		j.listOfProcess(f, listed)
	}
}
