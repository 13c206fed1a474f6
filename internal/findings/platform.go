package findings

import (
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/topology"
	"gdr-features/tristate"
)

var iommu = check{
	Name: "iommu", Sources: []string{pci.AnyFile(pci.IOMMUGroupFile)}, Facts: []kmod.Fact{platform.FactIOMMU},
	Codes: []finding.Code{"SMMUPassthrough", "IOMMUTranslated", finding.Unreadable},
	Judge: judgeIOMMU,
}

func judgeIOMMU(f *judged) finding.Said {
	if said := smmuPassthrough(f); said.Found() {
		return said
	}
	switch on := translated(f); {
	case on.Any() && translationNeeded(f) && f.BeforePASID() != tristate.False:
		return finding.OK("translated, as this platform needs it with ACS on and a kernel before 6.11").Of(on)
	case on.Any() && translationNeeded(f):
		return finding.OK("translated, beside the ACS redirect that this platform needs").Of(on)
	case on.Any():
		return finding.Warn("IOMMUTranslated", "translated for %s: traffic between GPU and NIC goes through the "+
			"root complex", on).
			Of(on).
			Saw(sawCommandLine(f)...).Do(passthroughIOMMU(f))
	case f.Verdict.IOMMU != "":
		return finding.OK("%s", f.Verdict.IOMMU)
	case f.Platform.IOMMU.Groups == tristate.Unknown:
		return finding.Unknown("whether the kernel has IOMMU groups cannot be read")
	}
	return finding.Unknown("the types of the IOMMU groups cannot be read")
}

// translated lists the GPUs and NICs whose addresses the IOMMU translates.
func translated(f *judged) (devices finding.Subjects) {
	for _, fn := range f.functions(eligible) {
		kind := f.Platform.IOMMU.Types[fn.IOMMUGroup]
		if fn.IOMMUGroup >= 0 && (kind == "DMA" || kind == "DMA-FQ") {
			devices.Add(fn.Address.String(), finding.Saw(platform.GroupFile(fn.IOMMUGroup), kind))
		}
	}
	return devices
}

func sawCommandLine(f *judged) []string {
	if words := f.Platform.CommandLine; len(words) > 0 {
		return []string{finding.Saw(platform.CommandLineFile, strings.Join(words, " "))}
	}
	return nil
}

var acs = check{
	Name: "acs", Sources: []string{pci.AnyFile(pci.ConfigFile)},
	Codes: []finding.Code{"EmulatedSwitch", "ACSUnreadable", "DataDirectApart", "ACSRedirect"},
	Judge: judgeACS,
}

func judgeACS(f *judged) finding.Said {
	if said := emulatedSwitch(f); said.Found() {
		return said
	}
	switch f.Verdict.ACS {
	case "":
		return unreadACS(f)
	case "redirect":
		if f.redirectOn(topology.GPU.Crossing, notCoherent).Any() {
			return slowRedirect(f)
		}
		return harmlessRedirect(f)
	}
	return finding.OK("%s", f.Verdict.ACS)
}

func unreadACS(f *judged) finding.Said {
	isUnread := func(acs *pci.ACS) bool { return acs == nil }
	unread, emulated := f.bridges(topology.GPU.Between, anyGPU, isUnread), emulatedBridges(f)
	switch {
	case unread.Any():
		return finding.Unknown("the ACS registers of the bridges between GPUs and NICs cannot be read").
			As("ACSUnreadable").Of(unread).Do("run as root (CAP_SYS_ADMIN)")
	case emulated.Any():
		return finding.Unknown("the bridges between GPUs and NICs are emulated, and their ACS says nothing of the "+
			"real ones: %s", emulated).
			As("ACSUnreadable").Of(emulated).
			Do("ask the owner of the hypervisor how ACS is set on the real switch ports above GPU and NIC")
	}
	return finding.Unknown("no bridge between the GPUs and their nearest NICs is visible on this machine").
		As("ACSUnreadable")
}

// harmlessRedirect is about a redirect that the platform needs, or that changes nothing.
func harmlessRedirect(f *judged) finding.Said {
	switch needed, on := redirectNeeded(f), redirecting(f); {
	case needed.Any() && dataDirectApart(f).Any():
		return finding.Warn("DataDirectApart", "redirect on %s, which this platform needs, but in another "+
			"pattern: see data-direct", needed).
			Of(needed).Do(rightACS...)
	case needed.Any():
		return finding.OK("redirect on %s, as this platform needs it (rdma_topo check judges the pattern)", needed).
			Of(needed)
	case on.Any():
		return finding.OK("redirect on %s, where traffic between GPU and NIC passes the root complex anyway", on).
			Of(on)
	}
	return finding.OK("%s", f.Verdict.ACS)
}

