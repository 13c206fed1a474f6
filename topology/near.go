package topology

import (
	"slices"

	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// Role says what a NIC is for, as far as that is known.
type Role string

// NorthSouth is for the traffic of host and storage by NVIDIA's presets (NVIDIA/k8s-launch-kit
// presets/*/topology.yaml): a ConnectX-6 Lx, or a BlueField beside more ConnectX cards. Such a NIC is
// near to a GPU only if the machine has no other NIC.
const NorthSouth Role = "north-south"

// Aside says why a NIC is not for GPUs: its role, "excluded" by the user, "" for all others.
func (n *NIC) Aside() string {
	if n.Excluded() {
		return "excluded"
	}
	return string(n.Role)
}

// Counted says which NICs count where the nearest to a GPU are looked for.
type Counted uint8

const (
	// Hardware counts every eligible function, whatever it is for, at its place in the PCI tree or
	// in the topology file; a virtual one only if its physical one is not listed. What the labels
	// say rests on these: no driver, link or name of an RDMA device changes which they are.
	Hardware Counted = iota
	// Usable counts what is for the traffic of GPUs: all eligible NICs without a role, or all
	// eligible ones where each has a role; a virtual function stands beside its physical one.
	// Everything but the labels is about these. They need no driver and no active port.
	Usable

	numCounted
)

// Nearest are the NICs that are nearest to a GPU, and how near they are.
type Nearest struct {
	// Level is Unknown where there is no such NIC, and where one of unknown level may be nearer.
	Level Level
	// NICs are all at Level, by their indexes in Matrix.NICs, and Functions their PCI functions,
	// each once, by address. Both are empty where Level is Unknown, but for NearAmong.
	NICs      []int
	Functions []*pci.Function
}

// Near returns the NICs nearest to the GPU among those that count.
func (g GPU) Near(counted Counted) Nearest { return g.near[counted] }

// ForGPUs reports whether a NIC, by its index, counts as Usable.
func (m *Matrix) ForGPUs(nic int) bool {
	noRole := func(n NIC) bool { return n.Counts() && n.Role == "" }
	return noRole(m.NICs[nic]) || m.NICs[nic].Counts() && !slices.ContainsFunc(m.NICs, noRole)
}

// NearAmong returns the nearest to a GPU of some NICs as far as levels are known: a NIC whose level
// is unknown counts as the farthest. Of these too, NICs with a role do not count beside others.
func (m *Matrix) NearAmong(gpu int, counts func(nic int) bool) Nearest {
	n, _ := m.nearest(gpu, counts)
	return n
}

// nearest is NearAmong; open: a NIC of unknown level may be nearer.
func (m *Matrix) nearest(gpu int, counts func(nic int) bool) (n Nearest, open bool) {
	pairs := m.PairsOf(gpu)
	noRole := func(p Pair) bool { return counts(p.NIC) && m.NICs[p.NIC].Role == "" }
	roles := !slices.ContainsFunc(pairs, noRole) // where nothing else is left, they do not matter
	levels := make([]bound, len(pairs))
	for nic, p := range pairs {
		levels[nic] = bound{p.Level, p.floor}
	}
	n.Level, n.NICs, open = nearest(levels, func(nic int) bool {
		return counts(nic) && (roles || m.NICs[nic].Role == "")
	})
	for _, nic := range n.NICs {
		f := m.NICs[nic].Function // several RDMA devices of one function stand together
		if f != nil && (len(n.Functions) == 0 || n.Functions[len(n.Functions)-1] != f) {
			n.Functions = append(n.Functions, f)
		}
	}
	return n, open
}

// usable fills in the nearest Usable NICs of every GPU, and the level that all of them have.
func (m *Matrix) usable() {
	worst, known := Unknown, m.Complete
	for i := range m.GPUs {
		near, open := m.nearest(i, m.ForGPUs)
		if open || near.Level == Unknown {
			near = Nearest{}
		}
		gpu := &m.GPUs[i]
		if gpu.near[Usable] = near; gpu.Counts() {
			worst, known = max(worst, near.Level), known && near.Level != Unknown
		}
	}
	if known {
		m.Usable.Level = worst
	}
}

// Within reports whether every eligible GPU has a Usable NIC at a level or a nearer one.
func (m *Matrix) Within(limit Level) tristate.State {
	tooFar := func(g GPU) bool { return g.Counts() && g.Near(Usable).Level > limit }
	switch {
	case m.Usable.Level != Unknown:
		return tristate.Of(m.Usable.Level <= limit)
	case m.Complete && slices.ContainsFunc(m.GPUs, tooFar):
		return tristate.False
	}
	return tristate.Unknown // what could not be identified may be a nearer NIC
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
	var ofDPUs []*NIC
	for i := range b.m.NICs {
		n := &b.m.NICs[i]
		if !n.Counts() {
			continue
		}
		switch f := b.PCI.Place(n.Function); {
		case f.NIC == nil:
		case f.NIC.ForHost.Has(f.Device):
			n.Role = NorthSouth
		case f.NIC.DPU.Has(f.Device):
			dpus[b.m.Card(i)] = true
			ofDPUs = append(ofDPUs, n)
		case f.NIC.DPU != nil:
			adapters[b.m.Card(i)] = true
		}
	}
	if len(dpus) < len(adapters) {
		for _, n := range ofDPUs {
			n.Role = NorthSouth
		}
	}
}
