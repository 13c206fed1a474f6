package frameworks

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/rooms/assign"
	"gdr-features/tristate"
)

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
	fields := strings.Split(entry, ":")
	count = 1
	for i, field := range fields[1:] {
		n, err := strconv.Atoi(field)
		if i > 1 || err != nil || n < 1 || n > 1024 {
			return "", 0, 0
		}
		if i == 0 {
			port = n
		} else {
			count = n
		}
	}
	return fields[0], port, count
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

const deepEPName = "EP_NIC_NAME"

// writeDeepEP tells both versions of DeepEP's buffers: the legacy one sends by NVSHMEM, the
// elastic one by NCCL's GIN. The elastic one plans with the rate and the type of one NIC, which
// it asks ibstat for: EP_NIC_NAME, mlx5_0 by default (deepseek-ai/DeepEP dd758ca,
// deep_ep/buffers/legacy.py, deep_ep/buffers/elastic.py, deep_ep/utils/envs.py, get_rdma_gbs and
// check_fast_rdma_atomic_support).
func writeDeepEP(m *assign.Assignment) Settings {
	nvshmem, nccl := writeNVSHMEM(m), writeNCCL(m)
	s := Settings{Notes: nvshmem.Notes}
	if len(nvshmem.Variables) > 0 {
		s.Variables = slices.Concat(nvshmem.Variables, nccl.Variables)
		first, _, _ := strings.Cut(nvshmem.Variables[0].Value, ":")
		s.set(deepEPName, first)
	}
	return s
}

// judgeDeepEP looks at the NIC whose rate DeepEP plans with.
func judgeDeepEP(j *judge, f *Finding) {
	name := j.Variables[deepEPName]
	nic := j.device(f, name, name, 0)
	if nic == nil {
		return
	}
	near := j.Near()
	if len(near) > 0 && !slices.ContainsFunc(near, func(n *assign.NIC) bool { return n.RateGbps == nic.RateGbps }) {
		f.wrong("DeepEP plans with the rate of %s, %v Gbit/s; that of %s is %v Gbit/s", name, nic.RateGbps, near[0].RDMA, near[0].RateGbps)
	}
}
