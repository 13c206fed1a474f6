package topology

import (
	"slices"

	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/topology/nccl"
	"gdr-features/tristate"
)

// hardware fills in what follows from eligible functions, and no driver, module or link changes.
func (b *builder) hardware() {
	nics := eligibleNICs(b.PCI)
	placed := make([]nccl.NIC, len(nics))
	for i, nic := range nics {
		placed[i] = nccl.NIC{Function: nic, At: nccl.GetPCIPath(b.PCI, nic)}
	}
	b.nccl = b.rateNCCL(placed)
	b.m.EligibleNICs = len(nics)
	b.countFunctions()
	b.m.Reachable = tristate.False
	var all []bound
	worst, known := Unknown, b.m.Complete
	everyByDefault, everyUsable := tristate.True, tristate.True
	usable := b.usableFunctions()
	for i := range b.m.GPUs {
		gpu := &b.m.GPUs[i]
		levels := b.nearestNICs(gpu, nics)
		if !gpu.Counts() {
			continue
		}
		b.m.EligibleGPUs++
		level := gpu.near[Hardware].Level
		worst, known, all = max(worst, level), known && level != Unknown, append(all, levels...)
		byDefault, usableByDefault := tristate.False, tristate.False
		for i, nic := range nics {
			allowed := b.allowed(gpu.Function, nic)
			inNCCL := levelOf[b.nccl.Path(gpu.Function, placed[i].At)]
			used := tristate.And(allowed, b.usedByDefault(gpu.Function, nic, inNCCL))
			byDefault = tristate.Or(byDefault, used)
			if usable[nic] {
				usableByDefault = tristate.Or(usableByDefault, used)
			}
			b.m.Reachable = tristate.Or(b.m.Reachable, allowed)
		}
		everyByDefault = tristate.And(everyByDefault, byDefault)
		everyUsable = tristate.And(everyUsable, usableByDefault)
	}
	if b.m.EligibleGPUs == 0 || b.m.EligibleNICs == 0 {
		return
	}
	// An unidentified function may be a GPU without a NIC, or a nearer NIC.
	if best, _, open := nearest(all, nil); !open && (b.m.Complete || best == PIX) {
		b.m.Best = best
	}
	if known {
		b.m.Hardware.Level = worst
	}
	if b.m.Complete {
		b.m.Hardware.NCCLDefault = everyByDefault
	}
	if b.m.Complete && len(usable) > 0 {
		b.m.Usable.NCCLDefault = everyUsable
	}
}

// usableFunctions are the functions of NICs that count as Usable.
func (b *builder) usableFunctions() map[*pci.Function]bool {
	usable := make(map[*pci.Function]bool, len(b.m.NICs))
	for i := range b.m.NICs {
		if b.m.ForGPUs(i) {
			usable[b.m.NICs[i].Function] = true
		}
	}
	return usable
}

// countFunctions counts what is there, and asks for each family of GPUs which NICs they reach.
func (b *builder) countFunctions() {
	b.m.Complete = !b.PCI.Unidentified()
	b.m.DataDirect = slices.ContainsFunc(b.PCI.Functions, func(f pci.Function) bool { return f.DataDirectOf != nil })
	b.commonBridge = map[*family.GPU]tristate.State{}
	for _, gpu := range b.m.GPUs {
		if _, known := b.commonBridge[gpu.GPU]; !known {
			b.commonBridge[gpu.GPU] = b.PCI.NeedsCommonBridge(gpu.GPU)
		}
	}
}

// eligibleNICs lists them as Matrix.EligibleNICs counts them. Virtual functions come and go with
// software; their place is that of the physical one.
func eligibleNICs(bus *pci.Inventory) []*pci.Function {
	var nics []*pci.Function
	for i := range bus.Functions {
		if f := &bus.Functions[i]; f.NICEligible() && bus.Physical(f) == nil {
			nics = append(nics, f)
		}
	}
	return nics
}

// nearestNICs fills in the nearest NICs of a GPU, and returns what is known of every level.
func (b *builder) nearestNICs(gpu *GPU, nics []*pci.Function) []bound {
	levels := make([]bound, len(nics))
	for i, nic := range nics {
		levels[i] = b.rate(gpu.Function, nic).level
	}
	level, at, open := nearest(levels, nil)
	if open || level == Unknown {
		return levels
	}
	near := Nearest{Level: level}
	for _, i := range at {
		near.Functions = append(near.Functions, nics[i])
	}
	among := make(map[*pci.Function]bool, len(near.Functions))
	for _, f := range near.Functions {
		among[f] = true
	}
	for i := range b.m.NICs {
		if among[b.m.NICs[i].Function] {
			near.NICs = append(near.NICs, i)
		}
	}
	gpu.near[Hardware] = near
	return levels
}

