package findings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// otherGPUs says, where GPUs are of two families, which one the findings are about.
var otherGPUs = check{
	Name: "other-gpus", Sources: []string{pci.Devices}, Codes: []finding.Code{"MixedGPUs"}, Judge: judgeOtherGPUs,
}

func judgeOtherGPUs(f *judged) finding.Said {
	others := f.Verdict.Others
	if len(others) == 0 {
		return finding.Said{}
	}
	about := fmt.Sprintf("the findings are about %s GPUs with %s NICs; ", f.GPU.Name, f.NIC.Name)
	if notReady := notReadyGPUs(f); notReady.Any() {
		return finding.Warn("MixedGPUs", "%s%s", about, notReady).Of(notReady).
			Do("`gdr-features explain REASON` says what to do for these GPUs")
	}
	names := finding.Map(others, func(o verdict.Other) string { return o.GPU.Name })
	return finding.OK("%s%s GPUs are ready too", about, strings.Join(names, " and "))
}

// notReadyGPUs lists the other families of GPUs that are not ready.
func notReadyGPUs(f *judged) (others finding.Subjects) {
	for _, o := range f.Verdict.Others {
		if o.Ready == tristate.True {
			continue
		}
		format := "%s GPUs with %s NICs are not ready (%s)"
		if o.Ready == tristate.Unknown {
			format = "whether %s GPUs with %s NICs are ready is unknown (%s)"
		}
		drivers := f.of(func(fn *pci.Function) bool { return eligibleGPU(fn) && fn.GPU == o.GPU }, sawDriver)
		others.Add(fmt.Sprintf(format, o.GPU.Name, o.NIC.Name, o.Reason), drivers...)
	}
	return others
}

// userSpace: rdma-core does not open a device whose driver has an ABI that it does not know, and
// the vendor's own library does not open one of the kernel's own driver. Which library is used
// is up to each container image; on the node no driver of a known ABI is wrong.
var userSpace = check{Name: "user-space", Codes: []finding.Code{"VerbsABIMismatch"}, Judge: judgeUserSpace}

func judgeUserSpace(f *judged) finding.Said {
	if unknown := f.devicesOfABI(unknownABI); unknown.Any() {
		return finding.Warn("VerbsABIMismatch", "neither rdma-core's library nor a known one of the vendor opens "+
			"%s", unknown).
			Of(unknown).
			Do("install the library for "+f.NIC.Name+" of the same release as the driver, from its vendor, in every "+
				"container image", "or use the kernel's own driver")
	}
	if vendors := f.devicesOfABI(vendorABI); vendors.Any() {
		return finding.OK("the vendor's own driver: container images need %s of its release, as rdma-core's "+
			"library supports ABI %d: %s",
			f.NIC.Help.Library, f.NIC.Uverbs.ABI, vendors).Of(vendors)
	}
	if kernels := f.devicesOfABI(kernelABI); kernels.Any() {
		known := strings.Join(finding.Map(f.NIC.Uverbs.VendorABIs, strconv.Itoa), ", ")
		return finding.OK("the kernel's own ABI: container images need rdma-core's library, as %s supports ABI "+
			"%s: %s",
			f.NIC.Help.Library, known, kernels).Of(kernels)
	}
	return finding.Said{}
}

func kernelABI(u *family.Uverbs, abi int) bool  { return abi == u.ABI && len(u.VendorABIs) > 0 }
func vendorABI(u *family.Uverbs, abi int) bool  { return slices.Contains(u.VendorABIs, abi) }
func unknownABI(u *family.Uverbs, abi int) bool { return abi != u.ABI && !vendorABI(u, abi) }

