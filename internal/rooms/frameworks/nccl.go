package frameworks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/rooms/assign"
	"gdr-features/source/pci"
)

const (
	ncclHCA    = "NCCL_IB_HCA"
	ncclPolicy = "NCCL_NETDEVS_POLICY"
)

// writeNCCL lists the near NICs; NCCL takes the nearest of them for each GPU. A leading "="
// makes all names exact: "mlx5_1" would mean mlx5_10 too (nccl src/transport/net_ib/init.cc,
// ncclIbInitDevices; src/misc/utils.cc, parseStringList).
func writeNCCL(m *assign.Assignment) Settings {
	var s Settings
	if nics := s.verbsOnly(m, "NCCL's own transport"); len(nics) > 0 {
		s.set(ncclHCA, "="+withPorts(nics))
	}
	if aside := vfsAside(m); len(aside) > 0 {
		s.set(MergeVFs, "0")
		s.note("%s=0 goes with the topology file: by default NCCL looks for %s at device 0, function 0 of the bus, and not where the file has it.",
			MergeVFs, strings.Join(namesOf(aside), ", "))
	}
	s.Notes = append(s.Notes, unevenRails(m)...)
	return s
}

// vfsAside are the NICs near a GPU that NCCL finds in the topology file with MergeVFs=0 alone.
func vfsAside(m *assign.Assignment) (aside []*assign.NIC) {
	for _, c := range m.Choices {
		for _, nic := range c.Near {
			if m.VFAside(m.Pair(c, nic)) {
				aside = with(aside, nic)
			}
		}
	}
	return aside
}

// judgeMergeVFs: whether NCCL looks for virtual functions themselves decides about GPUDirect RDMA,
// and not about which NIC a GPU uses.
func judgeMergeVFs(j *judge, f *Finding) {
	aside := vfsAside(j.Assignment)
	switch {
	case Zero(j.Variables[MergeVFs]):
		f.Aside, f.Problems = true, []string{"NCCL looks for each virtual function itself"}
	case len(aside) > 0:
		f.wrong("NCCL looks for %s at device 0, function 0 of the bus, where the topology file has none, and does not use GPUDirect RDMA",
			strings.Join(namesOf(aside), ", "))
		f.Harmless = true
	default:
		f.Aside = true
	}
}

// unevenRails says that GPUs have different numbers of near NICs: where NCCL crosses nodes on
// rails, those with fewer hold the others back.
func unevenRails(m *assign.Assignment) []string {
	some := slices.DeleteFunc(slices.Clone(m.Choices), func(c assign.Choice) bool { return len(c.Near) == 0 })
	if len(some) == 0 {
		return nil
	}
	byNear := func(a, b assign.Choice) int { return len(a.Near) - len(b.Near) }
	few, many := slices.MinFunc(some, byNear), slices.MaxFunc(some, byNear)
	if len(few.Near) == len(many.Near) {
		return nil
	}
	return []string{fmt.Sprintf("The rails are uneven: NICs near the GPU %v: %d, near the GPU %v: %d.",
		few.GPU.Address, len(few.Near), many.GPU.Address, len(many.Near))}
}

// NCCLNotes says which variables of the environment keep NCCL from using all NICs of a list, as
// far as --check does not judge them.
func NCCLNotes(m *assign.Assignment, variables map[string]string) []string {
	var notes []string
	if limit, ok := ncclMost(variables[ncclPolicy]); ok {
		most := 0
		for _, c := range m.Choices {
			if Zero(variables[MergeNICs]) {
				most = max(most, len(c.Near))
			} else {
				most = max(most, cards(m, c))
			}
		}
		if limit < most {
			notes = append(notes, fmt.Sprintf("%s=%s is set: NCCL uses only %d of the %d devices near a GPU.", ncclPolicy, variables[ncclPolicy], limit, most))
		}
	}
	if Zero(variables[MergeNICs]) && slices.ContainsFunc(m.Choices, func(c assign.Choice) bool { return cards(m, c) < len(c.Near) }) {
		notes = append(notes, MergeNICs+"=0 is set: NCCL does not join the ports of a card, and each channel uses one of them.")
	}
	if Zero(variables[CrossNIC]) && len(unevenRails(m)) > 0 {
		notes = append(notes, CrossNIC+"=0 is set: NCCL stays on one rail from node to node, and rails are uneven here.")
	}
	return notes
}

// Zero reports whether a variable is set to a number that is 0.
func Zero(value string) bool {
	n, ok := cNumber(value)
	return value != "" && ok && n == 0
}

// cards is the number of cards that the NICs near a GPU are on: as many devices to NCCL, which
// merges the ports of a card unless it is told not to (src/transport/net_ib/init.cc,
// ncclIbMergeNics).
func cards(m *assign.Assignment, c assign.Choice) int {
	seen := map[pci.Address]bool{}
	for _, nic := range c.Near {
		seen[m.CardOf(nic)] = true
	}
	return len(seen)
}

// ncclMost reads the policy MAX:N: the most devices for a GPU. ok is false for other
// policies, and what NCCL ignores (src/graph/topo.cc, ncclTopoGetNetDevsPolicy).
func ncclMost(policy string) (most int, ok bool) {
	text, found := strings.CutPrefix(strings.ToUpper(policy), "MAX:")
	most, err := strconv.Atoi(text)
	return most, found && err == nil && most > 0
}

func judgePolicy(j *judge, f *Finding) {
	for _, note := range NCCLNotes(j.Assignment, map[string]string{ncclPolicy: j.Variables[ncclPolicy], MergeNICs: j.Variables[MergeNICs]}) {
		f.leave("%s", note)
	}
}

// judgeHCAs reads a list as writeNCCL's source does: one "^" excludes, one "=" after it makes
// names exact, and both are for the whole list.
func judgeHCAs(j *judge, f *Finding) {
	list, exclude := strings.CutPrefix(j.Variables[f.Name], "^")
	list, exact := strings.CutPrefix(list, "=")
	var listed []*assign.NIC
	for _, entry := range entries(list) {
		name, port := splitPort(entry)
		if !ncclForm(entry) {
			f.wrong("%q: not of the form NAME:PORT:RAIL:PLANE with numbers", entry)
			continue
		}
		found := false
		var more []string // that only begin with the name of another
		for _, nic := range j.NICs {
			named := nic.RDMA == name || !exact && strings.HasPrefix(nic.RDMA, name)
			if named && (port == 0 || slices.Contains(nic.Active, port)) {
				listed, found = with(listed, nic), true
				if nic.RDMA != name && j.at(name) >= 0 {
					more = append(more, nic.RDMA)
				}
			}
		}
		if len(more) > 0 {
			f.Notes = append(f.Notes, fmt.Sprintf("%s takes %q as the beginning of a name, and so %s too; with = before the list it does not",
				f.Name, name, strings.Join(more, ", ")))
		}
		if !found && !exclude {
			j.device(f, entry, name, port)
		}
	}
	j.list(f, func(nic *assign.NIC) bool { return byVerbs(nic) && slices.Contains(listed, nic) != exclude })
}

// ncclForm: after the port a rail and a plane can follow, numbers that only say which NICs
// belong together (src/misc/utils.cc, parseStringList).
func ncclForm(entry string) bool {
	parts := strings.Split(entry, ":")
	for _, part := range parts[min(2, len(parts)):] {
		if n, err := strconv.Atoi(part); part != "" && (err != nil || n < 0) {
			return false
		}
	}
	return len(parts) <= 4
}

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
