package frameworks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/assign"
)

// judgeNCCL reads the list as writeNCCL's source does: one "^" excludes, one "=" after it
// makes names exact, and both are for the whole list.
func judgeNCCL(j *judge) {
	f := j.about(ncclHCA)
	if f == nil {
		return
	}
	list, exclude := strings.CutPrefix(j.Variables[ncclHCA], "^")
	list, exact := strings.CutPrefix(list, "=")
	listed := map[*assign.NIC]bool{}
	for _, entry := range entries(list) {
		name, port := splitPort(entry)
		found := false
		for _, nic := range j.NICs {
			if nic.RDMA == name || !exact && strings.HasPrefix(nic.RDMA, name) {
				ok := port == 0 || slices.Contains(nic.Active, port)
				listed[nic], found = listed[nic] || ok, found || ok
			}
		}
		if !found && !exclude {
			j.device(f, entry, name, port)
		}
	}
	j.list(f, func(nic *assign.NIC) bool { return byVerbs(nic) && listed[nic] != exclude })
}

// splitPort splits "mlx5_0:1". port is 0 where the entry has none. What follows a second
// colon is not looked at.
func splitPort(entry string) (name string, port int) {
	name, rest, _ := strings.Cut(entry, ":")
	text, _, _ := strings.Cut(rest, ":")
	port, err := strconv.Atoi(text)
	if err != nil {
		port = 0
	}
	return name, port
}

// judgeUCX: names must have ports. UCX uses network devices too, for TCP.
func judgeUCX(j *judge) {
	f := j.about(ucxDevices)
	if f == nil {
		return
	}
	list, exclude := strings.CutPrefix(j.Variables[ucxDevices], "^")
	listed := map[*assign.NIC]bool{}
	for _, entry := range entries(list) {
		name, port := splitPort(entry)
		switch {
		case entry == "all":
			for _, nic := range j.NICs {
				listed[nic] = true
			}
		case exclude:
			if nic := j.Find(name); nic != nil && nic.Port == port {
				listed[nic] = true
			}
		case slices.Contains(j.Networks, entry):
		case port == 0 && j.Find(name) != nil:
			f.wrong("%q: UCX needs a port; write %s:%d", entry, name, j.Find(name).Port)
		default:
			if nic := j.device(f, entry, name, port); nic != nil {
				listed[nic] = true
			}
		}
	}
	j.list(f, func(nic *assign.NIC) bool { return listed[nic] != exclude })
}

// judgeNVSHMEM looks at the mapping, at the list, and at the switch that makes both count.
func judgeNVSHMEM(j *judge) {
	on := switchedOn(j.Variables[nvshmemSwitch])
	list := j.about(nvshmemList)
	if list != nil {
		allowed := j.nvshmemListed(list)
		if on {
			j.inTurn(list, slices.DeleteFunc(slices.Clone(j.NICs), func(n *assign.NIC) bool { return !allowed(n) }))
		} else {
			j.list(list, allowed)
		}
	}
	mapping := j.about(nvshmemMapping)
	if mapping != nil {
		switch {
		case list != nil:
			mapping.wrong("NVSHMEM ignores it, because %s is set", nvshmemList)
		case setByVLLM(j.Variables[vllmVariables], nvshmemList):
			mapping.wrong("NVSHMEM ignores it, because vLLM sets %s (%s)", nvshmemList, vllmVariables)
		case !on:
			mapping.wrong("NVSHMEM ignores it without %s=1", nvshmemSwitch)
		}
		j.inTurn(mapping, j.slots(mapping))
		j.numberedByAddress(mapping)
	}
	if f := j.about(nvshmemSwitch); f != nil && on && list == nil && mapping == nil {
		j.inTurn(f, slices.Clone(j.NICs))
		j.numberedByAddress(f)
	}
}

func switchedOn(value string) bool {
	return value != "" && strings.ContainsAny(value[:1], "1tTyY")
}

// nvshmemListed reads NVSHMEM_HCA_LIST: exact names, with ports or without, after "^" those
// not to use.
func (j *judge) nvshmemListed(f *Finding) func(*assign.NIC) bool {
	list, exclude := strings.CutPrefix(j.Variables[nvshmemList], "^")
	listed := map[*assign.NIC]bool{}
	for _, entry := range entries(list) {
		name, port := splitPort(entry)
		if exclude {
			listed[j.Find(name)] = true
		} else if nic := j.device(f, entry, name, port); nic != nil {
			listed[nic] = true
		}
	}
	return func(nic *assign.NIC) bool { return byVerbs(nic) && listed[nic] != exclude }
}

// slots returns the NICs of NVSHMEM_HCA_PE_MAPPING, each as often as its count says.
func (j *judge) slots(f *Finding) []*assign.NIC {
	var slots []*assign.NIC
	seen := map[string]bool{}
	for _, entry := range entries(j.Variables[nvshmemMapping]) {
		parts := strings.Split(entry, ":")
		port, count := 0, 0
		if len(parts) == 3 {
			port, _ = strconv.Atoi(parts[1])
			count, _ = strconv.Atoi(parts[2])
		}
		if port < 1 || count < 1 || count > 1024 {
			f.wrong("%q: not of the form NAME:PORT:COUNT", entry)
			continue
		}
		at := fmt.Sprintf("%s:%d", parts[0], port)
		if seen[at] {
			f.wrong("%q: %s is there twice, and NVSHMEM uses only the last entry; write one with the sum", entry, at)
		}
		seen[at] = true
		nic := j.device(f, entry, parts[0], port)
		for range count {
			if nic != nil {
				slots = append(slots, nic)
			}
		}
	}
	return slots
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
}
