package findings

import (
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/verbs"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

var dmabuf = check{name: "dmabuf", facts: []kmod.Fact{kmod.FactDriver, kmod.FactKernelOptions, kmod.FactSymbols}, tail: "{asked}", evidence: sawAnswers, rows: slices.Concat([]row{
	{
		status: Warn, code: "EFADMABufOff", when: func(f *judged) bool { return f.Verdict.DMABuf == tristate.True && f.Verdict.Peermem == tristate.False }, whom: withoutDMABufInPlugin,
		text: "DMA-BUF is available and the only way here, but aws-ofi-nccl 1.13.2 to 1.19.1 does not use it on this generation of EFA",
		fix:  do("use aws-ofi-nccl 1.19.2 or newer, also in containers", "or install {peerStack}, then modprobe {bridge}"),
	}, {
		status: OK, when: func(f *judged) bool { return f.Verdict.DMABuf == tristate.True && f.DevicesSay() == tristate.True },
		text: "the GPU driver {exports}, and {nic} can register DMA-BUF (only a transfer proves more)",
	}, {
		status: OK, when: func(f *judged) bool { return f.Verdict.DMABuf == tristate.True },
		text: "{gpuSide} and {nic} show everything that DMA-BUF needs (inferred; only a transfer proves it)",
	},
}, dmabufRows, []row{
	{
		status: Undecidable, reason: verdict.Unreadable, when: func(f *judged) bool {
			return f.Verdict.DMABuf == tristate.Unknown && firstOf(f, tristate.Unknown) == verdict.KernelOption
		},
		text:     "whether {gpuDriver} exports DMA-BUF to NICs depends on the kernel's configuration, which cannot be read in full",
		fix:      do("mount the host's /boot, which has config-RELEASE, or enable CONFIG_IKCONFIG_PROC, which provides /proc/config.gz"),
		evidence: unreadNeeds,
	}, {
		status: Undecidable, reason: verdict.Unreadable, when: func(f *judged) bool { return f.Verdict.DMABuf == tristate.Unknown },
		text:     "the kernel's symbols or the type of the GPU driver's kernel modules cannot be read",
		fix:      do("run it where /proc/kallsyms and /proc/driver/nvidia are visible: on the host, or in a container whose runtime hides neither"),
		evidence: unreadNeeds,
	},
}, lackRows())}

// lacks are what DMA-BUF needs and this machine may lack. Their order does not
// matter: the verdict gives the order of the needs.
var lacks = []struct {
	need verdict.Need
	row
}{
	{verdict.GPUDriverLoaded, row{code: Code(verdict.GPUPassthrough), when: func(f *judged) bool { return f.AllPassthrough() == tristate.True }, text: noDriver, fix: seeDriver, evidence: sawGPUDriver}},
	{verdict.GPUDriverLoaded, row{code: Code(verdict.GPUDriverNotLoaded), text: noDriver, fix: seeDriver, evidence: sawGPUDriver}},
	{verdict.GPUBound, row{code: Code(verdict.GPUPassthrough), when: func(f *judged) bool { return f.AllPassthrough() == tristate.True }, text: notBound, fix: seeDriver, evidence: gpuDrivers}},
	{verdict.GPUBound, row{code: Code(verdict.GPUDriverNotLoaded), whom: excluded(tristate.True), text: excludes, fix: seeDriver}},
	{verdict.GPUBound, row{code: Code(verdict.GPUDriverNotLoaded), text: notBound, fix: seeDriver, evidence: gpuDrivers}},
	{verdict.TuringGPU, row{
		code: "PreTuring", text: "no eligible GPU that the driver drives is of the Turing generation or newer",
		fix: do("use {peermem}: DMA-BUF needs Turing or newer"), evidence: gpuIDs,
	}},
	{verdict.OpenModules, row{
		code: "ClosedDriver", text: "the GPU driver has proprietary kernel modules",
		fix: do("install the open kernel modules (GPU Operator: kernelModuleType open), for Turing or newer"), evidence: func(f *judged) []string {
			return f.saw(kmod.FactDriver, strings.TrimSpace(gpuDriverState(f).Version+" "+moduleType(f)))
		},
	}},
	{verdict.OwnMemory, noPlace},
	{verdict.PCIeMapping, unmapped},
	{verdict.KernelOption, row{
		code: "KernelOptionMissing", text: "the kernel was built without CONFIG_{missingOption}, which {gpuDriver} needs to export DMA-BUF to NICs",
		fix: do("use a kernel that has CONFIG_{missingOption}=y"), evidence: sawOptions,
	}},
	{verdict.NICDevice, row{
		code: "NoMLX5Device", when: func(f *judged) bool { return f.NIC.DMABuf != "" && f.RDMADevice() == tristate.False },
		text: "no eligible NIC has an RDMA device whose driver registers DMA-BUF", fix: do("see rdma-device"), evidence: nicDrivers,
	}},
	{verdict.NICDevice, row{
		code: "NoMLX5Device", text: "no eligible NIC has an RDMA device whose driver registers DMA-BUF",
		fix: do("DMA-BUF needs {nicProduct}"), evidence: nicDrivers,
	}},
	{verdict.DevicesAccept, row{
		code: "DMABufRefused", text: "the RDMA devices cannot register DMA-BUF",
		fix: do("{newerStack}, with CONFIG_INFINIBAND_ON_DEMAND_PAGING"),
	}},
	{verdict.CoreSymbol, row{
		code: "NoDMABuf", text: "the RDMA core has no DMA-BUF (" + kmod.UmemDMABuf + ")",
		fix: do("{newerStack}"), evidence: func(f *judged) []string { return f.sawSymbol(kmod.UmemDMABuf) },
	}},
	{verdict.DriverSymbol, row{
		code: "NoDMABuf", text: "{module} has no DMA-BUF ({dmabufSymbol})",
		fix: do("{newerStack}, with {module} loaded"), evidence: func(f *judged) []string { return f.sawSymbol(f.NIC.DMABuf) },
	}},
}

const (
	noDriver = "no GPU driver is loaded"
	excludes = "the {vendor} driver excludes these GPUs, and drives no other eligible one: {about}"
	notBound = "no eligible GPU is bound to the {vendor} driver"
)

var seeDriver = do("see gpu-driver")

// lackRows makes two rows of each: one that holds where its need is the first that
// is not met, and one before it where peermem makes DMA-BUF unnecessary.
func lackRows() []row {
	var rows []row
	for _, l := range lacks {
		r := given(failed(l.row), func(f *judged) bool { return firstOf(f, tristate.False) == l.need })
		served := row{status: OK, when: func(f *judged) bool { return r.when(f) && f.Verdict.Peermem == tristate.True }, whom: l.whom, text: l.text + "; not needed: peermem is available"}
		rows = append(rows, served, r)
	}
	return rows
}

// gpuSide names what exports DMA-BUF.
func gpuSide(f *judged) string {
	if f.GPU.OpenFrom != 0 {
		return "the GPU driver's open kernel modules"
	}
	return f.GPU.Driver
}

func exports(f *judged) string {
	if f.GPU.OpenFrom != 0 {
		return "has open kernel modules"
	}
	return "exports DMA-BUF"
}

// withoutDMABufInPlugin lists the NICs on which some releases of the NCCL plugin do not use
// DMA-BUF.
func withoutDMABufInPlugin(f *judged) finding.Subjects {
	off := func(fn *pci.Function) bool {
		return eligibleNIC(fn) && fn.NIC == f.NIC && fn.NIC.DMABufOff.Has(fn.Device)
	}
	return finding.Subjects{Names: f.of(off, address), Evidence: f.of(off, sawID)}
}

// missingOption returns the first option that the GPU driver needs and the kernel lacks.
func missingOption(f *judged) string {
	for _, o := range f.GPU.KernelOptions {
		if f.Kmod.KernelOptions[o.Name] == tristate.False {
			return o.Name
		}
	}
	return ""
}

// sawOptions is evidence of the kernel's configuration: the file that was read, which is
// the last one that was tried.
func sawOptions(f *judged) []string {
	files := f.Kmod.Files[kmod.FactKernelOptions]
	if len(files) == 0 {
		return nil
	}
	option := ""
	if missing := missingOption(f); missing != "" {
		option = "no CONFIG_" + missing
	}
	return []string{finding.Saw(files[len(files)-1], option)}
}

// firstOf is the first need of DMA-BUF in a state; "" for none.
func firstOf(f *judged, state tristate.State) verdict.Need {
	for _, p := range f.DMABufNeeds() {
		if p.Met == state {
			return p.Need
		}
	}
	return ""
}

// unreadNeeds is the evidence of the needs that are unknown.
func unreadNeeds(f *judged) []string {
	var seen []string
	for _, p := range f.DMABufNeeds() {
		for _, l := range lacks {
			if p.Met == tristate.Unknown && l.need == p.Need {
				seen = append(seen, of(l.evidence, f)...)
			}
		}
	}
	return seen
}

func sawGPUDriver(f *judged) []string {
	files := f.Kmod.Files[kmod.FactDriver]
	if len(files) == 0 {
		return nil
	}
	return []string{finding.SawFile(files[len(files)-1], gpuDriverState(f).Loaded)} // looked for where there is no version
}

func asked(f *judged) string {
	if len(f.Asked) == 0 {
		return ""
	}
	return "; asked: " + devicesSaid(f)
}

// devicesSaid lists what devices said when they were asked.
func devicesSaid(f *judged) string {
	var names [3]string
	for _, a := range f.Asked {
		names[a.DMABuf] += a.Device + " "
	}
	var parts []string
	for _, answer := range [...]tristate.State{tristate.True, tristate.False, tristate.Unknown} {
		if list := names[answer]; list != "" {
			parts = append(parts, list+finding.Choose(answer, "can", "cannot", "gave no clear answer"))
		}
	}
	return strings.Join(parts, ", ")
}

// sawAnswers is evidence of them.
func sawAnswers(f *judged) []string {
	if len(f.Asked) == 0 {
		return nil
	}
	return []string{finding.Saw(verbs.Nodes+"/uverbs*", devicesSaid(f))}
}

// sawLegacyAPI is evidence of the loaded module's parameter for PeerDirect's old interface.
func sawLegacyAPI(f *judged) []string {
	if clientState(f) != kmod.Live {
		return nil
	}
	return []string{finding.Saw(kmod.AttributeFile(firstModule(f), "parameters/peerdirect_support"), f.advised().Peermem.LegacyAPI)}
}

var rdmaStack = check{name: "rdma-stack", facts: []kmod.Fact{kmod.FactStack, kmod.FactNICVersion, kmod.FactSymbols}, rows: []row{
	{
		status: Warn, code: "LegacyPeerDirect", when: func(f *judged) bool { return legacyStack(f) && !legacyConfigured(f) },
		text: "{stack}{peerDirect}, which nvidia-peermem of a driver before 560 uses only with peerdirect_support=1",
		fix:  do("options nvidia-peermem peerdirect_support=1 in /etc/modprobe.d/nvidia-peermem.conf (GPU Operator: the line peerdirect_support=1 alone, key nvidia-peermem.conf of the ConfigMap that driver.kernelModuleConfig.name names), then reload the module", "better, move to MOFED 5.1 or newer"),
		evidence: func(f *judged) []string {
			return slices.Concat(
				[]string{finding.Saw(f.Kmod.MOFED.File, f.Kmod.MOFED.Version)}, sawLegacyAPI(f), sawPeermem(f), f.saw(kmod.FactDriver, gpuDriverState(f).Version))
		},
	},
	{status: OK, when: func(f *judged) bool { return legacyStack(f) && originKnown(f) }, text: "{stack}{peerDirect}, as the peer memory module is set to use it"},
	{status: OK, when: originKnown, text: "{stack}{peerDirect}"},
	{status: OK, when: noModuleLoaded, text: "no RDMA driver is loaded for the NICs{peerDirect}"},
	{status: Undecidable, text: "the origin of the RDMA drivers cannot be read{peerDirect}"},
}}

func originKnown(f *judged) bool {
	if f.NIC.MOFED {
		return f.Kmod.MOFED.Origin != kmod.OriginUnknown
	}
	_, known := f.advised().NICVersions[f.NIC.Name]
	return known && f.RDMADevice() == tristate.True
}

// noModuleLoaded: the NICs, for which MOFED has no drivers, have no RDMA device.
func noModuleLoaded(f *judged) bool {
	return !f.NIC.MOFED && f.Kmod.Advice != nil && f.RDMADevice() == tristate.False
}

func stackOrigin(f *judged) string {
	if !f.NIC.MOFED {
		if version := f.advised().NICVersions[f.NIC.Name]; version != "" {
			return f.NIC.Module + " " + version + " from the NIC's vendor"
		}
		if f.Client().File != "" || f.Client().Registered == tristate.True && !driverIsClient(f) { // the kernel's own driver supports no peer memory
			return f.NIC.Module + " from the NIC's vendor"
		}
		return "the kernel's own " + f.NIC.Module
	}
	switch m := f.Kmod.MOFED; m.Origin {
	case kmod.OriginMOFED:
		return "MOFED " + orUnknown(m.Version)
	case kmod.OriginInbox:
		return "the kernel's own drivers"
	case kmod.OriginNotLoaded:
		return "no driver that MOFED provides is loaded"
	default:
		return "drivers of unknown origin"
	}
}

func peerDirect(f *judged) string {
	if level := f.PeerDirect(); level != "" {
		return ", PeerDirect " + string(level)
	}
	return ""
}

func legacyStack(f *judged) bool {
	return loadableClient(f) && f.PeerDirect() == verdict.PeerDirectLegacy
}

// legacyConfigured: on a MOFED before 5.1 nvidia-peermem works with
// peerdirect_support=1 only, unless the driver is 560 or newer, whose persistent API
// works without it.
func legacyConfigured(f *judged) bool {
	p := &f.advised().Peermem
	persistent := p.PersistentAPI == "1" || p.PersistentAPI == "" && f.persistentByDefault()
	return persistent || p.LegacyAPI == "1" || forerunner(f, f.Client().By)
}
