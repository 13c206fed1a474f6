package verdict

import (
	"slices"

	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// pair is one family of GPUs and one of NICs, with the facts of the machine. All
// prerequisites must be met within one pair: an active port of one family of NICs does not
// help the DMA-BUF of another.
type pair struct {
	*Facts
	gpu *family.GPU
	nic *family.NIC
}

// pairs returns the pairs of families that are judged: those with eligible functions on the
// machine, or all if that is unknown.
func (f *Facts) pairs() []pair {
	table := f.PCI.Families(f.Families.OrKnown())
	all := make([]pair, 0, len(table.GPUs)*len(table.NICs))
	for _, g := range table.GPUs {
		for _, n := range table.NICs {
			all = append(all, pair{f, g, n})
		}
	}
	return all
}

// furthest returns the pair by which the node is judged: one that is ready; else one with
// no prerequisite proven missing; else the one whose first missing prerequisite comes
// last. Of several it is the one whose GPUs and NICs are nearest.
func (f *Facts) furthest() pair { return furthestOf(f.pairs()) }

func furthestOf(all []pair) pair {
	progress := func(p pair) int {
		steps := p.steps()
		if i := slices.IndexFunc(steps, func(s Step) bool { return s.Met == tristate.False }); i >= 0 {
			return i
		}
		if slices.ContainsFunc(steps, func(s Step) bool { return s.Met == tristate.Unknown }) {
			return len(steps)
		}
		return len(steps) + 1
	}
	best, most := all[0], progress(all[0])
	for _, p := range all[1:] {
		if n := progress(p); n > most || n == most && p.nearest() < best.nearest() {
			best, most = p, n
		}
	}
	return best
}

// nearest is the smallest level of an eligible GPU of the one family and an eligible NIC of
// the other; beyond all levels where none is known.
func (p pair) nearest() topology.Level {
	nearest := topology.SYS + 1
	p.each(func(of *topology.Pair) {
		if of.Level != topology.Unknown {
			nearest = min(nearest, of.Level)
		}
	})
	return nearest
}

// each goes through the pairs of an eligible GPU of the one family with an eligible NIC of
// the other.
func (p pair) each(see func(*topology.Pair)) {
	for i, gpu := range p.Matrix.GPUs {
		if !gpu.Eligible || gpu.GPU != p.gpu {
			continue
		}
		of := p.Matrix.PairsOf(i)
		for j := range of {
			if nic := &p.Matrix.NICs[of[j].NIC]; nic.Eligible && nic.Function.NIC == p.nic {
				see(&of[j])
			}
		}
	}
}

// steps are the prerequisites of one pair in their order.
func (p pair) steps() []Step {
	memory := Step{GPUMemory, tristate.Or(p.peermem(), p.dmabuf()), NoPeerMemoryPath}
	if p.peermem() != tristate.True && p.Kmod.Symbols[kmod.PeerMemoryAPI].Found == tristate.True {
		memory.Reason = PeermemNotLoaded
	}
	return []Step{
		{"hardware", p.reachable(), PlatformForbidsP2P},
		{"gpu-driver", tristate.Not(p.passthrough()), GPUPassthrough},
		{"gpu-driver", p.gpuDriven(), GPUDriverNotLoaded},
		{"nic-driver", p.driven(), NICDriverNotLoaded},
		{"rdma-device", p.device(), NoRDMADevice},
		{"port", p.port(), NoActivePort},
		memory,
	}
}

// reachable: the driver of some eligible GPU of the one family maps its memory for some
// eligible NIC of the other, as far as their places go. Unknown where there are none.
func (p pair) reachable() tristate.State {
	answer, found := tristate.False, false
	p.each(func(of *topology.Pair) { answer, found = tristate.Or(answer, of.Allowed), true })
	if !found {
		return tristate.Unknown
	}
	return p.unlessUnidentified(answer)
}

// anyGPU asks a question of the eligible GPUs of the family.
func (p pair) anyGPU(ask func(*pci.Function) tristate.State) tristate.State {
	return p.Facts.anyGPU(func(gpu *pci.Function) tristate.State {
		return tristate.And(tristate.Of(gpu.GPU == p.gpu), ask(gpu))
	})
}

// passthrough: every eligible GPU of the family is bound to a driver that hands it to a
// virtual machine.
func (p pair) passthrough() tristate.State {
	if !slices.ContainsFunc(p.Matrix.GPUs, func(gpu topology.GPU) bool { return gpu.Eligible && gpu.GPU == p.gpu }) {
		return p.unlessUnidentified(tristate.False)
	}
	return tristate.Not(p.anyGPU(func(gpu *pci.Function) tristate.State {
		if !gpu.DriverKnown {
			return tristate.Unknown
		}
		return tristate.Of(!gpu.PassedThrough())
	}))
}

// gpuDriven: some eligible GPU is bound to the driver of the family.
func (p pair) gpuDriven() tristate.State {
	return p.anyGPU(func(gpu *pci.Function) tristate.State { return boundTo(gpu, p.gpu.Driver) })
}

// turing: some eligible GPU that the driver drives is one that the open kernel modules
// drive: of the Turing generation or newer.
func (p pair) turing() tristate.State {
	return p.anyGPU(func(gpu *pci.Function) tristate.State {
		return tristate.And(boundTo(gpu, p.gpu.Driver), tristate.Of(gpu.OpenModules()))
	})
}

// driven: some eligible function, physical or virtual, is bound to a driver of the
// family.
func (p pair) driven() tristate.State {
	answer := tristate.False
	for i := range p.PCI.Functions {
		if fn := &p.PCI.Functions[i]; fn.NIC == p.nic && fn.Eligible {
			answer = tristate.Or(answer, p.bound(fn))
		}
	}
	return p.unlessUnidentified(answer)
}

func (p pair) bound(fn *pci.Function) tristate.State { return boundTo(fn, p.nic.Drivers...) }

// anyDevice asks a question of the RDMA devices of eligible NICs. False becomes unknown if
// there may be hidden devices.
func (p pair) anyDevice(ask func(*topology.NIC) tristate.State) tristate.State {
	answer := tristate.False
	for i := range p.Matrix.NICs {
		if nic := &p.Matrix.NICs[i]; nic.Eligible && nic.RDMA != nil && nic.Function.NIC == p.nic {
			answer = tristate.Or(answer, ask(nic))
		}
	}
	if answer == tristate.False && !p.RDMA.Complete {
		return tristate.Unknown
	}
	return p.unlessUnidentified(answer)
}

// device: some eligible NIC has an RDMA device.
func (p pair) device() tristate.State {
	return p.anyDevice(func(*topology.NIC) tristate.State { return tristate.True })
}

// port: some port of those devices carries traffic.
func (p pair) port() tristate.State { return p.anyDevice(HasActivePort) }

// peermem: a peer memory client gives the GPUs' memory to the NICs.
func (p pair) peermem() tristate.State {
	return p.Kmod.Peermem[kmod.Pair{GPU: p.gpu.Name, NIC: p.nic.Name}].Registered
}

// dmabuf: the GPU driver can export memory as DMA-BUF and the RDMA stack can
// register it, as far as can be read.
func (p pair) dmabuf() tristate.State {
	all := tristate.True
	for _, need := range p.dmabufNeeds() {
		all = tristate.And(all, need.Met)
	}
	return all
}

// dmabufNeeds lists what DMA-BUF needs, hardware before drivers.
func (p pair) dmabufNeeds() []Prerequisite {
	driver := p.Kmod.Drivers[p.gpu.Name]
	needs := []Prerequisite{{GPUDriverLoaded, driver.Loaded}, {GPUBound, p.gpuDriven()}}
	device := Prerequisite{NICDevice, p.anyDevice(func(nic *topology.NIC) tristate.State { return p.bound(nic.Function) })}
	if p.nic.DMABuf == "" {
		device.Met = tristate.False
	}
	if p.gpu.OpenFrom != 0 {
		needs = append(needs, Prerequisite{TuringGPU, p.turing()})
		open := Prerequisite{OpenModules, driver.Open}
		if p.nic.DMABuf == "" {
			needs = append(needs, device, open)
		} else {
			needs = append(needs, open, device)
		}
	} else {
		needs = append(needs, device)
	}
	for _, option := range p.gpu.KernelOptions {
		needs = append(needs, Prerequisite{KernelOption, p.Kmod.KernelOptions[option.Name]})
	}
	if accept := p.devicesSay(); accept != tristate.Unknown {
		return append(needs, Prerequisite{DevicesAccept, accept})
	}
	return append(needs,
		Prerequisite{CoreSymbol, p.Kmod.Symbols[kmod.UmemDMABuf].Found},
		Prerequisite{DriverSymbol, p.Kmod.Symbols[p.nic.DMABuf].Found})
}

// devicesSay: some device answered, when it was asked, that it registers DMA-BUF.
// False only when all were asked and all said no.
func (p pair) devicesSay() tristate.State {
	if len(p.Asked) == 0 || p.nic.Uverbs.Driver == 0 {
		return tristate.Unknown
	}
	said := make(map[string]tristate.State, len(p.Asked))
	for _, a := range p.Asked {
		said[a.Device] = a.DMABuf
	}
	asked := false
	answer := p.anyDevice(func(nic *topology.NIC) tristate.State {
		bound := p.bound(nic.Function)
		asked = asked || bound == tristate.True
		return tristate.And(bound, said[nic.RDMA.Name])
	})
	if !asked {
		return tristate.Unknown
	}
	return answer
}

// Other says whether another family of GPUs is ready, which the node is not judged by.
type Other struct {
	GPU    *family.GPU
	NIC    *family.NIC // of the pair that comes furthest
	Ready  tristate.State
	Reason Reason // "" when ready
}

// Others returns the families with eligible GPUs that the node is not judged by.
func (f *Facts) Others() []Other {
	judged := f.furthest()
	byGPU := map[*family.GPU][]pair{}
	for _, p := range f.pairs() {
		byGPU[p.gpu] = append(byGPU[p.gpu], p)
	}
	var all []Other
	for _, gpu := range f.Matrix.GPUs {
		pairs := byGPU[gpu.GPU]
		if !gpu.Eligible || gpu.GPU == judged.gpu || len(pairs) == 0 {
			continue
		}
		delete(byGPU, gpu.GPU) // once
		p := furthestOf(pairs)
		state, reason := ready(f.PCIRead, p.steps())
		all = append(all, Other{p.gpu, p.nic, state, reason})
	}
	return all
}

// AllPassthrough reports whether every eligible GPU of the family is bound to a driver
// that hands it to a virtual machine.
func (f *Facts) AllPassthrough() tristate.State { return f.furthest().passthrough() }

// GPUDriven reports whether some eligible GPU is bound to the driver of its family.
func (f *Facts) GPUDriven() tristate.State { return f.furthest().gpuDriven() }

// Turing reports whether some eligible GPU that the driver drives is one that the open
// kernel modules drive: of the Turing generation or newer.
func (f *Facts) Turing() tristate.State { return f.furthest().turing() }

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
	p := f.furthest()
	return p.peermem(), p.dmabuf()
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
