package verdict

import (
	"slices"
	"strings"

	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// nics are the facts of a machine as one family of NICs sees them. What is asked of
// the NICs must hold within one family: a port of one is of no use to the DMA-BUF of
// another.
type nics struct {
	*Facts
	family *family.NIC
}

// eachFamily returns the families that are judged: those of which the machine has
// eligible functions, and all where that is not known.
func (f *Facts) eachFamily() []nics {
	table := f.Families
	if len(table.NICs) == 0 {
		table = family.Known()
	}
	var all []nics
	for _, n := range f.PCI.Families(table).NICs {
		all = append(all, nics{f, n})
	}
	return all
}

// furthest returns the family that meets most prerequisites in their order: a ready
// one, else one of which none is proven missing, else the one whose first missing one
// comes last. The node is judged by it.
func (f *Facts) furthest() nics {
	progress := func(n nics) int {
		steps := n.steps()
		if i := slices.IndexFunc(steps, func(s Step) bool { return s.Met == tristate.False }); i >= 0 {
			return i
		}
		if slices.ContainsFunc(steps, func(s Step) bool { return s.Met == tristate.Unknown }) {
			return len(steps)
		}
		return len(steps) + 1
	}
	all := f.eachFamily()
	best, most := all[0], progress(all[0])
	for _, n := range all[1:] {
		if p := progress(n); p > most {
			best, most = n, p
		}
	}
	return best
}

// steps are the prerequisites of one family in their order.
func (n nics) steps() []Step {
	memory := Step{GPUMemory, tristate.Or(n.peermem(), n.dmabuf()), NoPeerMemoryPath}
	if n.peermem() != tristate.True && n.Kmod.Symbols[kmod.PeerMemoryAPI].Found == tristate.True {
		memory.Reason = PeermemNotLoaded
	}
	return []Step{
		{"nic-driver", n.driven(), NICDriverNotLoaded},
		{"rdma-device", n.device(), NoRDMADevice},
		{"port", n.port(), NoActivePort},
		memory,
	}
}

// driven: some eligible function, physical or virtual, is bound to a driver of the
// family.
func (n nics) driven() tristate.State {
	answer := tristate.False
	for i := range n.PCI.Functions {
		if fn := &n.PCI.Functions[i]; fn.NIC == n.family && fn.Eligible {
			answer = tristate.Or(answer, n.bound(fn))
		}
	}
	return n.unlessUnidentified(answer)
}

func (n nics) bound(fn *pci.Function) tristate.State { return boundTo(fn, n.family.Drivers...) }

// anyDevice asks a question of the RDMA devices of eligible NICs. Devices that may be
// hidden might say yes.
func (n nics) anyDevice(ask func(*topology.NIC) tristate.State) tristate.State {
	answer := tristate.False
	for i := range n.Matrix.NICs {
		if nic := &n.Matrix.NICs[i]; nic.Eligible && nic.RDMA != nil && nic.Function.NIC == n.family {
			answer = tristate.Or(answer, ask(nic))
		}
	}
	if answer == tristate.False && !n.RDMA.Complete {
		return tristate.Unknown
	}
	return n.unlessUnidentified(answer)
}

// device: some eligible NIC has an RDMA device.
func (n nics) device() tristate.State {
	return n.anyDevice(func(*topology.NIC) tristate.State { return tristate.True })
}

// port: some port of those devices carries traffic.
func (n nics) port() tristate.State { return n.anyDevice(HasActivePort) }

// peermem: a peer memory client for GPU memory serves the family.
func (n nics) peermem() tristate.State { return n.Kmod.Peermem[n.family.Name].Registered }

// dmabuf: the GPU driver can export memory as DMA-BUF and the RDMA stack can
// register it, as far as can be read.
func (n nics) dmabuf() tristate.State {
	all := tristate.True
	for _, p := range n.dmabufNeeds() {
		all = tristate.And(all, p.Met)
	}
	return all
}

// dmabufNeeds lists what DMA-BUF needs, hardware before drivers.
func (n nics) dmabufNeeds() []Prerequisite {
	needs := []Prerequisite{
		{GPUDriverLoaded, n.Kmod.Driver.Loaded},
		{GPUBound, n.GPUDriven()},
		{TuringGPU, n.Turing()},
		{OpenModules, n.Kmod.Driver.Open},
		{MLX5Device, n.anyDevice(func(nic *topology.NIC) tristate.State { return n.bound(nic.Function) })},
	}
	if n.family.DMABuf == "" {
		needs[3], needs[4] = Prerequisite{MLX5Device, tristate.False}, needs[3]
	}
	if accept := n.devicesSay(); accept != tristate.Unknown {
		return append(needs, Prerequisite{DevicesAccept, accept})
	}
	return append(needs,
		Prerequisite{CoreSymbol, n.Kmod.Symbols[kmod.UmemDMABuf].Found},
		Prerequisite{DriverSymbol, n.Kmod.Symbols[n.family.DMABuf].Found})
}

// devicesSay: some device answered, when it was asked, that it registers DMA-BUF.
// False only when all were asked and all said no.
func (n nics) devicesSay() tristate.State {
	if len(n.Asked) == 0 || n.family.Uverbs.Driver == 0 {
		return tristate.Unknown
	}
	said := make(map[string]tristate.State, len(n.Asked))
	for _, a := range n.Asked {
		said[a.Device] = a.DMABuf
	}
	asked := false
	answer := n.anyDevice(func(nic *topology.NIC) tristate.State {
		bound := n.bound(nic.Function)
		asked = asked || bound == tristate.True
		return tristate.And(bound, said[nic.RDMA.Name])
	})
	if !asked {
		return tristate.Unknown
	}
	return answer
}

// NICFamily returns the family of NICs that comes furthest in the order of the
// prerequisites. The other answers about NICs are about this one.
func (f *Facts) NICFamily() *family.NIC { return f.furthest().family }

// NICDriven reports whether some eligible NIC function, physical or virtual, is bound
// to its driver.
func (f *Facts) NICDriven() tristate.State { return f.furthest().driven() }

// RDMADevice reports whether some eligible NIC has an RDMA device.
func (f *Facts) RDMADevice() tristate.State { return f.furthest().device() }

// ActivePort reports whether some port of those devices is ACTIVE with a link layer of
// its family.
func (f *Facts) ActivePort() tristate.State { return f.furthest().port() }

// Ways reports whether the NICs can reach GPU memory by a peer memory client, and by
// DMA-BUF.
func (f *Facts) Ways() (peermem, dmabuf tristate.State) {
	n := f.furthest()
	return n.peermem(), n.dmabuf()
}

// DMABufNeeds lists what DMA-BUF needs, in the order in which the first that is
// missing is to be named.
func (f *Facts) DMABufNeeds() []Prerequisite { return f.furthest().dmabufNeeds() }

// DevicesSay reports whether some RDMA device of an eligible NIC answered, when it was
// asked, that it registers DMA-BUF. False only when all were asked and all said no.
func (f *Facts) DevicesSay() tristate.State { return f.furthest().devicesSay() }

// HasActivePort reports whether a NIC has a port that carries traffic.
func HasActivePort(n *topology.NIC) tristate.State {
	if n.RDMA == nil {
		return tristate.False
	}
	answer := tristate.False
	if !n.RDMA.PortsRead {
		answer = tristate.Unknown
	}
	for _, p := range n.RDMA.Ports {
		answer = tristate.Or(answer, p.Carries())
	}
	return answer
}

// link names the link layer of the active ports of eligible NICs. A port that could
// not be read leaves it open, unless there are several layers already.
func (f *Facts) link() (layer string, open bool) {
	layers := map[string]bool{}
	open = !f.RDMA.Complete
	for _, n := range f.Matrix.NICs {
		if !n.Eligible || n.RDMA == nil {
			continue
		}
		open = open || !n.RDMA.PortsRead
		for _, p := range n.RDMA.Ports {
			switch p.Carries() {
			case tristate.True:
				layers[p.LinkLayer] = true
			case tristate.Unknown:
				open = true
			case tristate.False:
			}
		}
	}
	switch {
	case len(layers) > 1:
		return "mixed", false
	case open:
		return "", true
	}
	for layer := range layers {
		return strings.ToLower(layer), false
	}
	return "", !f.Matrix.Counted
}
