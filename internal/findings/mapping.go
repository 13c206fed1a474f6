package findings

import (
	"fmt"
	"slices"

	"gdr-features/internal/finding"
	"gdr-features/internal/version"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// perhapsExcluded is about GPUs that the driver is bound to and may not drive.
func perhapsExcluded(f *judged) finding.Said {
	gpus := f.excluded(tristate.Unknown)
	return finding.Unread("whether the %s driver excludes these GPUs cannot be read: %s", f.GPU.Help.Vendor, gpus).
		OfAny(gpus).Do(seeProblems)
}

// excluded lists the GPUs bound to the family's driver that it excludes, or may exclude.
func (f *judged) excluded(is tristate.State) (gpus finding.Subjects) {
	for _, fn := range f.functions(eligibleGPU) {
		if fn.GPU == f.GPU && fn.Driver == fn.GPU.Driver && f.Platform.GPUs.Excluded(fn.Address) == is {
			gpus.Add(f.named(fn), finding.Saw(platform.InformationFile(fn.GPU, fn.Address), finding.Choose(is,
				"GPU Excluded: Yes", "", "")))
		}
	}
	return gpus
}

// virtualGPU is about the virtual GPUs of the judged family.
func virtualGPU(f *judged) finding.Said {
	var gpus finding.Subjects
	for _, fn := range f.functions(eligibleGPU) {
		if fn.GPU == f.GPU && f.VirtualGPU(fn) {
			name := f.Platform.GPUs.Said[fn.Address].Model
			gpus.Add(fn.Address.String()+" "+name, finding.Saw(platform.InformationFile(fn.GPU, fn.Address),
				"Model: "+name))
		}
	}
	return finding.Unread("these GPUs are virtual ones, of which NVIDIA supports only some for GPUDirect RDMA, "+
		"and no file says whether these are among them: %s", gpus).
		As("VirtualGPU").OfAny(gpus).
		Do("pass a whole GPU through to this virtual machine", "or measure with `ib_write_bw --use_cuda`")
}

// noPlace: a parameter forbids every mapping.
func noPlace(f *judged) finding.Said {
	if f.Verdict.OwnMemory != tristate.False {
		return finding.Said{}
	}
	return finding.Fail("DriverRefusesPlace", "the GPU driver gives its memory to no NIC: its parameter "+
		""+kmod.TopoOverride+" is 2").
		Saw(topoOverride(f)...).
		Do("remove NVreg_" + kmod.TopoOverride + "=2 from the driver's parameters (GPU Operator: " +
			"driver.kernelModuleConfig) and load the driver again")
}

func perhapsNoPlace(f *judged) finding.Said {
	if f.TopoCheck() != verdict.TopoCheckUnread {
		return finding.Said{}
	}
	return finding.Unread("whether the GPU driver gives its memory to NICs depends on its parameter " +
		"" + kmod.TopoOverride + ", which cannot be read").
		Saw(f.saw(kmod.FactParams, "")...).Do(seeProblems)
}

// perhapsWithheld says why it is not known whether the driver gives GPU memory to NICs at all.
func perhapsWithheld(f *judged) finding.Said {
	return finding.First(f, confidentialGuest, virtualGPU, perhapsNoPlace)
}

func unmapped(f *judged) finding.Said {
	pairs := unmappedPairs(f)
	return finding.Fail("DriverRefusesPlace", "GPU driver %s does not map the memory of these GPUs over PCIe "+
		"for %s NICs at their place: %s",
		gpuDriverVersion(f), f.NIC.Name, pairs).
		OfAny(pairs).Saw(topoOverride(f)...).Do(allowMapping(f)...)
}

func perhapsUnmapped(f *judged) finding.Said {
	pairs := unmappedPairs(f)
	return finding.Unread("whether the GPU driver maps GPU memory over PCIe for %s NICs depends on its "+
		"version, its parameters and the IOMMU groups, "+
		"not all of which can be read: %s", f.NIC.Name, pairs).OfAny(pairs).
		Do("run it where /proc/driver/nvidia is visible: on the host, or in a container whose runtime does not " +
			"hide it")
}

// unmappedPairs lists the GPUs with no NIC that is proven to have a mapping, and the first NIC.
func unmappedPairs(f *judged) (pairs finding.Subjects) {
	for i, gpu := range f.Matrix.GPUs {
		if !gpu.Counts() || gpu.GPU != f.GPU || !gpu.Coherent() {
			continue
		}
		var nics []*pci.Function
		for _, of := range f.Matrix.PairsOf(i) {
			if n := &f.Matrix.NICs[of.NIC]; n.Counts() && n.RDMA != nil && n.Function.NIC == f.NIC {
				nics = append(nics, n.Function)
			}
		}
		mapped := func(n *pci.Function) bool { return f.MapsOverPCIe(gpu.Function, n) == tristate.True }
		if len(nics) == 0 || slices.ContainsFunc(nics, mapped) {
			continue
		}
		pairs.Add(fmt.Sprintf("%s (%s) and %s (%s)", f.named(gpu.Function), groupName(gpu.Function), f.named(nics[0]),
			groupName(nics[0])),
			sawGroup(gpu.Function), sawGroup(nics[0]), sawPlace(gpu.Function), sawPlace(nics[0]))
	}
	return pairs
}

func groupName(fn *pci.Function) string {
	switch fn.IOMMUGroup {
	case pci.None:
		return "no IOMMU group"
	case pci.Unread:
		return "IOMMU group unknown"
	}
	return fmt.Sprintf("IOMMU group %d", fn.IOMMUGroup)
}

// olderDriver is what allows the mapping with a driver that has no parameter for it.
const olderDriver = "or use GPU driver R580 with NVreg_" + kmod.TopoOverride + "=1"

// allowMapping says what makes the loaded driver map the memory (verdict.DirectPCI).
func allowMapping(f *judged) []string {
	const together = "put GPU and NIC into one IOMMU group"
	if overridable(f) && version.Major(gpuDriverState(f).Version) < 595 {
		return finding.Steps("set options nvidia NVreg_"+kmod.TopoOverride+"=1 in /etc/modprobe.d (GPU Operator: "+
			"driver.kernelModuleConfig) and load the driver again, if NVIDIA or the machine's vendor supports it there",
			"or "+together)
	}
	if f.TopoCheck() == verdict.TopoCheckNotListed {
		return finding.Steps(together, "or put a NIC that has no IOMMU group below one PCIe bridge with the GPU",
			olderDriver)
	}
	return finding.Steps(together, olderDriver)
}

// overridable: the loaded driver may have the parameter that makes it try every pair. Where its
// parameters were not read, releases before R595 have it.
func overridable(f *judged) bool {
	switch f.TopoCheck() {
	case verdict.TopoCheckNotListed:
		return false
	case verdict.TopoCheckUnread, verdict.TopoCheckNotRecorded:
		return version.Major(gpuDriverState(f).Version) < 595
	}
	return true
}

// withoutDirectNIC is advice for a GPU that shares memory with its CPU beside a data-direct
// function. UCX then asks for a mapping over PCIe whatever NIC it uses, and the driver refuses it
// for a NIC that is elsewhere (ai-dynamo/nixl#1768). Without that function UCX reaches the GPU over
// C2C, as NCCL does with such a NIC: that is why the node is ready all the same.
func withoutDirectNIC(f *judged) string {
	if slices.ContainsFunc(f.Matrix.GPUs, func(gpu topology.GPU) bool { return gpu.Counts() && gpu.Coherent() && len(f.dataDirectBeside(gpu)) > 0 }) {
		return "UCX and NIXL, which then fail with error 524, need UCX_IB_DIRECT_NIC=n for the farther NIC (GDAKI " +
			"ignores it)"
	}
	return ""
}

// dataDirectBeside lists data-direct functions that share more than a root port with a GPU.
func (f *judged) dataDirectBeside(gpu topology.GPU) []*pci.Function {
	return f.functions(func(fn *pci.Function) bool { return fn.DataDirectOf != nil && fn.CommonBridges(gpu.Function) > 1 })
}
