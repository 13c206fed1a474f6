package frameworks

import (
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/assign"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// splitPort splits "mlx5_0:1". port is 0 where the entry has none, and -1 where it is not the
// number of any port, "0" or "x". What follows a second colon is not looked at.
func splitPort(entry string) (name string, port int) {
	name, rest, _ := strings.Cut(entry, ":")
	text, _, _ := strings.Cut(rest, ":")
	if text == "" {
		return name, 0
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 {
		port = -1
	}
	return name, port
}

// judgeUCX: names need ports before UCX 1.22, which reads ranges too. UCX uses network
// devices as well, for TCP. "all" stands alone, and after "^" means the same (ucx
// src/ucp/core/ucp_context.c, ucp_is_resource_in_device_list; src/ucs/config/parser.c,
// ucs_config_array_expand_range, ucs_config_sscanf_allow_list_impl).
func judgeUCX(j *judge, f *Finding) {
	list, exclude := strings.CutPrefix(j.Variables[ucxDevices], "^")
	if list == "all" {
		j.list(f, func(*assign.NIC) bool { return true })
		return
	}
	if !exclude && j.onlyNetworks(list) {
		f.wrong("these are network devices, so that UCX uses TCP; %s", ucxAside)
		f.Harmless = true
		return
	}
	var listed []*assign.NIC
	for _, entry := range entries(list) {
		names, ranged := expanded(entry)
		if ranged {
			f.unknown("%q: UCX before 1.22 reads no ranges", entry)
		}
		for _, name := range names {
			listed = with(listed, j.ucxNIC(f, name, exclude))
		}
	}
	before := len(f.Problems)
	j.list(f, func(nic *assign.NIC) bool { return slices.Contains(listed, nic) != exclude })
	if before == 0 && !exclude && f.State == tristate.False {
		f.Harmless = j.ofOneProcess(listed)
	}
}

// listOfProcess judges the list of a process, of which each GPU uses the NICs near it.
func (j *judge) listOfProcess(f *Finding, listed []*assign.NIC) {
	before := len(f.Problems)
	j.list(f, func(nic *assign.NIC) bool { return slices.Contains(listed, nic) })
	if before == 0 {
		f.Harmless = j.ofOneProcess(listed)
	}
}

// ofOneProcess reports whether a list is right for some but not all of the GPUs in question:
// it is one NIC, nearest to one of them, or all that are near it. The variable is for one
// process, and a container may start one for each GPU.
func (j *judge) ofOneProcess(listed []*assign.NIC) bool {
	return len(j.Choices) > 1 && slices.ContainsFunc(j.Choices, func(c assign.Choice) bool {
		if len(listed) == 1 {
			return c.NIC != nil && c.Level != topology.Unknown && j.Level(c, listed[0]) == c.Level
		}
		outside := func(nic *assign.NIC) bool { return !slices.Contains(listed, nic) }
		return len(listed) > 1 && len(listed) == len(c.Near) && !slices.ContainsFunc(c.Near, outside)
	})
}

// onlyNetworks reports whether all entries of a list are names of network devices.
func (j *judge) onlyNetworks(list string) bool {
	names := entries(list)
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(j.Networks, name) })
}

// ucxNIC returns the NIC that an entry without ranges names; nil for none.
func (j *judge) ucxNIC(f *Finding, entry string, exclude bool) *assign.NIC {
	name, text, hasPort := strings.Cut(entry, ":")
	port, err := strconv.Atoi(text)
	nic := j.Find(name)
	switch {
	case !hasPort && nic != nil:
		f.unknown("%q: UCX before 1.22 reads no name without a port; write %s:%d", entry, name, nic.Port)
		return nic
	case exclude && nic != nil && nic.Port == port:
		return nic
	case exclude, slices.Contains(j.Networks, entry):
	case entry == "all":
		f.wrong("%q: it must stand alone", entry)
	case hasPort && (err != nil || port < 1):
		f.wrong("%q: not of the form NAME:PORT", entry)
	case !hasPort && j.Networks == nil && j.at(name) < 0:
		f.unknown("%q: there is no RDMA device of this name, and which network devices there are is not known", entry)
	default:
		return j.device(f, entry, name, port)
	}
	return nil
}

// expanded are the names that an entry stands for: those of a range, "mlx5_[3-6]", or itself.
func expanded(entry string) (names []string, ranged bool) {
	before, rest, _ := strings.Cut(entry, "[")
	numbers, after, closed := strings.Cut(rest, "]")
	left, right, _ := strings.Cut(numbers, "-")
	first, err := strconv.ParseUint(left, 10, 16)
	last, err2 := strconv.ParseUint(right, 10, 16)
	const most = 64 // that UCX reads
	if !closed || err != nil || err2 != nil || last < first || last-first >= most || strings.ContainsAny(before+after, "[]") {
		return []string{entry}, false
	}
	for n := first; n <= last; n++ {
		names = append(names, before+strconv.FormatUint(n, 10)+after)
	}
	return names, true
}

