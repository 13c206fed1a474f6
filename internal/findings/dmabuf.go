package findings

import (
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/verbs"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

var dmabuf = check{
	Name: "dmabuf", Facts: []kmod.Fact{kmod.FactDriver, kmod.FactKernelOptions, kmod.FactSymbols},
	Codes: []finding.Code{
		"EFADMABufOff", finding.Unreadable, "RDMANamespaces", "ConfidentialGuest", "VirtualGPU", "GPUPassthrough", "GPUDriverNotLoaded",
		"PreTuring", "ClosedDriver", "DriverRefusesPlace", "KernelOptionMissing", "NoMLX5Device", "DMABufRefused", "NoDMABuf",
	},
	Judge: func(f *judged) finding.Said {
		said := judgeDMABuf(f)
		if said.Found() && len(f.Asked) > 0 {
			answers := devicesSaid(f)
			said = said.And("; asked: " + answers).SawFirst(finding.Saw(verbs.Nodes+"/uverbs*", answers))
		}
		return said
	},
}

func judgeDMABuf(f *judged) finding.Said {
	off := withoutDMABufInPlugin(f)
	side, exports := f.GPU.Driver, "exports DMA-BUF"
	if f.GPU.OpenFrom != 0 {
		side, exports = "the GPU driver's open kernel modules", "has open kernel modules"
	}
	switch has := f.Verdict.DMABuf; {
	case has == tristate.Unknown:
		return unknownDMABuf(f)
	case has == tristate.False:
		return noDMABuf(f)
	case f.Verdict.Peermem == tristate.False && off.Any():
		return finding.Warn("EFADMABufOff", "DMA-BUF is available and the only way here, but aws-ofi-nccl 1.13.2 "+
			"to 1.19.1 does not use it on this generation of EFA").
			Of(off).
			Do("use aws-ofi-nccl 1.19.2 or newer, also in containers", "or install "+f.NIC.Help.PeerStack+", then "+
				"`modprobe "+f.NIC.PeerMemory.Bridge+"`")
	case f.Verdict.DevicesSay == tristate.True:
		return finding.OK("the GPU driver %s, and %s can register DMA-BUF (only a transfer proves more)",
			exports, f.NIC.Name)
	}
	return finding.OK("%s and %s show everything that DMA-BUF needs (inferred; only a transfer proves it)",
		side, f.NIC.Name)
}

// unknownDMABuf says what would tell, of the first need that is unknown.
func unknownDMABuf(f *judged) finding.Said {
	need := firstOf(f, tristate.Unknown)
	var said finding.Said
	switch need {
	case verdict.GPUBound:
		said = perhapsExcluded(f)
	case verdict.NICDevice:
		if f.Verdict.RDMADevice == tristate.Unknown {
			said = hiddenDevices(f)
		}
	case verdict.OwnMemory:
		said = perhapsWithheld(f)
	case verdict.PCIeMapping:
		said = perhapsUnmapped(f)
	case verdict.PeerToPeer:
		said = finding.Unread("whether the kernel lets %s export DMA-BUF to NICs below other root ports depends "+
			"on the CPU, and nothing here says so", f.GPU.Driver).
			Saw(finding.Saw(platform.CPUFile, "")).
			Do("put a NIC below the GPU's PCIe switch; peermem does not depend on it")
	case verdict.KernelOption:
		said = finding.Unread("whether %s exports DMA-BUF to NICs depends on the kernel's configuration, which "+
			"cannot be read in full", f.GPU.Driver).
			Saw(unreadNeeds(f)...).
			Do("mount the host's /boot, which has config-RELEASE, or enable CONFIG_IKCONFIG_PROC, which provides " +
				"/proc/config.gz")
	default:
	}
	if said.Found() {
		return said
	}
	return finding.Unread("the kernel's symbols or the type of the GPU driver's kernel modules cannot be read").
		Saw(unreadNeeds(f)...).
		Do("run it where /proc/kallsyms and /proc/driver/nvidia are visible: on the host, or in a container whose " +
			"runtime hides neither")
}

// noDMABuf says what is lacking first, which does not matter where peermem is there.
func noDMABuf(f *judged) finding.Said {
	lack := lackOfDMABuf(f, firstOf(f, tristate.False))
	if lack.Found() && f.Verdict.Peermem == tristate.True {
		return finding.OK("%s; not needed: peermem is available", lack.Detail).Of(lack.About)
	}
	return lack
}

const seeDriver = "see gpu-driver"

// lackOfDMABuf says that a need is not met. The verdict gives the order of the needs.
func lackOfDMABuf(f *judged, need verdict.Need) finding.Said {
	seen := sawNeed(f, need)
	switch need {
	case verdict.GPUDriverLoaded:
		return finding.Fail(withoutDriver(f), "no GPU driver is loaded").Saw(seen...).Do(seeDriver)
	case verdict.GPUBound:
		if gpus := f.excluded(tristate.True); gpus.Any() && f.Verdict.AllPassthrough != tristate.True {
			return finding.Fail("GPUDriverNotLoaded", "%s", excludes(f, gpus)).Of(gpus).Do(seeDriver)
		}
		return finding.Fail(withoutDriver(f), "%s", notBound(f)).Saw(seen...).Do(seeDriver)
	case verdict.TuringGPU:
		return finding.Fail("PreTuring", "no eligible GPU that the driver drives is of the Turing generation or "+
			"newer").
			Saw(seen...).
			Do("use " + peermemName(f) + ": DMA-BUF needs Turing or newer")
	case verdict.OpenModules:
		return finding.Fail("ClosedDriver", "the GPU driver has proprietary kernel modules").Saw(seen...).
			Do("install the open kernel modules (GPU Operator: kernelModuleType open), for Turing or newer")
	case verdict.OwnMemory:
		return noPlace(f)
	case verdict.PCIeMapping:
		return unmapped(f)
	case verdict.KernelOption:
		option := "CONFIG_" + missingOption(f)
		return finding.Fail("KernelOptionMissing", "the kernel was built without %s, which %s needs to export "+
			"DMA-BUF to NICs", option, f.GPU.Driver).
			Saw(seen...).Do("use a kernel that has " + option + "=y")
	case verdict.NICDevice:
		lack := finding.Fail("NoMLX5Device", "no eligible NIC has an RDMA device whose driver registers DMA-BUF").
			Saw(seen...)
		if f.NIC.DMABuf != "" && f.Verdict.RDMADevice == tristate.False {
			return lack.Do("see rdma-device")
		}
		return lack.Do("DMA-BUF needs " + f.NIC.Help.Product)
	case verdict.DevicesAccept:
		return finding.Fail("DMABufRefused", "the RDMA devices cannot register DMA-BUF").
			Do(newerStack(f) + ", with CONFIG_INFINIBAND_ON_DEMAND_PAGING")
	case verdict.CoreSymbol:
		return finding.Fail("NoDMABuf", "the RDMA core has no DMA-BUF ("+kmod.UmemDMABuf+")").Saw(seen...).
			Do(newerStack(f))
	case verdict.DriverSymbol:
		return finding.Fail("NoDMABuf", "%s has no DMA-BUF (%s)", f.NIC.Module, f.NIC.DMABuf).Saw(seen...).
			Do(newerStack(f) + ", with " + f.NIC.Module + " loaded")
	default:
		return finding.Said{}
	}
}

// withoutDriver is the code of GPUs that their family's driver does not drive.
func withoutDriver(f *judged) finding.Code {
	if f.Verdict.AllPassthrough == tristate.True {
		return "GPUPassthrough"
	}
	return "GPUDriverNotLoaded"
}

// sawNeed is evidence of a need of DMA-BUF; nil where no file shows it.
func sawNeed(f *judged, need verdict.Need) []string {
	if saw := sawNeeds[need]; saw != nil {
		return saw(f)
	}
	return nil
}

var sawNeeds = map[verdict.Need]func(*judged) []string{
	verdict.GPUDriverLoaded: sawGPUDriver,
	verdict.GPUBound:        gpuDrivers,
	verdict.TuringGPU:       gpuIDs,
	verdict.OpenModules:     sawModuleType,
	verdict.OwnMemory:       topoOverride,
	verdict.PCIeMapping:     topoOverride,
	verdict.KernelOption:    sawOptions,
	verdict.NICDevice:       nicDrivers,
	verdict.CoreSymbol:      func(f *judged) []string { return f.sawSymbol(kmod.UmemDMABuf) },
	verdict.DriverSymbol:    func(f *judged) []string { return f.sawSymbol(f.NIC.DMABuf) },
}

// withoutDMABufInPlugin lists the NICs on which some releases of their NCCL plugin do not use DMA-BUF.
func withoutDMABufInPlugin(f *judged) finding.Subjects {
	off := func(fn *pci.Function) bool {
		return eligibleNIC(fn) && fn.NIC == f.NIC && fn.NIC.DMABufOff.Has(fn.Device)
	}
	return finding.Subjects{Names: f.of(off, f.named), Evidence: f.of(off, sawID)}
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

// sawOptions is evidence of the kernel's configuration: of the last file that was tried.
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
	for _, p := range f.Verdict.Needs {
		if p.Met == state {
			return p.Need
		}
	}
	return ""
}

// unreadNeeds is the evidence of the needs that are unknown.
func unreadNeeds(f *judged) []string {
	var seen []string
	for _, p := range f.Verdict.Needs {
		if p.Met == tristate.Unknown {
			seen = append(seen, sawNeed(f, p.Need)...)
		}
	}
	return seen
}

func sawModuleType(f *judged) []string {
	return f.saw(kmod.FactDriver, strings.TrimSpace(gpuDriverState(f).Version+" "+moduleType(f)))
}

func sawGPUDriver(f *judged) []string {
	files := f.Kmod.Files[kmod.FactDriver]
	if len(files) == 0 {
		return nil
	}
	return []string{finding.SawFile(files[len(files)-1], gpuDriverState(f).Loaded)} // looked for where there is no version
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

// sawLegacyAPI is evidence of the loaded module's parameter for PeerDirect's old interface.
func sawLegacyAPI(f *judged) []string {
	if clientState(f) != kmod.Live {
		return nil
	}
	return []string{finding.Saw(kmod.AttributeFile(firstModule(f), "parameters/peerdirect_support"),
		f.advised().Peermem.LegacyAPI)}
}

var rdmaStack = check{
	Name: "rdma-stack", Facts: []kmod.Fact{kmod.FactStack, kmod.FactNICVersion, kmod.FactSymbols},
	Codes: []finding.Code{"LegacyPeerDirect", finding.Unreadable},
	Judge: judgeRDMAStack,
}

func judgeRDMAStack(f *judged) finding.Said {
	level, stack := peerDirect(f), stackOrigin(f)+peerDirect(f)
	switch legacy := legacyStack(f); {
	case legacy && !legacyConfigured(f):
		return finding.Warn("LegacyPeerDirect", "%s, which nvidia-peermem of a driver before 560 uses only with "+
			"peerdirect_support=1", stack).
			Saw(finding.Saw(f.Kmod.MOFED.File, f.Kmod.MOFED.Version)).Saw(sawLegacyAPI(f)...).Saw(sawPeermem(f)...).
			Saw(f.saw(kmod.FactDriver, gpuDriverState(f).Version)...).
			Do("`options nvidia-peermem peerdirect_support=1` in /etc/modprobe.d/nvidia-peermem.conf (GPU Operator: "+
				"the line peerdirect_support=1 alone, "+
				"key nvidia-peermem.conf of the ConfigMap that driver.kernelModuleConfig.name names), then reload the "+
				"module",
				"better, move to MOFED 5.1 or newer")
	case legacy && originKnown(f):
		return finding.OK("%s, as the peer memory module is set to use it", stack)
	case originKnown(f):
		return finding.OK("%s", stack)
	case !f.NIC.MOFED && f.Kmod.Advice != nil && f.Verdict.RDMADevice == tristate.False:
		return finding.OK("no RDMA driver is loaded for the NICs%s", level)
	}
	return finding.Unknown("the origin of the RDMA drivers cannot be read%s", level)
}

func originKnown(f *judged) bool {
	if f.NIC.MOFED {
		return f.Kmod.MOFED.Origin != kmod.OriginUnknown
	}
	_, known := f.advised().NICVersions[f.NIC.Name]
	return known && f.Verdict.RDMADevice == tristate.True
}

func stackOrigin(f *judged) string {
	if !f.NIC.MOFED {
		if version := f.advised().NICVersions[f.NIC.Name]; version != "" {
			return f.NIC.Module + " " + version + " from the NIC's vendor"
		}
		if f.Verdict.Client.File != "" || f.Verdict.Client.Registered == tristate.True && !driverIsClient(f) { // the kernel's own driver supports no peer memory
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

// legacyConfigured: on a MOFED before 5.1 nvidia-peermem works with peerdirect_support=1
// only, or with the persistent API of driver 560 or newer.
func legacyConfigured(f *judged) bool {
	p := &f.advised().Peermem
	persistent := p.PersistentAPI == "1" || p.PersistentAPI == "" && f.persistentByDefault()
	return persistent || p.LegacyAPI == "1" || forerunner(f, f.Verdict.Client.By)
}
