package findings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/topology"
	"gdr-features/tristate"
)

var iommu = check{name: "iommu", sources: []string{pci.AnyFile(pci.IOMMUGroupFile)}, facts: []kmod.Fact{kmod.FactIOMMU}, rows: slices.Concat(smmuRows, []row{
	{
		status: Warn, code: "IOMMUTranslated", which: translated,
		text: "translated for {about}: traffic between GPU and NIC goes through the root complex",
		fix:  do("{passthroughIOMMU}"), evidence: sawCommandLine,
	},
	{status: OK, when: func(f *judged) bool { return f.Verdict.IOMMU != "" }, text: "{iommu}"},
	{status: Undecidable, when: func(f *judged) bool { return f.Platform.IOMMU.Groups == tristate.Unknown }, text: "whether the kernel has IOMMU groups cannot be read"},
	{status: Undecidable, text: "the types of the IOMMU groups cannot be read"},
})}

// translated lists the GPUs and NICs whose addresses the IOMMU translates.
func translated(f *judged) (devices subjects) {
	for _, fn := range f.functions(eligible) {
		kind := f.Platform.IOMMU.Types[fn.IOMMUGroup]
		if fn.IOMMUGroup >= 0 && (kind == "DMA" || kind == "DMA-FQ") {
			devices.add(fn.Address.String(), saw(platform.GroupFile(fn.IOMMUGroup), kind))
		}
	}
	return devices
}

func sawCommandLine(f *judged) []string {
	if words := f.Platform.CommandLine; len(words) > 0 {
		return []string{saw(platform.CommandLineFile, strings.Join(words, " "))}
	}
	return nil
}

var acs = check{name: "acs", sources: []string{pci.AnyFile(pci.ConfigFile)}, rows: slices.Concat(emulatedRows, []row{
	{
		status: Undecidable, code: "ACSUnreadable", when: func(f *judged) bool { return f.Verdict.ACS == "" }, which: unreadBridges,
		text: "the ACS registers of the bridges between GPUs and NICs cannot be read",
		fix:  do("run as root (CAP_SYS_ADMIN)"),
	},
	behindEmulated,
	{status: Undecidable, code: "ACSUnreadable", when: func(f *judged) bool { return f.Verdict.ACS == "" }, text: "no bridge between the GPUs and their nearest NICs is visible on this machine"},
	{
		status: Warn, code: "DataDirectApart", when: func(f *judged) bool {
			return f.Verdict.ACS == "redirect" && !redirectAcross(f) && len(dataDirectApart(f).names) > 0
		}, which: redirectNeeded,
		text: "redirect on {about}, which this platform needs, but in another pattern: see data-direct", fix: rightACS,
	},
	{
		status: OK, when: func(f *judged) bool { return f.Verdict.ACS == "redirect" && !redirectAcross(f) }, which: redirectNeeded,
		text: "redirect on {about}, as this platform needs it (rdma_topo check judges the pattern)",
	},
	{
		status: OK, when: func(f *judged) bool { return f.Verdict.ACS == "redirect" && !redirectAcross(f) }, which: redirecting,
		text: "redirect on {about}, where traffic between GPU and NIC passes the root complex anyway",
	},
	{
		status: Warn, code: "ACSRedirect", when: func(f *judged) bool { return f.Verdict.ACS == "redirect" && guest(f) }, which: redirecting, text: redirected,
		fix: do("leave it on in a virtual machine: on the hypervisor, enable ATS of the NIC{enableATS} and ACS Direct Translated P2P on the switch ports above GPU and NIC"),
	},
	{
		status: Warn, code: "ACSRedirect", when: func(f *judged) bool { return f.Verdict.ACS == "redirect" && passedThrough(f) != "" }, which: redirecting, text: redirected,
		fix: do("leave it on: it isolates the functions of virtual machines ({passedThrough} are bound to vfio)", "for GPUDirect RDMA inside them enable ATS of the NIC and ACS Direct Translated P2P"),
	},
	{
		status: Warn, code: "ACSRedirect", when: func(f *judged) bool { return f.Verdict.ACS == "redirect" }, which: redirecting, text: redirected,
		fix: do("only where no device of this host is given to virtual machines: {setpci} after each boot", "or boot with {disableRedirect}"),
	},
	{status: OK, text: "{acs}"},
})}

const redirected = "peer to peer traffic between a GPU and its nearest NIC is redirected to the root complex by {about}"

