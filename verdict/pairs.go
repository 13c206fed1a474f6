package verdict

import (
	"slices"

	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// pairs judges the pairs of families with eligible functions on the machine, or all if that is unknown.
func (node *Node) pairs(drives asker) (all []*Judged) {
	table := node.PCI.Families(node.Families.OrDefault())
	for _, g := range table.GPUs {
		for _, n := range table.NICs {
			all = append(all, node.judged(g, n, drives))
		}
	}
	return all
}

// furthest returns the pair whose first missing prerequisite comes last, or that misses none; of
// several the one with more ways to GPU memory, and of those the first.
func furthest(all []*Judged) *Judged {
	best, most := all[0], progress(all[0].steps)
	for _, j := range all[1:] {
		if n := progress(j.steps); n > most || n == most && j.ways() > best.ways() {
			best, most = j, n
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

// each goes through the pairs of an eligible GPU and NIC of the two families.
func (j *judge) each(see func(*topology.Pair)) {
	for i := range j.Matrix.Pairs {
		of := &j.Matrix.Pairs[i]
		gpu, nic := &j.Matrix.GPUs[of.GPU], &j.Matrix.NICs[of.NIC]
		if gpu.Counts() && gpu.GPU == j.GPU && nic.Counts() && nic.Function.NIC == j.NIC {
			see(of)
		}
	}
}

// stepsOfAll are the prerequisites of one pair in their order. What a GPU and a NIC lack together
// (apart) is missing at the step that asks for it.
func (j *judge) stepsOfAll() []Step {
	memory := Step{GPUMemory, tristate.Or(j.peermem, j.dmabuf), NoPeerMemoryPath}
	if j.Doubt != "" {
		memory.Met = tristate.And(memory.Met, tristate.Unknown)
	}
	if j.Client.Registered != tristate.True && j.Kmod.Symbols[kmod.PeerMemoryAPI].Found == tristate.True {
		memory.Reason = PeermemNotLoaded
	}
	steps := []Step{
		{"hardware", j.Reachable, PlatformForbidsP2P},
		{"gpu-driver", tristate.Not(j.AllPassthrough), GPUPassthrough},
		{"gpu-driver", j.GPUDriven, GPUDriverNotLoaded},
		{"nic-driver", j.NICDriven, NICDriverNotLoaded},
		{"rdma-device", j.RDMADevice, NoRDMADevice},
		{"port", j.ActivePort, NoActivePort},
		memory,
	}
	for i := range steps {
		if steps[i].Reason == j.Lack.Reason {
			steps[i].Met = tristate.And(steps[i].Met, j.Lack.Met)
		}
	}
	return steps
}

// reachable answers Judged.Reachable; unknown where no pair is of the two families.
func (j *judge) reachable() tristate.State {
	answer, found := tristate.False, false
	j.each(func(of *topology.Pair) { answer, found = tristate.Or(answer, of.Allowed), true })
	if !found {
		return tristate.Unknown
	}
	return j.unlessUnidentified(answer)
}

// anyGPU asks a question of the eligible GPUs of the family.
func (j *judge) anyGPU(ask func(*pci.Function) tristate.State) tristate.State {
	answer := tristate.False
	for _, gpu := range j.gpus {
		answer = tristate.Or(answer, ask(gpu))
	}
	return j.unlessUnidentified(answer)
}

func (j *judge) allPassthrough() tristate.State {
	if len(j.gpus) == 0 {
		return j.unlessUnidentified(tristate.False)
	}
	return tristate.Not(j.anyGPU(func(gpu *pci.Function) tristate.State {
		if !gpu.DriverKnown {
			return tristate.Unknown
		}
		return tristate.Of(!gpu.PassedThrough())
	}))
}

// drives reports whether a GPU is bound to the driver of its family, which does not exclude it.
func drives(node *Node, of *family.GPU, gpu *pci.Function) tristate.State {
	return tristate.And(boundTo(gpu, of.Driver), tristate.Not(node.Platform.GPUs.Excluded(gpu.Address)))
}

func (j *judge) turing() tristate.State {
	return j.anyGPU(func(gpu *pci.Function) tristate.State {
		return tristate.And(j.driven[gpu], tristate.Of(gpu.OpenModules()))
	})
}

func (j *judge) nicDriven() tristate.State {
	answer := tristate.False
	for fn := range j.PCI.All() {
		if fn.NIC == j.NIC && fn.Counts() {
			answer = tristate.Or(answer, j.bound(fn))
		}
	}
	return j.unlessUnidentified(answer)
}

func (j *judge) bound(fn *pci.Function) tristate.State { return boundTo(fn, j.NIC.Drivers...) }

// anyDevice asks a question of the RDMA devices of eligible NICs. Some may be hidden.
func (j *judge) anyDevice(ask func(*topology.NIC) tristate.State) tristate.State {
	answer := tristate.False
	for i := range j.Matrix.NICs {
		if nic := &j.Matrix.NICs[i]; nic.Counts() && nic.RDMA != nil && nic.Function.NIC == j.NIC {
			answer = tristate.Or(answer, ask(nic))
		}
	}
	return j.unlessUnidentified(j.unlessHidden(answer))
}

// here reports whether there are an eligible GPU and an eligible NIC of the two families. Without
// one there is no way to judge.
func (node *Node) here(j *Judged) bool {
	gpu := func(fn pci.Function) bool { return fn.GPUEligible() && fn.GPU == j.GPU }
	nic := func(fn pci.Function) bool { return fn.NICEligible() && fn.NIC == j.NIC }
	return slices.ContainsFunc(node.PCI.Functions, gpu) && slices.ContainsFunc(node.PCI.Functions, nic)
}

func allMet(needs []Prerequisite) tristate.State {
	all := tristate.True
	for _, need := range needs {
		all = tristate.And(all, need.Met)
	}
	return all
}

// needs are in the order of Judged.Needs.
func (j *judge) needs() []Prerequisite {
	driver := j.Kmod.Drivers[j.GPU.Name]
	needs := []Prerequisite{{GPUDriverLoaded, driver.Loaded}, {GPUBound, j.GPUDriven}}
	device := Prerequisite{NICDevice, j.anyDevice(func(nic *topology.NIC) tristate.State { return j.bound(nic.Function) })}
	var open []Prerequisite
	if j.GPU.OpenFrom != 0 {
		needs = append(needs, Prerequisite{TuringGPU, j.Turing})
		open = append(open, Prerequisite{OpenModules, driver.Open})
	}
	if j.NIC.DMABuf == "" { // no driver changes that
		device.Met = tristate.False
		needs = slices.Concat(needs, []Prerequisite{device}, open)
	} else {
		needs = slices.Concat(needs, open, []Prerequisite{device})
	}
	needs = append(needs, Prerequisite{OwnMemory, j.OwnMemory}, Prerequisite{PCIeMapping, j.SomeMapped}, Prerequisite{PeerToPeer, j.PeerToPeer})
	for _, option := range j.GPU.KernelOptions {
		needs = append(needs, Prerequisite{KernelOption, j.Kmod.KernelOptions[option.Name]})
	}
	if accept := j.DevicesSay; accept != tristate.Unknown {
		return append(needs, Prerequisite{DevicesAccept, accept})
	}
	return append(needs,
		Prerequisite{CoreSymbol, j.Kmod.Symbols[kmod.UmemDMABuf].Found},
		Prerequisite{DriverSymbol, j.Kmod.Symbols[j.NIC.DMABuf].Found})
}

// devicesSay is False only when all were asked and all said no.
func (j *judge) devicesSay() tristate.State {
	said := make(map[string]tristate.State, len(j.Asked))
	for _, a := range j.Asked {
		said[a.Device] = a.DMABuf
	}
	asked := false
	answer := j.anyDevice(func(nic *topology.NIC) tristate.State {
		bound := j.bound(nic.Function)
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

// others returns the other families of GPUs with eligible ones.
func (node *Node) others(judged *family.GPU, pairs []*Judged) (all []Other) {
	byGPU := map[*family.GPU][]*Judged{}
	for _, j := range pairs {
		byGPU[j.GPU] = append(byGPU[j.GPU], j)
	}
	delete(byGPU, judged)
	for _, gpu := range node.Matrix.GPUs {
		pairs := byGPU[gpu.GPU]
		if !gpu.Counts() || len(pairs) == 0 {
			continue
		}
		delete(byGPU, gpu.GPU) // once
		best := furthest(pairs)
		state, reason := ready(node.PCIRead, best.steps)
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
	OwnMemory       Need = "own-memory"        // the driver gives NICs that GPU's memory (Judged.OwnMemory)
	PCIeMapping     Need = "pcie-mapping"      // the driver maps it at their places (Judged.SomeMapped)
	PeerToPeer      Need = "peer-to-peer"      // the kernel lets them reach each other (Judged.PeerToPeer)
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
