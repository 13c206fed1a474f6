package verdict

import (
	"gdr-features/internal/version"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// MapsOverPCIe reports whether NVIDIA's driver maps the memory of a GPU that shares memory with
// its CPU for a PCI function whose users ask for a mapping over PCIe (DirectPCI).
func (f *Node) MapsOverPCIe(gpu, peer *pci.Function) tristate.State {
	return DirectPCI{
		Version:   f.Kmod.Drivers[gpu.GPU.Name].Version,
		Parameter: f.TopoCheck(),
		GPU:       gpu.IOMMUGroup, NIC: peer.IOMMUGroup,
		Bridge: f.commonBridge(gpu, peer),
	}.Valid()
}

// TopoCheck returns the parameter of NVIDIA's driver that decides on places.
func (f *Node) TopoCheck() TopoCheck { return topoCheckOf(f.Kmod.Params, f.Kmod.ParamsUnread) }

// commonBridge: two functions have a bridge above them in common.
func (f *Node) commonBridge(a, b *pci.Function) tristate.State {
	a, b = f.PCI.Place(a), f.PCI.Place(b)
	if a.RootBus == "" || b.RootBus == "" {
		return tristate.Unknown
	}
	return tristate.Of(a.CommonBridges(b) > 0)
}

// SomeMapped reports whether the driver maps GPU memory as a NIC of the one family with an RDMA
// device and a GPU of the other need it. True for families that do not ask for a mapping over
// PCIe, and where there is no such NIC or GPU.
func (p Pair) SomeMapped() tristate.State {
	return p.ofSomeInUse(func(gpu, nic *pci.Function) tristate.State {
		if !p.NIC.PCIeMapping || !gpu.Coherent() {
			return tristate.True
		}
		maps := p.MapsOverPCIe(gpu, nic)
		if maps == tristate.Unknown && p.mappedBefore() {
			return tristate.True
		}
		return maps
	})
}

// ofSomeInUse reports whether something is true of some GPU of the one family that is driven and
// some NIC of the other with an RDMA device. True where there are none: that is another need.
func (p Pair) ofSomeInUse(ask func(gpu, nic *pci.Function) tristate.State) tristate.State {
	answer, found := tristate.False, false
	p.each(func(of *topology.Pair) {
		gpu, nic := p.Matrix.GPUs[of.GPU].Function, &p.Matrix.NICs[of.NIC]
		if nic.RDMA != nil && p.drives(gpu) != tristate.False {
			answer, found = tristate.Or(answer, ask(gpu, nic.Function)), true
		}
	})
	if !found {
		return tristate.True
	}
	return p.unlessUnidentified(answer)
}

// mappedBefore: the driver is of a release before R595, and the file of its parameters is
// missing, as in snapshots that do not hold it: no other file says how such nodes are set up,
// and the published ones allow it. Where the driver runs, everybody may read its parameters.
func (p Pair) mappedBefore() bool {
	major := version.Major(p.Kmod.Drivers[p.GPU.Name].Version)
	return p.TopoCheck() == TopoCheckNotRecorded && major > 0 && major < 595
}

// VirtualGPU reports whether the driver names a GPU as a virtual one.
func (f *Node) VirtualGPU(gpu *pci.Function) bool {
	return gpu.GPU.Virtual(f.Platform.GPUs.Said[gpu.Address].Model)
}

// OwnMemory reports whether the driver may give NICs the memory of some eligible GPU that it
// drives: not where GrdmaPciTopoCheckOverride is 2, unless GPU and CPU share memory
// (kernel-open/nvidia/nv-pci.c, nv_grdma_pci_topology_supported, from R580 on). Unknown for
// virtual GPUs, of which NVIDIA supports some (linux-rdma/perftest#126), and in a confidential
// guest: NVIDIA's driver refuses it to a GPU in a mode for such guests (src/nvidia/src/kernel/gpu/
// bus/third_party_p2p.c, thirdpartyp2pConstruct_IMPL, gpuIsApmFeatureEnabled, in 595.45.04;
// NVIDIA/nvtrust#109), no file tells the mode, and devices reach no private memory of the guest.
// True without such a GPU.
func (p Pair) OwnMemory() tristate.State {
	answer, found := tristate.False, false
	for _, gpu := range p.Matrix.GPUs {
		if !gpu.Eligible || gpu.GPU != p.GPU || p.drives(gpu.Function) == tristate.False {
			continue
		}
		found = true
		switch {
		case p.Platform.Confidential != "", p.VirtualGPU(gpu.Function):
			answer = tristate.Or(answer, tristate.Unknown)
		case gpu.Coherent():
			answer = tristate.True
		default:
			answer = tristate.Or(answer, tristate.Not(p.denied()))
		}
	}
	if !found {
		return tristate.True
	}
	return p.unlessUnidentified(answer)
}

// denied: the driver maps GPU memory for no PCI device.
func (p Pair) denied() tristate.State {
	major := version.Major(p.Kmod.Drivers[p.GPU.Name].Version)
	switch {
	case p.GPU.OpenFrom == 0, major > 0 && major < 580:
		return tristate.False
	case p.TopoCheck() == TopoCheckUnread:
		return tristate.Unknown
	}
	return tristate.Of(p.TopoCheck() == 2)
}