// enableATS are the commands for it, in parentheses.
func enableATS(f *judged) string {
	if ats := f.NIC.Help.ATS; ats != "" {
		return " (" + ats + ")"
	}
	return ""
}

func unreadBridges(f *judged) (bridges subjects) {
	for _, bridge := range f.bridges(topology.GPU.Between, anyGPU, func(acs *pci.ACS) bool { return acs == nil }) {
		bridges.add(bridge.String(), saw(bridge.File(pci.ConfigFile), ""))
	}
	return bridges
}

// redirecting names the bridges that redirect, as gdr.acs=redirect says that some do: where it
// slows down a GPU, those that its traffic crosses between two of their ports, otherwise all
// between GPU and NIC. ACSRedirect goes by the former.
func redirecting(f *judged) subjects {
	if across := f.redirectOn(topology.GPU.Crossing, notCoherent); len(across.names) > 0 {
		return across
	}
	return f.redirectOn(topology.GPU.Between, anyGPU)
}

// redirectNeeded names the bridges of GPUs that share memory with their CPU (Grace) that
// redirect. There isolated functions, the kernel's default, are right, and for data-direct
// functions a pattern of bits (rdma-core kernel-boot/rdma_topo, compute_acs).
func redirectNeeded(f *judged) subjects { return f.redirectOn(topology.GPU.Between, coherent) }

// redirectAcross: a bridge redirects traffic that would otherwise not reach the root complex,
// on a platform that does not need it.
func redirectAcross(f *judged) bool {
	return len(f.redirectOn(topology.GPU.Crossing, notCoherent).names) > 0
}

func anyGPU(topology.GPU) bool        { return true }
func coherent(g topology.GPU) bool    { return g.Coherent() }
func notCoherent(g topology.GPU) bool { return !g.Coherent() }

// redirectOn names the bridges of some GPUs that redirect.
func (f *judged) redirectOn(of func(topology.GPU) []pci.Address, which func(topology.GPU) bool) (bridges subjects) {
	redirects := func(acs *pci.ACS) bool { return acs != nil && acs.Redirect() }
	for _, bridge := range f.bridges(of, which, redirects) {
		bridges.add(bridge.String(), saw(bridge.File(pci.ConfigFile), fmt.Sprintf("ACSCtl %04x", f.ACS[bridge].Control)))
	}
	return bridges
}

// bridges lists the bridges of some GPUs and their nearest NICs whose ACS, nil when it
// could not be read, is as asked for, by address.
func (f *judged) bridges(of func(topology.GPU) []pci.Address, which func(topology.GPU) bool, is func(*pci.ACS) bool) []pci.Address {
	var all []pci.Address
	for _, gpu := range f.Matrix.GPUs {
		for _, bridge := range of(gpu) {
			if gpu.Eligible && which(gpu) && is(f.ACS[bridge]) && !slices.Contains(all, bridge) {
				all = append(all, bridge)
			}
		}
	}
	slices.SortFunc(all, pci.Address.Compare)
	return all
}

// passedThrough lists the GPUs and NICs that are given to virtual machines, which ACS
// isolates. Drivers of other functions are not read.
func passedThrough(f *judged) string {
	return firstFew(f.of(func(fn *pci.Function) bool { return (isGPU(fn) || isNIC(fn)) && fn.PassedThrough() }, address))
}

var dataDirect = check{name: "data-direct", sources: []string{pci.AnyFile(pci.IOMMUGroupFile), pci.Devices}, rows: []row{{
	status: Warn, code: "DataDirectApart", which: dataDirectApart,
	text: "a GPU and the data-direct function beside it are not in one IOMMU group, so that DMA-BUF over it is refused: {about}",
	fix:  rightACS,
}}}

var rightACS = do("rdma_topo check names the ACS bits that are wrong (rdma-core 61 or newer), rdma_topo write-grub-acs writes the right ones for this machine", "then reboot")

