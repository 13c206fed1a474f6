package frameworks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/assign"
	"gdr-features/source/pci"
)

const (
	ncclHCA    = "NCCL_IB_HCA"
	ncclPolicy = "NCCL_NETDEVS_POLICY"
	ncclMerge  = "NCCL_IB_MERGE_NICS"
	ncclCross  = "NCCL_CROSS_NIC"
)

// writeNCCL lists the near NICs; NCCL takes the nearest of them for each GPU. A leading "="
// makes all names exact: "mlx5_1" would mean mlx5_10 too (nccl src/transport/net_ib/init.cc,
// ncclIbInitDevices; src/misc/utils.cc, parseStringList).
func writeNCCL(m *assign.Assignment) Settings {
	nics, notes := verbsOnly(m, "NCCL's own transport")
	s := Settings{Notes: append(notes, unevenRails(m)...)}
	if len(nics) > 0 {
		s.Variables = []Variable{{ncclHCA, "=" + withPorts(nics)}}
	}
	return s
}

// unevenRails says that GPUs have different numbers of near NICs: where NCCL crosses nodes on
// rails, those with fewer hold the others back.
func unevenRails(m *assign.Assignment) []string {
	fewest, most := -1, -1
	for i, c := range m.Choices {
		if len(c.Near) > 0 && (fewest < 0 || len(c.Near) < len(m.Choices[fewest].Near)) {
			fewest = i
		}
		if most < 0 || len(c.Near) > len(m.Choices[most].Near) {
			most = i
		}
	}
	if fewest < 0 || len(m.Choices[fewest].Near) == len(m.Choices[most].Near) {
		return nil
	}
	few, many := m.Choices[fewest], m.Choices[most]
	return []string{fmt.Sprintf("The rails are uneven: NICs near the GPU %v: %d, near the GPU %v: %d.",
		few.GPU.Address, len(few.Near), many.GPU.Address, len(many.Near))}
}

// NCCLNotes says which variables of the environment keep NCCL from using all NICs of a list, as
// far as --check does not judge them.
func NCCLNotes(m *assign.Assignment, variables map[string]string) []string {
	var notes []string
	if n, most := ncclDevices(variables), 0; variables[ncclPolicy] != "" {
		for _, c := range m.Choices {
			most = max(most, n(m, c))
		}
		if limit, ok := ncclMost(variables[ncclPolicy]); ok && limit < most {
			notes = append(notes, fmt.Sprintf("%s=%s is set: NCCL uses only %d of the %d devices near a GPU.", ncclPolicy, variables[ncclPolicy], limit, most))
		}
	}
	if isZero(variables[ncclMerge]) && slices.ContainsFunc(m.Choices, func(c assign.Choice) bool { return cards(m, c) < len(c.Near) }) {
		notes = append(notes, ncclMerge+"=0 is set: NCCL does not join the ports of a card, and each channel uses one of them.")
	}
	if isZero(variables[ncclCross]) && len(unevenRails(m)) > 0 {
		notes = append(notes, ncclCross+"=0 is set: NCCL stays on one rail from node to node, and rails are uneven here.")
	}
	return notes
}

func isZero(value string) bool {
	n, ok := cNumber(value)
	return value != "" && ok && n == 0
}

// cards is the number of cards that the NICs near a GPU are on.
func cards(m *assign.Assignment, c assign.Choice) int {
	seen := map[pci.Address]bool{}
	for _, nic := range c.Near {
		seen[m.CardOf(nic)] = true
	}
	return len(seen)
}

// ncclDevices returns how NCCL counts the NICs near a GPU: ports of a card are one device
// unless it is told not to merge them (src/transport/net_ib/init.cc, ncclIbMergeNics).
func ncclDevices(variables map[string]string) func(*assign.Assignment, assign.Choice) int {
	if isZero(variables[ncclMerge]) {
		return func(_ *assign.Assignment, c assign.Choice) int { return len(c.Near) }
	}
	return cards
}

// ncclMost reads the policy MAX:N: the most devices for a GPU. ok is false for other
// policies, and what NCCL ignores (src/graph/topo.cc, ncclTopoGetNetDevsPolicy).
func ncclMost(policy string) (most int, ok bool) {
	text, found := strings.CutPrefix(strings.ToUpper(policy), "MAX:")
	most, err := strconv.Atoi(text)
	return most, found && err == nil && most > 0
}

// judgeNCCL reads the list as writeNCCL's source does: one "^" excludes, one "=" after it
// makes names exact, and both are for the whole list.
func judgeNCCL(j *judge) {
	if f := j.about(ncclPolicy); f != nil {
		for _, note := range NCCLNotes(j.Assignment, map[string]string{ncclPolicy: j.Variables[ncclPolicy], ncclMerge: j.Variables[ncclMerge]}) {
			f.leave("%s", note)
		}
	}
	if f := j.about(ncclHCA); f != nil {
		j.hcaList(f, j.Variables[ncclHCA])
	}
}

// hcaList judges a list in NCCL's form.
func (j *judge) hcaList(f *Finding, text string) {
	list, exclude := strings.CutPrefix(text, "^")
	list, exact := strings.CutPrefix(list, "=")
	listed := map[*assign.NIC]bool{}
	for _, entry := range entries(list) {
		name, port := splitPort(entry)
		if !ncclForm(entry) {
			f.wrong("%q: not of the form NAME:PORT:RAIL:PLANE with numbers", entry)
			continue
		}
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
