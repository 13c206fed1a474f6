package topology

import (
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// hardware fills in what follows from eligible GPUs and adapter functions: the
// part of the Matrix that no driver moves.
func (b *builder) hardware() {
	adapters := b.adapters()
	b.nccl = b.rateNCCL(adapters)
	b.m.Counted = !b.PCI.Unidentified()
	b.m.EligibleNICs = len(adapters)
	b.m.Reachable = tristate.False
	b.commonBridge = b.PCI.NeedsCommonBridge()
	for i := range b.PCI.Functions {
		switch b.PCI.Functions[i].Kind() {
		case pci.DataDirect:
			b.m.DataDirect = true
		case pci.NIC:
			b.m.Adapters++
		case pci.Other, pci.GPU, pci.Bridge:
		}
	}
	at := make([]ncclFunction, len(adapters))
	for i, nic := range adapters {
		at[i] = inNCCL(b.PCI, nic)
	}
	var bests, all []span
	b.m.NCCLDefault = tristate.True
	for i := range b.m.GPUs {
		gpu := b.m.GPUs[i].Function
		if !b.m.GPUs[i].Eligible {
			continue
		}
		b.m.EligibleGPUs++
		var spans []span
		byDefault := tristate.False
		for i, nic := range adapters {
			r := b.rate(gpu, nic)
			spans = append(spans, r.span)
			byDefault = tristate.Or(byDefault, b.usedByDefault(nic, b.nccl.level(gpu, at[i])))
			b.m.Reachable = tristate.Or(b.m.Reachable, b.allowed(gpu, nic))
		}
		best := nearest(spans)
		bests = append(bests, exactly(best))
		all = append(all, spans...)
		b.m.NCCLDefault = tristate.And(b.m.NCCLDefault, byDefault)
		b.m.Nearest = append(b.m.Nearest, b.link(gpu, adapters, best))
	}
	if b.m.EligibleGPUs == 0 || b.m.EligibleNICs == 0 {
		b.m.NCCLDefault = tristate.Unknown
		return
	}
	b.m.Level, b.m.Best = farthest(bests), nearest(all)
	if !b.m.Counted { // an unidentified function may be a GPU without a NIC, or a nearer NIC
		b.m.Level, b.m.NCCLDefault = Unknown, tristate.Unknown
		if b.m.Best != PIX {
			b.m.Best = Unknown
		}
	}
}

// adapters are the eligible functions, without virtual ones whose physical one
// is here.
func (b *builder) adapters() []*pci.Function {
	var adapters []*pci.Function
	for i := range b.PCI.Functions {
		if f := &b.PCI.Functions[i]; f.NICEligible() && !b.here(f) {
			adapters = append(adapters, f)
		}
	}
	return adapters
}

// farthest is the largest of some levels, Unknown when one is not known.
func farthest(spans []span) Level {
	worst := Unknown
	for _, s := range spans {
		if s.level == Unknown {
			return Unknown
		}
		worst = max(worst, s.level)
	}
	return worst
}

// link finds the adapter at the GPU's best level.
func (b *builder) link(gpu *pci.Function, adapters []*pci.Function, best Level) Link {
	for _, nic := range adapters {
		if best != Unknown && b.rate(gpu, nic).span.level == best {
			return Link{gpu, nic, best}
		}
	}
	return Link{GPU: gpu}
}

// usedByDefault tells whether NCCL uses GPUDirect RDMA at a level without being
// told to. An adapter with a data-direct function that could not be matched is
// nearer than its own place says.
func (b *builder) usedByDefault(nic *pci.Function, level Level) tristate.State {
	switch level {
	case PIX, PXB, P2C:
		return tristate.True
	case Unknown:
		return tristate.Unknown
	case PHB, NODE, SYS:
	}
	if b.unmatchedDataDirect(nic) {
		return tristate.Unknown
	}
	return tristate.False
}

// unmatchedDataDirect tells whether an adapter may have a data-direct function
// without its VPD, readable to root only, saying which.
func (b *builder) unmatchedDataDirect(nic *pci.Function) bool {
	const connectX8, connectX9 = 0x1023, 0x1025
	return b.m.DataDirect && nic.DataDirect == nil && nic.VPD == nil &&
		(nic.Device == connectX8 || nic.Device == connectX9)
}

// allowed tells whether the NVIDIA driver maps the GPU's memory for the NIC as
// far as their places go.
func (b *builder) allowed(gpu, nic *pci.Function) tristate.State {
	if gpu.Coherent() || b.virtual || !b.commonBridge {
		return tristate.True
	}
	g, n := b.PCI.Place(gpu), b.PCI.Place(nic)
	if g.RootBus == "" || n.RootBus == "" {
		return tristate.Unknown
	}
	if g.CommonBridges(n) > 0 {
		return tristate.True
	}
	if b.Virtual == tristate.False || b.PCI.ProcessorPort() {
		return tristate.False
	}
	return tristate.Unknown // a virtual machine may show no bridge where there is one
}

// Between lists the bridges that traffic between the GPU and the NIC passes
// below the deepest bridge they share, or all above both when they share none.
func (l Link) Between() []pci.Address {
	if l.NIC == nil {
		return nil
	}
	common := l.GPU.CommonBridges(l.NIC)
	var bridges []pci.Address
	bridges = append(bridges, l.GPU.Bridges[common:]...)
	return append(bridges, l.NIC.Bridges[common:]...)
}

// Crossing are the ports that this traffic passes from one to the other, right below
// the deepest common bridge: ACS redirect at these alone sends it to the root complex.
// At one below them it goes up anyway (PCI Express Base Specification 5.0, 6.12.1.1:
// redirect is between the downstream ports of one switch). None without a common bridge.
func (l Link) Crossing() []pci.Address {
	if l.NIC == nil {
		return nil
	}
	common := l.GPU.CommonBridges(l.NIC)
	if common == 0 {
		return nil
	}
	var ports []pci.Address
	for _, end := range [...]*pci.Function{l.GPU, l.NIC} {
		if common < len(end.Bridges) {
			ports = append(ports, end.Bridges[common])
		}
	}
	return ports
}