// dataDirectApart finds GPUs that share memory with their CPU and are below one
// switch with a NIC's data-direct function, but in another IOMMU group, where the
// loaded driver is not known to map their memory for it all the same (verdict.DirectPCI).
// ACS makes the groups. In a virtual machine they are the hypervisor's.
func dataDirectApart(f *judged) (pairs subjects) {
	for _, gpu := range f.Matrix.GPUs {
		if guest(f) || !gpu.Eligible || !gpu.Coherent() {
			continue
		}
		beside := f.dataDirectBeside(gpu)
		if len(beside) > 0 && inTwoGroups(gpu.Function, beside[0]) && f.maps(gpu, beside[0]) != tristate.True {
			pairs.add(fmt.Sprintf("%v and %v", gpu.Address, beside[0].Address), sawGroup(gpu.Function), sawGroup(beside[0]))
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
	return saw(fn.Address.File(pci.IOMMUGroupFile), group)
}

// numa: moving pages between NUMA nodes unmaps them, which slows down programs that
// registered them (NCCL's and RCCL's guides recommend to switch it off).
var numa = check{name: "numa", sources: []string{platform.NUMABalancingFile}, rows: []row{
	{
		status: Warn, code: "NUMABalancing", when: balancing,
		text:     "automatic NUMA balancing moves pages between nodes, which makes communication slow and uneven",
		fix:      do("sysctl -w kernel.numa_balancing=0 and measure", "put it into /etc/sysctl.d to keep it, if nothing else on this node needs it"),
		evidence: func(f *judged) []string { return []string{saw(platform.NUMABalancingFile, f.Platform.NUMABalancing)} },
	},
	{status: OK, when: func(f *judged) bool { _, ok := balancingMode(f); return ok }, text: "automatic NUMA balancing is off"},
}}

// balancingMode is not known on a machine with one node, where it does not matter.
func balancingMode(f *judged) (mode int, ok bool) {
	mode, err := strconv.Atoi(f.Platform.NUMABalancing)
	return mode, err == nil && f.PCI.NUMANodes > 1
}

func balancing(f *judged) bool {
	mode, ok := balancingMode(f)
	return ok && mode&1 != 0 // 2 is memory tiering alone
}

// rootComplex: what the CPU does with traffic between a GPU and a NIC.
var rootComplex = check{name: "root-complex", rows: []row{{
	status: Warn, code: "PlatformP2PWriteOnly", which: throughClientCPU,
	text: "PCIe writes from one device to another pass {cpu}, but reads do not: a NIC cannot send from GPU memory: {about}",
	fix:  do("put GPU and NIC below one PCIe switch, or into a machine with Xeon or EPYC", "meanwhile set NCCL_NET_GDR_READ=0, which sends from host memory"),
	evidence: func(f *judged) []string {
		return []string{saw(platform.CPUFile, f.Platform.CPU.Name), sawID(intelHostBridge(f))}
	},
}}}

// intelHostBridge is that of an Intel CPU, at the place where these CPUs have it; nil where
// there is none.
func intelHostBridge(f *judged) *pci.Function {
	bridge := f.PCI.Find(pci.Address{})
	if bridge == nil || bridge.Class>>8 != 0x0600 || bridge.Vendor != 0x8086 {
		return nil
	}
	return bridge
}

// throughClientCPU lists the GPUs whose nearest NIC is reached through the root complex of an
// Intel client CPU. These are known to support writes between devices only (NVIDIA in
// NVIDIA/open-gpu-kernel-modules#1253). A guest does not see the CPU's PCI tree.
func throughClientCPU(f *judged) (gpus subjects) {
	if f.Platform.Virtual != tristate.False || (f.Matrix.Origin == topology.Virtual) || !f.Platform.CPU.IntelClient() || intelHostBridge(f) == nil {
		return gpus
	}
	for _, gpu := range f.Matrix.GPUs {
		near := gpu.Near(topology.Usable).Functions
		if !gpu.Eligible || gpu.RootBus == "" || len(near) == 0 {
			continue
		}
		nearest := near[0]
		if nearest.RootBus == "" || gpu.CommonBridges(nearest) > 0 {
			continue
		}
		gpus.add(fmt.Sprintf("%v and %v", gpu.Address, nearest.Address), sawPlace(gpu.Function), sawPlace(nearest))
	}
	return gpus
}

// storage: GPUDirect Storage is not supported with a translating IOMMU.
var storage = check{name: "storage", facts: []kmod.Fact{kmod.FactStorage, kmod.FactIOMMU}, rows: []row{{
	status: Warn, code: "StorageIOMMU",
	when: func(f *judged) bool { return f.Kmod.Storage == tristate.True && f.Verdict.IOMMU == "translated" },
	text: "nvidia-fs is loaded, and GPUDirect Storage needs an IOMMU that is off or passes through",
	fix:  do("{passthroughIOMMU}", "gdscheck -p shows whether GPUDirect Storage accepts it"),
	evidence: func(f *judged) []string {
		return slices.Concat(f.saw(kmod.FactStorage, string(kmod.Live)), translated(f).evidence)
	},
}}}