// judgeNVSHMEM reads exact names, with ports or without, after "^" those not to use. With the
// switch they are no list to choose from.
func judgeNVSHMEM(j *judge, f *Finding) {
	list, exclude := strings.CutPrefix(j.Variables[nvshmemList], "^")
	var listed []*assign.NIC
	for _, entry := range entries(list) {
		name, port := splitPort(entry)
		if exclude {
			listed = with(listed, j.Find(name))
		} else {
			listed = with(listed, j.device(f, entry, name, port))
		}
	}
	allowed := func(nic *assign.NIC) bool { return byVerbs(nic) && slices.Contains(listed, nic) != exclude }
	if switchedOn(j.Variables[nvshmemSwitch]) {
		j.inTurn(f, slices.DeleteFunc(slices.Clone(j.NICs), func(n *assign.NIC) bool { return !allowed(n) }))
	} else {
		j.list(f, allowed)
	}
}

// judgeMapping looks at the NICs of the PEs, and whether the mapping counts.
func judgeMapping(j *judge, f *Finding) {
	switch {
	case j.Variables[nvshmemList] != "":
		f.wrong("NVSHMEM ignores it, because %s is set", nvshmemList)
	case setByVLLM(j.Variables[vllmVariables], nvshmemList):
		f.wrong("NVSHMEM ignores it, because vLLM sets %s (%s)", nvshmemList, vllmVariables)
	case !switchedOn(j.Variables[nvshmemSwitch]):
		f.wrong("NVSHMEM ignores it without %s=1", nvshmemSwitch)
	}
	j.inTurn(f, j.slots(f))
	j.numberedByAddress(f)
}

// judgeSwitch: alone, the switch gives all NICs to PEs in turn.
func judgeSwitch(j *judge, f *Finding) {
	if switchedOn(j.Variables[nvshmemSwitch]) && j.Variables[nvshmemList]+j.Variables[nvshmemMapping] == "" {
		j.inTurn(f, slices.Clone(j.NICs))
		j.numberedByAddress(f)
	}
}

// switchedOn reads a truth value as NVSHMEM does
// (src/include/bootstrap_host_transport/env_defs_internal.h, nvshmemi_getenv_bool).
func switchedOn(value string) bool {
	return value != "" && !strings.ContainsAny(value[:1], "0NnFf")
}

// slots returns the NICs of NVSHMEM_HCA_PE_MAPPING, each as often as its count says; an
// entry without a port is for each active one (nvshmem
// src/modules/transport/common/transport_common.cpp, nvshmemt_parse_hca_list).
func (j *judge) slots(f *Finding) []*assign.NIC {
	var slots []*assign.NIC
	seen := map[*assign.NIC][]int{} // ports
	for _, entry := range entries(j.Variables[nvshmemMapping]) {
		name, port, count := parseHCA(entry)
		if name == "" {
			f.wrong("%q: not of the form NAME, NAME:PORT or NAME:PORT:COUNT", entry)
			continue
		}
		nic := j.device(f, entry, name, port)
		if nic == nil {
			continue
		}
		ports := nic.Active
		if port != 0 {
			ports = []int{port}
		}
		if slices.ContainsFunc(ports, func(p int) bool { return slices.Contains(seen[nic], p) }) {
			f.wrong("%q: of two entries for a port the last counts; write one with the sum", entry)
			continue
		}
		seen[nic] = append(seen[nic], ports...)
		slots = append(slots, slices.Repeat([]*assign.NIC{nic}, len(ports)*count)...)
	}
	return slots
}

// parseHCA reads an entry of NVSHMEM_HCA_PE_MAPPING: port is 0 for all ports, and name "" where
// the entry is not of the form.
func parseHCA(entry string) (name string, port, count int) {
	fields, numbers := strings.Split(entry, ":"), [...]int{0, 1}
	for i, field := range fields[1:] {
		n, err := strconv.Atoi(field)
		if i >= len(numbers) || err != nil || n < 1 || n > 1024 {
			return "", 0, 0
		}
		numbers[i] = n
	}
	return fields[0], numbers[0], numbers[1]
}

// inTurn judges NICs that NVSHMEM gives to PEs, and so to GPUs, in turn: in the order of
// libibverbs, and again from the first where there are more GPUs.
func (j *judge) inTurn(f *Finding, slots []*assign.NIC) {
	slices.SortStableFunc(slots, inVerbsOrder)
	given := make([][]*assign.NIC, len(j.Choices))
	for i := range given {
		if len(slots) > 0 {
			given[i] = slots[i%len(slots) : i%len(slots)+1]
		}
	}
	if f.Name == nvshmemMapping && len(slots) > 0 && len(slots) < len(given) {
		f.wrong("%d entries for %d GPUs", len(slots), len(given))
	}
	j.pairs(f, given)
	if f.State == tristate.True && len(given) > 1 {
		f.unknown("DeepEP starts each rank as the PE 0 of a world of its own, so that all of them take the first NIC; set %s alone", nvshmemList)
	}
}
