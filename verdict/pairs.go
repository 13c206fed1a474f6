package verdict

import (
	"slices"

	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// Pair is one family of GPUs and one of NICs, within which all prerequisites must be met: a port
// of one family of NICs does not help the DMA-BUF of another.
type Pair struct {
	*Node
	GPU *family.GPU
	NIC *family.NIC
}

// pairs returns those with eligible functions on the machine, or all if that is unknown.
func (f *Node) pairs() []Pair {
	table := f.PCI.Families(f.Families.OrDefault())
	all := make([]Pair, 0, len(table.GPUs)*len(table.NICs))
	for _, g := range table.GPUs {
		for _, n := range table.NICs {
			all = append(all, Pair{f, g, n})
		}
	}
	return all
}

// furthest returns the pair whose first missing prerequisite comes last, or that misses none; of
// several the one with more ways to GPU memory, and of those the first.
func furthest(all []Pair) Pair {
	best, most := all[0], progress(all[0].steps())
	for _, p := range all[1:] {
		if n := progress(p.steps()); n > most || n == most && p.ways() > best.ways() {
			best, most = p, n
		}
	}
	return best
}

// progress is the index of the first step that is proven missing, the number of steps where none
// is and some are unknown, and one more where all are met.
func progress(steps []Step) int {
	if i := slices.IndexFunc(steps, func(s Step) bool { return s.Met == tristate.False }); i >= 0 {
		return i
	}
	if slices.ContainsFunc(steps, func(s Step) bool { return s.Met == tristate.Unknown }) {
		return len(steps)
	}
	return len(steps) + 1
}

// ways counts the ways to GPU memory that are there.
func (p Pair) ways() (n int) {
	for _, way := range [...]tristate.State{p.peermem(), p.dmabuf()} {
		if way == tristate.True {
			n++
		}
	}
	return n
}

// each goes through the pairs of an eligible GPU and NIC of the two families.
func (p Pair) each(see func(*topology.Pair)) {
	for i := range p.Matrix.Pairs {
		of := &p.Matrix.Pairs[i]
		gpu, nic := &p.Matrix.GPUs[of.GPU], &p.Matrix.NICs[of.NIC]
		if gpu.Eligible && gpu.GPU == p.GPU && nic.Eligible && nic.Function.NIC == p.NIC {
			see(of)
		}
	}
}

// steps are the prerequisites of one pair in their order. What a GPU and a NIC lack together
// (Apart) is missing at the step that asks for it.
func (p Pair) steps() []Step {
	memory := Step{GPUMemory, tristate.And(tristate.Or(p.peermem(), p.dmabuf()), p.proven()), NoPeerMemoryPath}
	if p.Registered() != tristate.True && p.Kmod.Symbols[kmod.PeerMemoryAPI].Found == tristate.True {
		memory.Reason = PeermemNotLoaded
	}
	steps := []Step{
		{"hardware", p.reachable(), PlatformForbidsP2P},
		{"gpu-driver", tristate.Not(p.AllPassthrough()), GPUPassthrough},
		{"gpu-driver", p.GPUDriven(), GPUDriverNotLoaded},
		{"nic-driver", p.NICDriven(), NICDriverNotLoaded},
		{"rdma-device", p.RDMADevice(), NoRDMADevice},
		{"port", p.ActivePort(), NoActivePort},
		memory,
	}
	lack, _ := p.Apart()
	for i := range steps {
		if steps[i].Reason == lack.Reason {
			steps[i].Met = tristate.And(steps[i].Met, lack.Met)
		}
	}
	return steps
}

// reachable: the driver of some eligible GPU of the one family maps its memory for some
// eligible NIC of the other, as far as their places go. Unknown where there are none.
func (p Pair) reachable() tristate.State {
	answer, found := tristate.False, false
	p.each(func(of *topology.Pair) { answer, found = tristate.Or(answer, of.Allowed), true })
	if !found {
		return tristate.Unknown
	}
	return p.unlessUnidentified(answer)
}

// anyGPU asks a question of the eligible GPUs of the family.
func (p Pair) anyGPU(ask func(*pci.Function) tristate.State) tristate.State {
	answer := tristate.False
	for _, gpu := range p.Matrix.GPUs {
		if gpu.Eligible && gpu.GPU == p.GPU {
			answer = tristate.Or(answer, ask(gpu.Function))
		}
	}
	return p.unlessUnidentified(answer)
}

// AllPassthrough reports whether virtual machines get every eligible GPU of the family.
func (p Pair) AllPassthrough() tristate.State {
	if !slices.ContainsFunc(p.Matrix.GPUs, func(gpu topology.GPU) bool { return gpu.Eligible && gpu.GPU == p.GPU }) {
		return p.unlessUnidentified(tristate.False)
	}
	return tristate.Not(p.anyGPU(func(gpu *pci.Function) tristate.State {
		if !gpu.DriverKnown {
			return tristate.Unknown
		}
		return tristate.Of(!gpu.PassedThrough())
	}))
}

// GPUDriven reports whether the driver of the family drives some eligible GPU.
func (p Pair) GPUDriven() tristate.State { return p.anyGPU(p.drives) }

// drives reports whether a GPU is bound to the driver of the family, which does not exclude it.
func (p Pair) drives(gpu *pci.Function) tristate.State {
	return tristate.And(boundTo(gpu, p.GPU.Driver), tristate.Not(p.Platform.GPUs.Excluded(gpu.Address)))
}

// Turing reports whether some GPU that is driven is one that the open modules can drive.
func (p Pair) Turing() tristate.State {
	return p.anyGPU(func(gpu *pci.Function) tristate.State {
		return tristate.And(p.drives(gpu), tristate.Of(gpu.OpenModules()))
	})
}

// NICDriven reports whether some eligible NIC function is bound to its driver.
func (p Pair) NICDriven() tristate.State {
	answer := tristate.False
	for i := range p.PCI.Functions {
		if fn := &p.PCI.Functions[i]; fn.NIC == p.NIC && fn.Eligible {
			answer = tristate.Or(answer, p.bound(fn))
		}
	}
	return p.unlessUnidentified(answer)
}

func (p Pair) bound(fn *pci.Function) tristate.State { return boundTo(fn, p.NIC.Drivers...) }

// anyDevice asks a question of the RDMA devices of eligible NICs. Some may be hidden.
func (p Pair) anyDevice(ask func(*topology.NIC) tristate.State) tristate.State {
	answer := tristate.False
	for i := range p.Matrix.NICs {
		if nic := &p.Matrix.NICs[i]; nic.Eligible && nic.RDMA != nil && nic.Function.NIC == p.NIC {
			answer = tristate.Or(answer, ask(nic))
		}
	}
	return p.unlessUnidentified(p.unlessHidden(answer))
}

// RDMADevice reports whether some eligible NIC has an RDMA device.
func (p Pair) RDMADevice() tristate.State {
	return p.anyDevice(func(*topology.NIC) tristate.State { return tristate.True })
}

// ActivePort reports whether some port of those is ACTIVE with a link layer of its family.
func (p Pair) ActivePort() tristate.State { return p.anyDevice(HasActivePort) }

// here reports whether there are an eligible GPU and an eligible NIC of the two families.
func (p Pair) here() bool {
	gpu := func(f pci.Function) bool { return f.GPUEligible() && f.GPU == p.GPU }
	nic := func(f pci.Function) bool { return f.NICEligible() && f.NIC == p.NIC }
	return slices.ContainsFunc(p.PCI.Functions, gpu) && slices.ContainsFunc(p.PCI.Functions, nic)
}

// Peermem reports whether a peer memory client gives the GPUs' memory to the NICs. Unknown for a
// pair of which one is not here.
func (p Pair) Peermem() tristate.State {
	if !p.here() {
		return tristate.Unknown
	}
	return p.peermem()
}

func (p Pair) peermem() tristate.State { return tristate.And(p.Registered(), p.OwnMemory()) }

// Registered reports whether such a client is registered.
func (p Pair) Registered() tristate.State { return p.Client().Registered }

// DMABuf reports whether the GPU driver exports and the RDMA stack registers DMA-BUF. Unknown for
// a pair of which one is not here.
func (p Pair) DMABuf() tristate.State {
	if !p.here() {
		return tristate.Unknown
	}
	return p.dmabuf()
}

func (p Pair) dmabuf() tristate.State {
	all := tristate.True
	for _, need := range p.DMABufNeeds() {
		all = tristate.And(all, need.Met)
	}
	return all
}

// DMABufNeeds lists what DMA-BUF needs in the order to name it: hardware before drivers.
func (p Pair) DMABufNeeds() []Prerequisite {
	driver := p.Kmod.Drivers[p.GPU.Name]
	needs := []Prerequisite{{GPUDriverLoaded, driver.Loaded}, {GPUBound, p.GPUDriven()}}
	device := Prerequisite{NICDevice, p.anyDevice(func(nic *topology.NIC) tristate.State { return p.bound(nic.Function) })}
	var open []Prerequisite
	if p.GPU.OpenFrom != 0 {
		needs = append(needs, Prerequisite{TuringGPU, p.Turing()})
		open = append(open, Prerequisite{OpenModules, driver.Open})
	}
	if p.NIC.DMABuf == "" { // no driver changes that
		device.Met = tristate.False
		needs = slices.Concat(needs, []Prerequisite{device}, open)
	} else {
		needs = slices.Concat(needs, open, []Prerequisite{device})
	}
	needs = append(needs, Prerequisite{OwnMemory, p.OwnMemory()}, Prerequisite{PCIeMapping, p.SomeMapped()}, Prerequisite{PeerToPeer, p.PeerToPeer()})
	for _, option := range p.GPU.KernelOptions {
		needs = append(needs, Prerequisite{KernelOption, p.Kmod.KernelOptions[option.Name]})
	}
	if accept := p.DevicesSay(); accept != tristate.Unknown {
		return append(needs, Prerequisite{DevicesAccept, accept})
	}
	return append(needs,
		Prerequisite{CoreSymbol, p.Kmod.Symbols[kmod.UmemDMABuf].Found},
		Prerequisite{DriverSymbol, p.Kmod.Symbols[p.NIC.DMABuf].Found})
}

// DevicesSay reports whether some RDMA device of an eligible NIC answered, when it was
// asked, that it registers DMA-BUF. False only when all were asked and all said no.
func (p Pair) DevicesSay() tristate.State {
	if len(p.Asked) == 0 || p.NIC.Uverbs.Driver == 0 {
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

// Others returns the other families with eligible GPUs.
func (p Pair) Others() []Other {
	byGPU := map[*family.GPU][]Pair{}
	for _, other := range p.pairs() {
		byGPU[other.GPU] = append(byGPU[other.GPU], other)
	}
	var all []Other
	for _, gpu := range p.Matrix.GPUs {
		pairs := byGPU[gpu.GPU]
		if !gpu.Eligible || gpu.GPU == p.GPU || len(pairs) == 0 {
			continue
		}
		delete(byGPU, gpu.GPU) // once
		best := furthest(pairs)
		state, reason := ready(p.PCIRead, best.steps())
		all = append(all, Other{best.GPU, best.NIC, state, reason})
	}
	return all
}

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
		answer = tristate.Or(answer, p.Usable())
	}
	return answer
}

// Need is one thing that DMA-BUF needs of the machine.
type Need string

// What DMA-BUF needs. An answer of the devices (Node.Asked) replaces the two symbols.
const (
	GPUDriverLoaded Need = "gpu-driver-loaded" // its kernel module
	GPUBound        Need = "gpu-bound"         // it drives an eligible GPU
	TuringGPU       Need = "turing-gpu"        // one of those is of Turing or newer
	OpenModules     Need = "open-modules"      // the kernel modules are the open ones
	NICDevice       Need = "nic-device"        // an eligible NIC has an RDMA device whose driver may register it
	OwnMemory       Need = "own-memory"        // the driver gives NICs that GPU's memory (Pair.OwnMemory)
	PCIeMapping     Need = "pcie-mapping"      // the driver maps it at their places (Pair.SomeMapped)
	PeerToPeer      Need = "peer-to-peer"      // the kernel lets them reach each other (Pair.PeerToPeer)
	KernelOption    Need = "kernel-option"     // the kernel was built with an option (family.GPU.KernelOptions)
	DevicesAccept   Need = "devices-accept"    // such a device says that it registers DMA-BUF
	CoreSymbol      Need = "core-symbol"       // ib_umem_dmabuf_get
	DriverSymbol    Need = "driver-symbol"     // the function of that driver (family.NIC.DMABuf)
)

// Prerequisite is one need of DMA-BUF, and whether it is met.
type Prerequisite struct {
	Need Need
	Met  tristate.State
}