// usedByDefault reports whether NCCL uses GPUDirect RDMA at a level with its default
// settings (src/graph/paths.cc, ncclTopoCheckGdr): nearer than PHB. A NIC may be nearer than its
// own place says, by a data-direct function that could not be matched to it.
func (b *builder) usedByDefault(gpu, nic *pci.Function, level Level) tristate.State {
	switch {
	case level == Unknown, nic.OverC2C():
		return tristate.Unknown
	case level < PHB:
		return tristate.True
	case b.m.UnmatchedDataDirect(nic), level == PHB && nccl.RaisedByRCCL(b.Platform.CPU, gpu, nic):
		return tristate.Unknown
	}
	return tristate.False
}

// UnmatchedDataDirect reports whether a data-direct function may be the NIC's, whose VPD only root
// may read.
func (m *Matrix) UnmatchedDataDirect(nic *pci.Function) bool {
	return m.DataDirect && nic.DataDirect == nil && nic.VPD == nil && nic.NIC != nil && nic.NIC.WithDataDirect.Has(nic.Device)
}

// Refuses reports whether the machine is of a type on which NICs of a family reach no GPU's
// memory: not without names from the firmware, unknown where they cannot be read. Such NICs are in
// machines of one vendor alone, so the name of another one does not tell the type.
func (m *Matrix) Refuses(nic *family.NIC) tristate.State {
	if nic == nil || nic.NoGPUMemory == nil || m.Machine.Vendor.Missing && m.Machine.Product.Missing {
		return tristate.False
	}
	if m.Machine.Vendor.Is(nic.NoGPUMemory.OfVendor) != tristate.True {
		return tristate.Unknown
	}
	return m.Machine.Product.Is(nic.NoGPUMemory.OfType)
}

// allowed reports whether machine and driver let the NIC reach the GPU's memory.
func (b *builder) allowed(gpu, nic *pci.Function) tristate.State {
	return tristate.And(tristate.Not(b.m.Refuses(nic.NIC)), b.mapped(gpu, nic))
}

// mapped reports whether the driver maps the GPU's memory for a NIC at its place. Unknown for a
// NIC whose place in the PCI tree is not where it is attached.
func (b *builder) mapped(gpu, nic *pci.Function) tristate.State {
	if b.PCI.Place(nic).OverC2C() {
		return tristate.Unknown
	}
	needed := b.commonBridge[gpu.GPU]
	if gpu.Coherent() || b.virtual || needed == tristate.False {
		return tristate.True
	}
	switch g, n := b.PCI.Place(gpu), b.PCI.Place(nic); {
	case g.RootBus == "" || n.RootBus == "":
		return tristate.Unknown
	case g.CommonBridges(n) > 0:
		return tristate.True
	case b.Platform.Virtual == tristate.False || b.PCI.CPUPort():
		return tristate.Not(needed)
	}
	return tristate.Unknown // a virtual machine may show no bridge where there is one
}

// below lists the bridges of the GPU and its first nearest NIC (Hardware) below the common ones.
func (g GPU) below() (gpu, nic []pci.Address, common int) {
	near := g.near[Hardware].Functions
	if len(near) == 0 {
		return nil, nil, 0
	}
	common = g.CommonBridges(near[0])
	return g.Bridges[common:], near[0].Bridges[common:], common
}

// Between lists the bridges between the GPU and the first of its nearest NICs: those below their
// deepest common bridge, or all. It is empty where none is nearest. They are those of the label
// gdr.acs, which counts every NIC.
func (g GPU) Between() []pci.Address {
	gpu, nic, _ := g.below()
	return slices.Concat(gpu, nic)
}

// Crossing lists the bridges of Between right below the deepest common one; empty without that.
// Only these can redirect traffic to the root complex by ACS, below them it goes up anyway (PCI
// Express Base Specification 5.0, 6.12.1.1: redirect is between the ports of one switch).
func (g GPU) Crossing() []pci.Address {
	gpu, nic, common := g.below()
	if common == 0 {
		return nil
	}
	return slices.Concat(gpu[:min(1, len(gpu))], nic[:min(1, len(nic))])
}
