package verdict

import (
	"slices"

	"gdr-features/internal/version"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// MapsOverPCIe reports whether NVIDIA's driver maps the memory of a GPU that shares memory with
// its CPU for a PCI function whose users ask for a mapping over PCIe (DirectPCI).
func (node *Node) MapsOverPCIe(gpu, peer *pci.Function) tristate.State {
	return DirectPCI{
		Version:   node.Kmod.Drivers[gpu.GPU.Name].Version,
		Parameter: node.TopoCheck(),
		GPU:       gpu.IOMMUGroup, NIC: peer.IOMMUGroup,
		Bridge: node.commonBridge(gpu, peer),
	}.Valid()
}

// commonBridge: two functions have a bridge above them in common.
func (node *Node) commonBridge(a, b *pci.Function) tristate.State {
	a, b = node.PCI.Place(a), node.PCI.Place(b)
	if a.RootBus == "" || b.RootBus == "" {
		return tristate.Unknown
	}
	return tristate.Of(a.CommonBridges(b) > 0)
}

// someMapped is true for families that do not ask for a mapping over PCIe, and where there is no such
// GPU or NIC.
func (j *judge) someMapped() tristate.State {
	return j.ofSomeInUse(func(gpu, nic *pci.Function) tristate.State {
		if !j.NIC.PCIeMapping || !gpu.Coherent() || j.mappedBefore() {
			return tristate.True
		}
		return j.MapsOverPCIe(gpu, nic)
	})
}

// ofSomeInUse reports whether something is true of some GPU of the one family that is driven and
// some NIC of the other with an RDMA device. True where there are none: that is another need.
func (j *judge) ofSomeInUse(ask func(gpu, nic *pci.Function) tristate.State) tristate.State {
	answer, found := tristate.False, false
	j.each(func(of *topology.Pair) {
		gpu, nic := j.Matrix.GPUs[of.GPU].Function, &j.Matrix.NICs[of.NIC]
		if nic.RDMA != nil && j.driven[gpu] != tristate.False {
			answer, found = tristate.Or(answer, ask(gpu, nic.Function)), true
		}
	})
	if !found {
		return tristate.True
	}
	return j.unlessUnidentified(answer)
}

// mappedBefore: the driver is of a release before R595, and the file of its parameters is
// missing, as in snapshots that do not hold it: no other file says how such nodes are set up,
// and the published ones allow it. Where the driver runs, everybody may read its parameters.
func (j *judge) mappedBefore() bool {
	major := version.Major(j.Kmod.Drivers[j.GPU.Name].Version)
	return j.TopoCheck() == TopoCheckNotRecorded && major > 0 && major < 595
}

// VirtualGPU reports whether the driver names a GPU as a virtual one.
func (node *Node) VirtualGPU(gpu *pci.Function) bool {
	return gpu.GPU.Virtual(node.Platform.GPUs.Said[gpu.Address].Model)
}

// ownMemory is false where GrdmaPciTopoCheckOverride is 2, unless GPU and CPU share memory
// (kernel-open/nvidia/nv-pci.c, nv_grdma_pci_topology_supported, from R580 on). Unknown for
// virtual GPUs, of which NVIDIA supports some (linux-rdma/perftest#126), and in a confidential
// guest: NVIDIA's driver refuses it to a GPU in a mode for such guests (src/nvidia/src/kernel/gpu/
// bus/third_party_p2p.c, thirdpartyp2pConstruct_IMPL, gpuIsApmFeatureEnabled, in 595.45.04;
// NVIDIA/nvtrust#109), no file tells the mode, and devices reach no private memory of the guest.
// True without such a GPU.
func (j *judge) ownMemory() tristate.State {
	driven := func(gpu *pci.Function) bool { return j.driven[gpu] != tristate.False }
	if !slices.ContainsFunc(j.gpus, driven) {
		return tristate.True
	}
	return j.anyGPU(func(gpu *pci.Function) tristate.State {
		switch {
		case !driven(gpu):
			return tristate.False
		case j.Platform.Confidential != "", j.VirtualGPU(gpu):
			return tristate.Unknown
		case gpu.Coherent():
			return tristate.True
		}
		return tristate.Not(j.denied())
	})
}

// denied: the driver maps GPU memory for no PCI device.
func (j *judge) denied() tristate.State {
	major := version.Major(j.Kmod.Drivers[j.GPU.Name].Version)
	switch {
	case j.GPU.OpenFrom == 0, major > 0 && major < 580:
		return tristate.False
	case j.TopoCheck() == TopoCheckUnread:
		return tristate.Unknown
	}
	return tristate.Of(j.TopoCheck() == 2)
}
