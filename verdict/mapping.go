package verdict

import (
	"strconv"
	"strings"

	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// MapsOverPCIe reports whether NVIDIA's driver maps the memory of a GPU that shares memory
// with its CPU for a PCI function whose users ask for a mapping over PCIe, and not over C2C
// (mapping type FORCE_PCIE of a DMA-BUF). Unknown where it depends on a fact that is not
// known. In NVIDIA/open-gpu-kernel-modules, kernel-open/nvidia/nv-pci.c,
// nv_pci_is_valid_topology_for_direct_pci:
//
//   - before R570 there is no such mapping type, and the GPU is reached over C2C;
//   - R570 to R590 demand one IOMMU group for both, or none for both, unless the parameter
//     GrdmaPciTopoCheckOverride is 1 (allowed) or 2 (refused; before R580 allowed, too);
//   - early releases of R595 (595.45.04), which have the parameter, demand that group;
//   - later ones, which lack it (595.91.07), demand that the function has an IOMMU group or
//     shares a root port with the GPU. Their source is not public: the rule is that of
//     their release notes, and was measured in NVIDIA/aicr#2459 and its pull request 2439.
func (f *Node) MapsOverPCIe(gpu, peer *pci.Function) tristate.State {
	params := f.Kmod.Params
	major := majorVersion(f.Kmod.Drivers[gpu.GPU.Name].Version)
	override, listed := params[kmod.TopoOverride]
	group, place := sameGroup(gpu, peer), tristate.Or(hasGroup(peer), f.sameRootPort(gpu, peer))
	switch {
	case major == 0:
		return tristate.Unknown
	case major < 570:
		return tristate.True
	case major >= 595 && params == nil:
		if group == place {
			return group
		}
		return tristate.Unknown
	case major >= 595 && !listed:
		return place
	case major >= 595, override == "0":
		return group
	case major >= 580 && f.Kmod.ParamsUnread:
		return tristate.Unknown
	case override == "2" && major >= 580:
		return tristate.False
	case override == "1", override == "2", group == tristate.True:
		return tristate.True
	}
	return tristate.Unknown // the parameter may allow it
}

// majorVersion is the first number of a driver's version, 0 where that is not known.
func majorVersion(version string) int {
	major, _, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(major)
	return n
}

// sameGroup: one IOMMU group has both functions, or neither is in any.
func sameGroup(a, b *pci.Function) tristate.State {
	if a.IOMMUGroup == pci.Unread || b.IOMMUGroup == pci.Unread {
		return tristate.Unknown
	}
	return tristate.Of(a.IOMMUGroup == b.IOMMUGroup)
}

func hasGroup(f *pci.Function) tristate.State {
	if f.IOMMUGroup == pci.Unread {
		return tristate.Unknown
	}
	return tristate.Of(f.IOMMUGroup != pci.None)
}

func (f *Node) sameRootPort(a, b *pci.Function) tristate.State {
	a, b = f.PCI.Place(a), f.PCI.Place(b)
	if a.RootBus == "" || b.RootBus == "" {
		return tristate.Unknown
	}
	return tristate.Of(a.CommonBridges(b) > 0)
}

// MapsOverPCIe reports whether the driver maps GPU memory over PCIe for a NIC of the one family
// with an RDMA device and a GPU of the other that it drives. True for families that do not ask, and for none.
func (p Pair) MapsOverPCIe() tristate.State {
	return p.ofSomeInUse(func(gpu, nic *pci.Function) tristate.State {
		if !p.NIC.PCIeMapping || !gpu.Coherent() {
			return tristate.True
		}
		maps := p.Node.MapsOverPCIe(gpu, nic)
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
	major := majorVersion(p.Kmod.Drivers[p.GPU.Name].Version)
	return p.Kmod.Params == nil && !p.Kmod.ParamsUnread && major > 0 && major < 595
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
	major := majorVersion(p.Kmod.Drivers[p.GPU.Name].Version)
	switch {
	case p.GPU.OpenFrom == 0, major > 0 && major < 580:
		return tristate.False
	case p.Kmod.ParamsUnread:
		return tristate.Unknown
	}
	return tristate.Of(p.Kmod.Params[kmod.TopoOverride] == "2")
}
