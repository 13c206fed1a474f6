package topology

import (
	"slices"

	"gdr-features/source/pci"
)

// Role says what a NIC is for, as far as that is known.
type Role string

// Roles of NICs that are not for GPUs: near to one only if the machine has no other NIC.
const (
	// NorthSouth: for the traffic of host and storage by NVIDIA's presets (NVIDIA/k8s-launch-kit
	// presets/*/topology.yaml): a ConnectX-6 Lx, or a BlueField beside more ConnectX cards.
	NorthSouth Role = "north-south"
)

// Aside says why a NIC is not for GPUs: its role, "excluded" by the user, "" for all others.
func (n *NIC) Aside() string {
	if n.Excluded() {
		return "excluded"
	}
	return string(n.Role)
}

// NearOf returns the nearest to a GPU of the NICs that count, by index; those of unknown level
// where all are. NICs with a role do not count beside others.
func (m *Matrix) NearOf(gpu int, counts func(nic int) bool) []int {
	var near, withRole []int
	pairs := m.PairsOf(gpu)
	for nic := range pairs {
		list := &near
		if m.NICs[nic].Role != "" {
			list = &withRole
		}
		switch rank := pairs[nic].Level.Rank(); {
		case !counts(nic):
		case len(*list) == 0 || rank < pairs[(*list)[0]].Level.Rank():
			*list = []int{nic}
		case rank == pairs[(*list)[0]].Level.Rank():
			*list = append(*list, nic)
		}
	}
	if len(near) == 0 {
		return withRole
	}
	return near
}

// Near lists the NICs near a GPU, by their indexes in NICs: all eligible ones at its nearest
// level, without those that have a role if there are others. A virtual function is as near as
// its physical one, and listed beside it. Empty where the GPU's level is Unknown.
func (m *Matrix) Near(gpu int) []int {
	if m.GPUs[gpu].Level == Unknown {
		return nil
	}
	return m.NearOf(gpu, func(nic int) bool { return m.NICs[nic].Eligible })
}

// NearFunctions lists the PCI functions of the NICs near a GPU, each once, by address.
func (m *Matrix) NearFunctions(gpu int) []*pci.Function {
	var near []*pci.Function
	for _, nic := range m.Near(gpu) {
		if f := m.NICs[nic].Function; f != nil && !slices.Contains(near, f) {
			near = append(near, f)
		}
	}
	return near
}

// Card is the address of a NIC's PCI device: its ports are functions of it, and its virtual
// functions belong to it (PCI Local Bus Specification 3.0, 6.2.1).
func (m *Matrix) Card(nic int) pci.Address {
	n := &m.NICs[nic]
	a, _ := n.address()
	if n.Function != nil && n.Function.PhysFn != nil {
		a = *n.Function.PhysFn
	}
	a.Function = 0
	return a
}

// roles gives the NICs their roles. A virtual function has that of its physical one.
func (b *builder) roles() {
	dpus, adapters := map[pci.Address]bool{}, map[pci.Address]bool{}
	physical := make([]*pci.Function, len(b.m.NICs))
	for i := range b.m.NICs {
		n := &b.m.NICs[i]
		if !n.Eligible {
			continue
		}
		f := b.PCI.Place(n.Function)
		physical[i] = f
		switch {
		case f.NIC == nil || f.NIC.ForHost.Has(f.Device):
		case f.NIC.DPU.Has(f.Device):
			dpus[b.m.Card(i)] = true
		case f.NIC.DPU != nil:
			adapters[b.m.Card(i)] = true
		}
	}
	for i, f := range physical {
		if f != nil && f.NIC != nil && (f.NIC.ForHost.Has(f.Device) || f.NIC.DPU.Has(f.Device) && len(dpus) < len(adapters)) {
			b.m.NICs[i].Role = NorthSouth
		}
	}
}
