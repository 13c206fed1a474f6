package findings

import (
	"slices"
	"strings"

	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/verbs"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

var dmabuf = check{name: "dmabuf", facts: []kmod.Fact{kmod.FactDriver, kmod.FactKernelOptions, kmod.FactSymbols}, tail: asked, evidence: sawAnswers, rows: slices.Concat([]row{
	{
		status: Warn, code: "EFADMABufOff", when: all(is(dmabufWay, tristate.True), is(peermemWay, tristate.False)), which: withoutDMABufInPlugin,
		text: say("DMA-BUF is available and the only way here, but aws-ofi-nccl 1.13.2 to 1.19.1 does not use it on this generation of EFA"),
		fix:  say("use aws-ofi-nccl 1.19.2 or newer, also in containers; or install %s, then modprobe %s", peerStack, bridge),
	}, {
		status: OK, when: all(is(dmabufWay, tristate.True), is((*Facts).DevicesSay, tristate.True)),
		text: say("the GPU driver %s, and %s can register DMA-BUF (only a transfer proves more)", exports, nicFamily),
	}, {
		status: OK, when: is(dmabufWay, tristate.True),
		text: say("%s and %s show everything that DMA-BUF needs (inferred; only a transfer proves it)", gpuSide, nicFamily),
	},
}, dmabufRows, []row{
	{
		status: Undecidable, reason: verdict.Unreadable, when: all(is(dmabufWay, tristate.Unknown), firstUnknown(verdict.KernelOption)),
		text:     say("whether %s exports DMA-BUF to NICs depends on the kernel's configuration, which cannot be read", gpuDriverName),
		fix:      say("mount the host's /boot, which has config-RELEASE, or enable CONFIG_IKCONFIG_PROC, which provides /proc/config.gz"),
		evidence: unreadNeeds,
	}, {
		status: Undecidable, reason: verdict.Unreadable, when: is(dmabufWay, tristate.Unknown),
		text:     say("the kernel's symbols or the type of the GPU driver's kernel modules cannot be read"),
		fix:      say("run it where /proc/kallsyms and /proc/driver/nvidia are visible: on the host, or in a container whose runtime hides neither"),
		evidence: unreadNeeds,
	},
}, lackRows())}

// lacks are what DMA-BUF needs and this machine may lack. Their order does not
// matter: the verdict gives the order of the needs.
var lacks = []struct {
	need verdict.Need
	row
}{
	{verdict.GPUDriverLoaded, row{code: Code(verdict.GPUPassthrough), when: passthrough, text: noDriver, fix: seeDriver, evidence: sawGPUDriver}},
	{verdict.GPUDriverLoaded, row{code: Code(verdict.GPUDriverNotLoaded), text: noDriver, fix: seeDriver, evidence: sawGPUDriver}},
	{verdict.GPUBound, row{code: Code(verdict.GPUPassthrough), when: passthrough, text: notBound, fix: seeDriver, evidence: gpuDrivers}},
	{verdict.GPUBound, row{code: Code(verdict.GPUDriverNotLoaded), text: notBound, fix: seeDriver, evidence: gpuDrivers}},
	{verdict.TuringGPU, row{
		code: "PreTuring", text: say("no eligible GPU that the driver drives is of the Turing generation or newer"),
		fix: say("use %s: DMA-BUF needs Turing or newer", peermemName), evidence: gpuIDs,
	}},
	{verdict.OpenModules, row{
		code: "ClosedDriver", text: say("the GPU driver has proprietary kernel modules"),
		fix: say("install the open kernel modules (GPU Operator: kernelModuleType open), for Turing or newer"), evidence: sawModuleType,
	}},
	{verdict.OwnMemory, noPlace},
	{verdict.PCIeMapping, unmapped},
	{verdict.KernelOption, row{
		code: "KernelOptionMissing", text: say("the kernel was built without CONFIG_%s, which %s needs to export DMA-BUF to NICs", missingOption, gpuDriverName),
		fix: say("use a kernel that has CONFIG_%s=y", missingOption), evidence: sawOptions,
	}},
	{verdict.NICDevice, row{
		code: "NoMLX5Device", when: func(f *Facts) bool { return dmabufSymbol(f) != "" && f.RDMADevice() == tristate.False },
		text: say("no eligible NIC has an RDMA device whose driver registers DMA-BUF"), fix: say("see rdma-device"), evidence: nicDrivers,
	}},
	{verdict.NICDevice, row{
		code: "NoMLX5Device", text: say("no eligible NIC has an RDMA device whose driver registers DMA-BUF"),
		fix: say("DMA-BUF needs %s", newerNIC), evidence: nicDrivers,
	}},
	{verdict.DevicesAccept, row{
		code: "DMABufRefused", text: say("the RDMA devices cannot register DMA-BUF"),
		fix: say("%s, with CONFIG_INFINIBAND_ON_DEMAND_PAGING", newerStack),
	}},
	{verdict.CoreSymbol, row{
		code: "NoDMABuf", text: say("the RDMA core has no DMA-BUF (" + kmod.UmemDMABuf + ")"),
		fix: newerStack, evidence: sawCoreSymbol,
	}},
	{verdict.DriverSymbol, row{
		code: "NoDMABuf", text: say("%s has no DMA-BUF (%s)", rdmaModule, dmabufSymbol),
		fix: say("%s, with %s loaded", newerStack, rdmaModule), evidence: sawDriverSymbol,
	}},
}

var (
	noDriver  = say("no GPU driver is loaded")
	notBound  = say("no eligible GPU is bound to the %s driver", vendor)
	seeDriver = say("see gpu-driver")
)

// lackRows makes two rows of each: one that holds where its need is the first that
// is not met, and one before it where peermem makes DMA-BUF unnecessary.
func lackRows() []row {
	var rows []row
	for _, l := range lacks {
		first := all(func(f *Facts) bool { return firstOf(f, tristate.False) == l.need }, l.when)
		r := l.row
		r.status, r.when = Fail, first
		served := row{status: OK, when: all(first, is(peermemWay, tristate.True)), which: l.which, text: say("%s; not needed: peermem is available", l.text)}
		rows = append(rows, served, r)
	}
	return rows
}

// gpuSide names what exports DMA-BUF.
func gpuSide(f *Facts) string {
	if f.GPU.OpenFrom != 0 {
		return "the GPU driver's open kernel modules"
	}
	return gpuDriverName(f)
}

func exports(f *Facts) string {
	if f.GPU.OpenFrom != 0 {
		return "has open kernel modules"
	}
	return "exports DMA-BUF"
}

// withoutDMABufInPlugin lists the NICs on which some releases of the NCCL plugin do not use
// DMA-BUF.
func withoutDMABufInPlugin(f *Facts) subjects {
	off := func(fn *pci.Function) bool {
		return eligibleNIC(fn) && fn.NIC == f.NIC && fn.NIC.DMABufOff.Has(fn.Device)
	}
	return subjects{f.of(off, address), f.of(off, sawID)}
}

// missingOption returns the first option that the GPU driver needs and the kernel lacks.
func missingOption(f *Facts) string {
	for _, o := range f.GPU.KernelOptions {
		if f.Kmod.KernelOptions[o.Name] == tristate.False {
			return o.Name
		}
	}
	return ""
}

// sawOptions is evidence of the kernel's configuration: the file that was read, which is
// the last one that was tried.
func sawOptions(f *Facts) []string {
	files := f.Kmod.Files[kmod.FactKernelOptions]
	if len(files) == 0 {
		return nil
	}
	option := ""
	if missing := missingOption(f); missing != "" {
		option = "no CONFIG_" + missing
	}
	return []string{saw(files[len(files)-1], option)}
}

// firstOf is the first need of DMA-BUF in a state; "" for none.
func firstOf(f *Facts, state tristate.State) verdict.Need {
	for _, p := range f.DMABufNeeds() {
		if p.Met == state {
			return p.Need
		}
	}
	return ""
}

// unreadNeeds is the evidence of the needs that are unknown.
func unreadNeeds(f *Facts) []string {
	var seen []string
	for _, p := range f.DMABufNeeds() {
		for _, l := range lacks {
			if p.Met == tristate.Unknown && l.need == p.Need {
				seen = append(seen, l.evidence.of(f)...)
			}
		}
	}
	return seen
}

func sawGPUDriver(f *Facts) []string {
	files := f.Kmod.Files[kmod.FactDriver]
	if len(files) == 0 {
		return nil
	}
	return []string{sawFile(files[len(files)-1], gpuDriverState(f).Loaded)} // looked for where there is no version
}

func sawModuleType(f *Facts) []string {
	return f.saw(kmod.FactDriver, "", strings.TrimSpace(gpuDriverState(f).Version+" "+moduleType(f)))
}

func sawCoreSymbol(f *Facts) []string   { return f.sawSymbol(kmod.UmemDMABuf) }
func sawDriverSymbol(f *Facts) []string { return f.sawSymbol(dmabufSymbol(f)) }

func asked(f *Facts) string {
	if len(f.Asked) == 0 {
		return ""
	}
	return "; asked: " + devicesSaid(f)
}

// devicesSaid lists what devices said when they were asked.
func devicesSaid(f *Facts) string {
	var names [3]string
	for _, a := range f.Asked {
		names[a.DMABuf] += a.Device + " "
	}
	var parts []string
	for _, answer := range [...]tristate.State{tristate.True, tristate.False, tristate.Unknown} {
		if list := names[answer]; list != "" {
			parts = append(parts, list+choose(answer, "can", "cannot", "gave no clear answer"))
		}
	}
	return strings.Join(parts, ", ")
}

// sawAnswers is evidence of them.
func sawAnswers(f *Facts) []string {
	if len(f.Asked) == 0 {
		return nil
	}
	return []string{saw(verbs.Nodes+"/uverbs*", devicesSaid(f))}
}

var rdmaStack = check{name: "rdma-stack", facts: []kmod.Fact{kmod.FactStack, kmod.FactNICVersion, kmod.FactSymbols}, rows: []row{
	{
		status: Warn, code: "LegacyPeerDirect", when: all(legacyStack, not(legacyConfigured)),
		text:     say("%s%s, which nvidia-peermem of a driver before 560 uses only with peerdirect_support=1", stackOrigin, peerDirect),
		fix:      say("options nvidia-peermem peerdirect_support=1 in /etc/modprobe.d/nvidia-peermem.conf (GPU Operator: the line peerdirect_support=1 alone, key nvidia-peermem.conf of the ConfigMap that driver.kernelModuleConfig.name names), then reload the module; better, move to MOFED 5.1 or newer"),
		evidence: sawLegacy,
	},
	{status: OK, when: all(legacyStack, originKnown), text: say("%s%s, as the peer memory module is set to use it", stackOrigin, peerDirect)},
	{status: OK, when: originKnown, text: say("%s%s", stackOrigin, peerDirect)},
	{status: OK, when: noModuleLoaded, text: say("no RDMA driver is loaded for the NICs%s", peerDirect)},
	{status: Undecidable, text: say("the origin of the RDMA drivers cannot be read%s", peerDirect)},
}}

func originKnown(f *Facts) bool {
	if f.NIC.MOFED {
		return f.Kmod.MOFED.Origin != kmod.OriginUnknown
	}
	_, known := f.advised().NICVersions[nicFamily(f)]
	return known && f.RDMADevice() == tristate.True
}

// noModuleLoaded: the NICs, for which MOFED has no drivers, have no RDMA device.
func noModuleLoaded(f *Facts) bool {
	return !f.NIC.MOFED && f.Kmod.Advice != nil && f.RDMADevice() == tristate.False
}

func stackOrigin(f *Facts) string {
	if !f.NIC.MOFED {
		if version := nicDriverRelease(f); version != "" {
			return rdmaModule(f) + " " + version + " from the NIC's vendor"
		}
		if peermemOf(f).File != "" || peermemOf(f).Registered == tristate.True && !driverIsClient(f) { // the kernel's own driver supports no peer memory
			return rdmaModule(f) + " from the NIC's vendor"
		}
		return "the kernel's own " + rdmaModule(f)
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

func peerDirect(f *Facts) string {
	if level := f.PeerDirect(); level != "" {
		return ", PeerDirect " + string(level)
	}
	return ""
}

func legacyStack(f *Facts) bool {
	return loadableClient(f) && f.PeerDirect() == verdict.PeerDirectLegacy
}

// legacyConfigured: on a MOFED before 5.1 nvidia-peermem works with
// peerdirect_support=1 only, unless the driver is 560 or newer, whose persistent API
// works without it.
func legacyConfigured(f *Facts) bool {
	p := &f.advised().Peermem
	persistent := p.PersistentAPI == "1" || p.PersistentAPI == "" && f.persistentByDefault()
	return persistent || p.LegacyAPI == "1" || forerunner(f, peermemClient(f))
}

func sawLegacy(f *Facts) []string {
	return slices.Concat(
		f.saw(kmod.FactStack, "/version", f.Kmod.MOFED.Version),
		f.saw(kmod.FactPeermemModule, "/peerdirect_support", f.advised().Peermem.LegacyAPI),
		sawPeermem(f), f.saw(kmod.FactDriver, "", gpuDriverState(f).Version))
}
