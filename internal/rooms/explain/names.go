// Package explain says why a node is as it is: the path from a GPU to a NIC, the rule of its
// level, what waits for what in the driver stack. It is pure: a node in, words out.
package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/topology"
	"gdr-features/verdict"
)

// GPUName is what topo calls a GPU.
func GPUName(index int) string { return "GPU" + strconv.Itoa(index) }

// NICName is what topo calls a NIC: its RDMA device, or its address.
func NICName(n *topology.NIC) string { return cmp.Or(n.Name(), n.Address()) }

// FindGPU finds a GPU by name ("GPU0"), index or address. The error lists what there is.
func FindGPU(r *verdict.Node, name string) (int, error) {
	var names []string
	for i := range r.Matrix.GPUs {
		address := r.Matrix.GPUs[i].Address.String()
		if strings.EqualFold(name, GPUName(i)) || name == strconv.Itoa(i) || isAddress(name, address) {
			return i, nil
		}
		names = append(names, fmt.Sprintf("%s (%s)", GPUName(i), address))
	}
	return 0, unknown(r, "GPU", name, names)
}

// FindNIC returns the index of a NIC by RDMA device, network device or PCI
// address, with or without the domain 0000. The name of an RDMA device may be in
// another case, where that is the name of one alone. The error lists what there is.
func FindNIC(r *verdict.Node, name string) (int, error) {
	matches := [...]func(topology.NIC) bool{
		func(n topology.NIC) bool { return n.Name() == name },
		func(n topology.NIC) bool { return n.RDMA != nil && slices.Contains(n.RDMA.NetDevs, name) },
		func(n topology.NIC) bool { return isAddress(name, n.Address()) },
	}
	for _, match := range matches {
		if i := slices.IndexFunc(r.Matrix.NICs, match); i >= 0 && name != "" {
			return i, nil
		}
	}
	if i := inAnyCase(r.Matrix.NICs, name); i >= 0 && name != "" {
		return i, nil
	}
	var names []string
	for _, n := range r.Matrix.NICs {
		text := NICName(&n)
		if n.Name() != "" && n.Address() != "" {
			text += " (" + n.Address() + ")"
		}
		names = append(names, text)
	}
	return 0, unknown(r, "NIC", name, names)
}

// inAnyCase finds a NIC by the name of its RDMA device in any case, or gives -1 if
// there are devices whose names differ in nothing else.
func inAnyCase(all []topology.NIC, name string) int {
	found := -1
	for i := range all {
		switch {
		case !strings.EqualFold(all[i].Name(), name):
		case found < 0:
			found = i
		case all[i].Name() != all[found].Name():
			return -1
		}
	}
	return found
}

func isAddress(name, address string) bool {
	return strings.EqualFold(name, address) || strings.EqualFold("0000:"+name, address)
}

// unknown is the error for a name that no device has, in one line.
func unknown(r *verdict.Node, kind, name string, known []string) error {
	const most = 24
	switch {
	case !r.PCIRead:
		return fmt.Errorf("no %s %q: the PCI bus cannot be read", kind, name)
	case len(known) == 0:
		return fmt.Errorf("no %s %q: this machine has none", kind, name)
	}
	more := ""
	if len(known) > most {
		more = fmt.Sprintf(" and %d more", len(known)-most)
		known = known[:most]
	}
	return fmt.Errorf("no %s %q; there are %s%s", kind, name, strings.Join(known, ", "), more)
}
