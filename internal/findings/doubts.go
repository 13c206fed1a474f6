package findings

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// What follows is about machines where everything is in place, and where others report that
// transfers fail all the same (verdict.Doubt).

// confidentialGuest goes into the checks of both ways to GPU memory.
func confidentialGuest(f *judged) finding.Said {
	if f.Platform.Confidential == "" {
		return finding.Said{}
	}
	return finding.Unknown("this is a confidential guest, in which the GPU driver may refuse its memory to "+
		"NICs, and no file tells whether it does").
		Because(verdict.ConfidentialGuest).Saw(f.Platform.Confidential).
		Do("prove it by a transfer from GPU memory between two such machines (`ib_write_bw --use_cuda=0`)",
			"or use a virtual machine that is not confidential")
}

// smmuPassthrough comes first in the check iommu.
func smmuPassthrough(f *judged) finding.Said {
	gpus := identityGPUs(f)
	const off = "boot with iommu.passthrough=0, in place of iommu.passthrough=1"
	switch f.Verdict.Identity.Doubt {
	case verdict.Unproven:
		return finding.Unknown("%s", identityText(f, gpus)).Because(verdict.SMMUPassthrough).Of(gpus).
			Do(off, "or use Linux 6.11 or newer", orReadACS(f))
	case verdict.Suspect:
		return finding.Warn("SMMUPassthrough", "%s", identityText(f, gpus)).Of(gpus).
			Do("see whether a CUDA program runs (nvidia-smi proves nothing)", "if it does not, "+off,
				"or use Linux 6.11 or newer")
	default:
		return finding.Said{}
	}
}

// identityGPUs lists the GPUs of verdict.Identity.
func identityGPUs(f *judged) (gpus finding.Subjects) {
	for _, gpu := range f.Verdict.Identity.GPUs {
		gpus.Add(gpu.Address.String(), finding.Saw(platform.GroupFile(gpu.IOMMUGroup),
			f.Platform.IOMMU.Types[gpu.IOMMUGroup]))
		for _, bridge := range gpu.Bridges {
			gpus.Evidence = append(gpus.Evidence, f.sawACS(bridge))
		}
	}
	gpus.Evidence = append(gpus.Evidence, finding.Saw(platform.ReleaseFile, f.Platform.Kernel))
	return gpus
}

func (f *judged) sawACS(bridge pci.Address) string {
	value := ""
	if acs := f.ACS[bridge]; acs != nil {
		value = fmt.Sprintf("ACSCtl %04x", acs.Control)
	}
	return finding.Saw(bridge.File(pci.ConfigFile), value)
}

// identityText says what is known of the state of verdict.Identity.
func identityText(f *judged, gpus finding.Subjects) string {
	acs := "ACS is on"
	if orReadACS(f) != "" {
		acs = "whether ACS is on cannot be read"
	}
	text := "the Arm SMMU passes the addresses of these GPUs through, and " + acs + ": "
	switch kernel := f.Platform.Kernel; {
	case kernel == "":
		text += "before Linux 6.11 no program then gets a CUDA context, and which kernel this is cannot be read"
	case strings.Contains(kernel, "-nvidia"):
		text += "before Linux 6.11 no program then gets a CUDA context, unless the kernel has NVIDIA's patch, as " +
			kernel + " may"
	default:
		text += "with ACS on, no program gets a CUDA context on a kernel before 6.11, as " + kernel + " is"
	}
	return text + ": " + gpus.String()
}

// orReadACS is advice where it is not known that ACS is on; "" where it is.
func orReadACS(f *judged) string {
	redirects := func(bridge pci.Address) bool { return f.ACS[bridge] != nil && f.ACS[bridge].Redirect() }
	above := func(gpu *pci.Function) bool { return slices.ContainsFunc(gpu.Bridges, redirects) }
	if slices.ContainsFunc(f.Verdict.Identity.GPUs, above) {
		return ""
	}
	return "or run this program as root (CAP_SYS_ADMIN), which can read whether ACS is on"
}

// translationNeeded: GPUs share memory with an Arm CPU, and the kernel is older than 6.11, or
// the platform needs ACS redirect. Passing addresses through is no advice there.
func translationNeeded(f *judged) bool {
	isCoherent := func(fn *pci.Function) bool { return fn.GPUEligible() && fn.Coherent() }
	return f.Platform.CPU.Arch == "arm64" && len(f.functions(isCoherent)) > 0 &&
		(f.BeforePASID() != tristate.False || redirectNeeded(f).Any())
}

// emulatedSwitch comes first in the check acs.
func emulatedSwitch(f *judged) finding.Said {
	pairs := belowEmulated(f)
	askForATS := "ask the owner of the hypervisor to enable ATS of the NICs" + enableATS(f) + " and ACS Direct " +
		"Translated P2P on the real switch ports above GPU and NIC"
	if f.Verdict.BelowEmulated.Doubt == verdict.Unproven {
		return finding.Unknown("in this virtual machine a GPU and a NIC are below a switch that the hypervisor "+
			"emulates, and ATS of the NIC is off: "+
			"such pairs are known to transfer garbage: %s", pairs).Because(verdict.EmulatedSwitch).Of(pairs).Do(askForATS, otherSwitch, provePair)
	}
	return finding.Warn("EmulatedSwitch", "in this virtual machine a GPU and a NIC are below a switch that "+
		"the hypervisor emulates, "+
		"and whether ATS of the NIC is on cannot be read; where it is off, such pairs are known to transfer "+
		"garbage: %s", pairs).OfAny(pairs).
		Do("run this program as root (CAP_SYS_ADMIN), which can read it", askForATS, provePair)
}

const (
	otherSwitch = "until then, give each GPU a NIC below another switch (UCX_NET_DEVICES, NCCL_IB_HCA)"
	provePair   = "prove it by transfers that compare the data (nccl-tests: `all_reduce_perf -c 1`, between " +
		"machines)"
)

// belowEmulated lists the pairs of verdict.BelowEmulated.
func belowEmulated(f *judged) (pairs finding.Subjects) {
	for _, of := range f.Verdict.BelowEmulated.Pairs {
		gpu, nic := f.Matrix.GPUs[of.GPU].Function, &f.Matrix.NICs[of.NIC]
		said := finding.Choose(f.ATS[nic.Function.Address], "ATS on", "ATS off", "")
		pairs.Add(f.named(gpu)+" and "+nicName(nic), sawPlace(gpu), sawPlace(nic.Function),
			finding.Saw(nic.Function.Address.File(pci.ConfigFile), said))
	}
	return pairs
}

// emulatedBridges names the emulated bridges between GPUs and their nearest NICs.
func emulatedBridges(f *judged) (bridges finding.Subjects) {
	for _, gpu := range f.Matrix.GPUs {
		for _, bridge := range gpu.Between() {
			if gpu.Counts() && f.Emulated(bridge) && !slices.Contains(bridges.Names, bridge.String()) {
				bridges.Add(bridge.String(), sawID(f.PCI.Find(bridge)))
			}
		}
	}
	return bridges
}