// slowRedirect says what to do about a redirect on the way between a GPU and its nearest NIC.
func slowRedirect(f *judged) finding.Said {
	on := redirecting(f)
	slow := finding.Warn("ACSRedirect", "peer to peer traffic between a GPU and its nearest NIC is redirected "+
		"to the root complex by %s", on).
		Of(on)
	switch passed := passedThrough(f); {
	case f.Guest():
		return slow.
			Do("leave it on in a virtual machine: on the hypervisor, enable ATS of the NIC" + enableATS(f) + " and " +
				"ACS Direct Translated P2P on the switch ports above GPU and NIC")
	case passed != "":
		return slow.
			Do("leave it on: it isolates the functions of virtual machines ("+passed+" are bound to vfio)",
				"for GPUDirect RDMA inside them enable ATS of the NIC and ACS Direct Translated P2P")
	}
	return slow.
		Do("only where no device of this host is given to virtual machines: `"+setpci(on.Names)+"` after each boot",
			"or boot with "+disableRedirect(on.Names))
}

// enableATS are the commands for it, in parentheses.
func enableATS(f *judged) string {
	if ats := f.NIC.Help.ATS; ats != "" {
		return " (" + ats + ")"
	}
	return ""
}

// redirecting names the bridges that redirect, as gdr.acs=redirect says that some do: where it
// slows down a GPU, those that its traffic crosses between two of their ports, otherwise all
// between GPU and NIC. ACSRedirect goes by the former.
func redirecting(f *judged) finding.Subjects {
	if across := f.redirectOn(topology.GPU.Crossing, notCoherent); across.Any() {
		return across
	}
	return f.redirectOn(topology.GPU.Between, anyGPU)
}

// redirectNeeded names the bridges of GPUs that share memory with their CPU (Grace) that
// redirect. There isolated functions, the kernel's default, are right, and for data-direct
// functions a pattern of bits (rdma-core kernel-boot/rdma_topo, compute_acs).
func redirectNeeded(f *judged) finding.Subjects { return f.redirectOn(topology.GPU.Between, coherent) }

func anyGPU(topology.GPU) bool        { return true }
func coherent(g topology.GPU) bool    { return g.Coherent() }
func notCoherent(g topology.GPU) bool { return !g.Coherent() }

// redirectOn names the bridges of some GPUs that redirect.
func (f *judged) redirectOn(of func(topology.GPU) []pci.Address, which func(topology.GPU) bool) finding.Subjects {
	return f.bridges(of, which, func(acs *pci.ACS) bool { return acs != nil && acs.Redirect() })
}

// bridges lists the bridges of some GPUs and their nearest NICs whose ACS, nil when it
// could not be read, is as asked for, by address.
func (f *judged) bridges(of func(topology.GPU) []pci.Address, which func(topology.GPU) bool,
	is func(*pci.ACS) bool,
) (found finding.Subjects) {
	var all []pci.Address
	for _, gpu := range f.Matrix.GPUs {
		for _, bridge := range of(gpu) {
			if gpu.Counts() && which(gpu) && is(f.ACS[bridge]) && !slices.Contains(all, bridge) {
				all = append(all, bridge)
			}
		}
	}
	slices.SortFunc(all, pci.Address.Compare)
	for _, bridge := range all {
		found.Add(bridge.String(), f.sawACS(bridge))
	}
	return found
}

// passedThrough lists the GPUs and NICs that are given to virtual machines, which ACS
// isolates. Drivers of other functions are not read.
func passedThrough(f *judged) string {
	return finding.FirstFew(f.of(func(fn *pci.Function) bool { return (isGPU(fn) || isNIC(fn)) && fn.PassedThrough() }, f.named))
}

var dataDirect = check{
	Name: "data-direct", Sources: []string{
		pci.AnyFile(pci.IOMMUGroupFile),
		pci.Devices,
	}, Codes: []finding.Code{"DataDirectApart"},
	Judge: func(f *judged) finding.Said {
		apart := dataDirectApart(f)
		return finding.Warn("DataDirectApart", "a GPU and the data-direct function beside it are not in one IOMMU "+
			"group, so that DMA-BUF over it is refused: %s", apart).
			OfAny(apart).Do(rightACS...)
	},
}

var rightACS = []string{
	"`rdma_topo check` names the ACS bits that are wrong (rdma-core 61 or newer), `rdma_topo write-grub-acs` " +
		"writes the right ones for this machine",
	"then reboot",
}

// dataDirectApart finds GPUs that share memory with their CPU and are below one
// switch with a NIC's data-direct function, but in another IOMMU group, where the
// loaded driver is not known to map their memory for it all the same (verdict.DirectPCI).
// ACS makes the groups. In a virtual machine they are the hypervisor's.
func dataDirectApart(f *judged) (pairs finding.Subjects) {
	for _, gpu := range f.Matrix.GPUs {
		if f.Guest() || !gpu.Counts() || !gpu.Coherent() {
			continue
		}
		beside := f.dataDirectBeside(gpu)
		if len(beside) > 0 && inTwoGroups(gpu.Function, beside[0]) &&
			f.MapsOverPCIe(gpu.Function, beside[0]) != tristate.True {
			pairs.Add(f.named(gpu.Function)+" and "+f.named(beside[0]), sawGroup(gpu.Function),
				sawGroup(beside[0]))
		}
	}
	return pairs
}