// devicesOfABI lists the devices whose driver has an ABI of some kind.
func (f *judged) devicesOfABI(kind func(*family.Uverbs, int) bool) (devices finding.Subjects) {
	for _, n := range f.Matrix.NICs {
		if !n.Counts() || n.RDMA == nil || n.Function.NIC != f.NIC || f.NIC.Uverbs.ABI == 0 {
			continue
		}
		if abi, read := f.advised().VerbsABI[n.RDMA.Name]; read && kind(&f.NIC.Uverbs, abi.Version) {
			devices.Add(fmt.Sprintf("%s (ABI %d)", n.RDMA.Name, abi.Version), finding.Saw(abi.File,
				strconv.Itoa(abi.Version)))
		}
	}
	return devices
}

// bar: only a part of a GPU's memory is visible on PCI.
var bar = check{Name: "bar", Codes: []finding.Code{"SmallBAR", "SmallBAR1"}, Judge: judgeBAR}

func judgeBAR(f *judged) finding.Said {
	if small := smallBAR(f); small.Any() {
		return finding.Warn("SmallBAR", "only a part of the GPU's memory is visible on PCI: %s", small).Of(small).
			Do(largeBAR)
	}
	if small := smallBAR1(f); small.Any() {
		return finding.Warn("SmallBAR1", "BAR1 is less than 1 GiB, and no more GPU memory than this can be "+
			"registered at a time: %s", small).
			Of(small).
			Do(largerBAR1(f)...)
	}
	return finding.Said{}
}

const largeBAR = "turn on Above 4G Decoding and Resizable BAR (large BAR) in the firmware setup, then power " +
	"cycle"

// smallBAR lists the GPUs whose BAR is smaller than their memory.
func smallBAR(f *judged) (gpus finding.Subjects) {
	for _, fn := range f.functions(eligibleGPU) {
		if m := fn.Memory; m != nil && m.Visible < m.Total {
			gpus.Add(fmt.Sprintf("%s (%d of %d MiB)", f.named(fn), m.Visible/mib, m.Total/mib),
				sawBAR(fn), finding.Saw(fn.Address.File(fn.GPU.MemoryFile), strconv.FormatUint(m.Total, 10)))
		}
	}
	return gpus
}

const mib = 1 << 20

// smallBAR1 lists the GPUs with memory of unknown size and a BAR that is too small for any.
func smallBAR1(f *judged) (gpus finding.Subjects) {
	for _, fn := range f.functions(hasSmallBAR1) {
		seen := []string{sawBAR(fn)}
		if sizes := fn.Memory.Sizes; sizes != 0 {
			seen = append(seen, finding.Saw(fn.Address.File(fn.Memory.ResizeFile()), fmt.Sprintf("%016x", sizes)))
		}
		gpus.Add(fmt.Sprintf("%s (%d MiB)", f.named(fn), fn.Memory.Visible/mib), seen...)
	}
	return gpus
}

func hasSmallBAR1(fn *pci.Function) bool {
	return eligibleGPU(fn) && fn.Memory != nil && fn.Memory.Total == 0 && fn.Memory.Visible < pci.Plenty
}

// largerBAR1 says what to do, by the sizes that the first GPU's BAR can be given.
func largerBAR1(f *judged) []string {
	gpu := f.functions(hasSmallBAR1)[0]
	switch size, number := gpu.Memory.Largest(); {
	case size > gpu.Memory.Visible:
		return finding.Steps(largeBAR, fmt.Sprintf("or unbind the GPU's driver and write %d to %s, for %d MiB",
			number, gpu.Address.File(gpu.Memory.ResizeFile()), size/mib))
	case size > 0:
		return finding.Steps("the BAR cannot be made larger: register small buffers, or use another GPU")
	}
	return finding.Steps(largeBAR, "`nvidia-smi -q -d MEMORY` shows BAR1")
}

// sawBAR is evidence of the BAR that a GPU's memory is reached through.
func sawBAR(fn *pci.Function) string {
	return finding.
		Saw(fn.Address.File(pci.ResourceFile), fmt.Sprintf("BAR %d: %d MiB", fn.Memory.BAR, fn.Memory.Visible/mib))
}