func inTwoGroups(a, b *pci.Function) bool {
	return a.IOMMUGroup != pci.Unread && b.IOMMUGroup != pci.Unread && a.IOMMUGroup != b.IOMMUGroup
}

func sawGroup(fn *pci.Function) string {
	group := ""
	switch fn.IOMMUGroup {
	case pci.Unread:
	case pci.None:
		group = "absent"
	default:
		group = strconv.Itoa(fn.IOMMUGroup)
	}
	return finding.Saw(fn.Address.File(pci.IOMMUGroupFile), group)
}

// numa: moving pages between NUMA nodes unmaps them, which slows down programs that
// registered them (NCCL's and RCCL's guides recommend to switch it off).
var numa = check{
	Name: "numa", Sources: []string{platform.NUMABalancingFile}, Codes: []finding.Code{"NUMABalancing"},
	Judge: func(f *judged) finding.Said {
		switch mode, err := strconv.Atoi(f.Platform.NUMABalancing); {
		case err != nil, f.PCI.NUMANodes <= 1: // with one node it does not matter
			return finding.Said{}
		case mode&1 != 0: // 2 is memory tiering alone
			return finding.Warn("NUMABalancing", "automatic NUMA balancing moves pages between nodes, which makes "+
				"communication slow and uneven").
				Saw(finding.Saw(platform.NUMABalancingFile, f.Platform.NUMABalancing)).
				Do("`sysctl -w kernel.numa_balancing=0` and measure", "put it into /etc/sysctl.d to keep it, if nothing "+
					"else on this node needs it")
		}
		return finding.OK("automatic NUMA balancing is off")
	},
}

// rootComplex: what the CPU does with traffic between a GPU and a NIC.
var rootComplex = check{
	Name: "root-complex", Codes: []finding.Code{"PlatformP2PWriteOnly"},
	Judge: func(f *judged) finding.Said {
		gpus := writeOnly(f)
		if !gpus.Any() {
			return finding.Said{}
		}
		cpu := f.Platform.CPU.Name
		return finding.Warn("PlatformP2PWriteOnly", "PCIe writes from one device to another pass %s, but reads do "+
			"not: a NIC cannot send from GPU memory: %s", cpu, gpus).
			Of(gpus).Saw(finding.Saw(platform.CPUFile, cpu), sawID(intelHostBridge(f))).
			Do("put GPU and NIC below one PCIe switch, or into a machine with Xeon or EPYC",
				"meanwhile set NCCL_NET_GDR_READ=0, which sends from host memory")
	},
}

// intelHostBridge is at the place where Intel's CPUs have it; nil where there is none.
func intelHostBridge(f *judged) *pci.Function {
	bridge := f.PCI.Find(pci.Address{})
	if bridge == nil || bridge.Class>>8 != 0x0600 || bridge.Vendor != 0x8086 {
		return nil
	}
	return bridge
}

// writeOnly lists the GPUs whose nearest NIC is reached through the root complex of an
// Intel client CPU. These are known to support writes between devices only (NVIDIA in
// NVIDIA/open-gpu-kernel-modules#1253). A guest does not see the CPU's PCI tree.
func writeOnly(f *judged) (gpus finding.Subjects) {
	if f.Platform.Virtual != tristate.False || (f.Matrix.Origin == topology.Virtual) || !f.Platform.CPU.IntelClient() || intelHostBridge(f) == nil {
		return gpus
	}
	for _, gpu := range f.Matrix.GPUs {
		near := gpu.Near(topology.Usable).Functions
		if !gpu.Counts() || gpu.RootBus == "" || len(near) == 0 {
			continue
		}
		if nearest := near[0]; nearest.RootBus != "" && gpu.CommonBridges(nearest) == 0 {
			gpus.Add(f.named(gpu.Function)+" and "+f.named(nearest), sawPlace(gpu.Function), sawPlace(nearest))
		}
	}
	return gpus
}

// storage: GPUDirect Storage is not supported with a translating IOMMU.
var storage = check{
	Name: "storage", Facts: []kmod.Fact{kmod.FactStorage, platform.FactIOMMU}, Codes: []finding.Code{"StorageIOMMU"},
	Judge: func(f *judged) finding.Said {
		if f.Kmod.Storage != tristate.True || f.Verdict.IOMMU != "translated" {
			return finding.Said{}
		}
		return finding.Warn("StorageIOMMU", "nvidia-fs is loaded, and GPUDirect Storage needs an IOMMU that is "+
			"off or passes through").
			Saw(f.saw(kmod.FactStorage, string(kmod.Live))...).Saw(translated(f).Evidence...).
			Do(passthroughIOMMU(f), "gdscheck -p shows whether GPUDirect Storage accepts it")
	},
}
