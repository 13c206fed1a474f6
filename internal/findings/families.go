package findings

import (
	"fmt"
	"slices"
	"strconv"

	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// otherGPUs says, on a node with GPUs of two families, which family the findings are
// about, and whether the other one is ready.
var otherGPUs = check{name: "other-gpus", sources: []string{pci.Devices}, rows: []row{
	{
		status: Warn, code: "MixedGPUs", which: notReadyGPUs,
		text: "the findings are about {gpu} GPUs with {nic} NICs; {about}",
		fix:  do("gdr-features explain REASON says what to do for these GPUs"),
	},
	{
		status: OK, when: func(f *judged) bool { return len(f.Others()) > 0 },
		text: "the findings are about {gpu} GPUs with {nic} NICs; {otherGPUs} GPUs are ready too",
	},
}}

// notReadyGPUs lists the families of GPUs that the findings are not about and that are not
// ready.
func notReadyGPUs(f *judged) (others subjects) {
	for _, o := range f.Others() {
		if o.Ready == tristate.True {
			continue
		}
		format := "%s GPUs with %s NICs are not ready (%s)"
		if o.Ready == tristate.Unknown {
			format = "whether %s GPUs with %s NICs are ready is unknown (%s)"
		}
		drivers := f.of(func(fn *pci.Function) bool { return eligibleGPU(fn) && fn.GPU == o.GPU }, sawDriver)
		others.add(fmt.Sprintf(format, o.GPU.Name, o.NIC.Name, o.Reason), drivers...)
	}
	return others
}

// userSpace: rdma-core does not open a device whose driver has an ABI that it does not know, and
// the vendor's own library does not open one of the kernel's own driver. Which library is used
// is up to each container image; on the node no driver of a known ABI is wrong.
var userSpace = check{name: "user-space", rows: []row{
	{
		status: Warn, code: "VerbsABIMismatch", which: abiIs(unknownABI),
		text: "neither rdma-core's library nor a known one of the vendor opens {about}",
		fix:  do("install the library for {nic} of the same release as the driver, from its vendor, in every container image", "or use the kernel's own driver"),
	},
	{
		status: OK, which: abiIs(vendorABI),
		text: "the vendor's own driver: container images need {provider} of its release, as rdma-core's library supports ABI {kernelABI}: {about}",
	},
	{
		status: OK, which: abiIs(kernelABI),
		text: "the kernel's own ABI: container images need rdma-core's library, as {provider} supports ABI {vendorABIs}: {about}",
	},
}}

func kernelABI(u *family.Uverbs, abi int) bool  { return abi == u.ABI && len(u.VendorABIs) > 0 }
func vendorABI(u *family.Uverbs, abi int) bool  { return slices.Contains(u.VendorABIs, abi) }
func unknownABI(u *family.Uverbs, abi int) bool { return abi != u.ABI && !vendorABI(u, abi) }

// abiIs lists the devices whose driver has an ABI of some kind.
func abiIs(kind func(*family.Uverbs, int) bool) func(*judged) subjects {
	return func(f *judged) (devices subjects) {
		for _, n := range f.Matrix.NICs {
			if !n.Eligible || n.RDMA == nil || n.Function.NIC != f.NIC || f.NIC.Uverbs.ABI == 0 {
				continue
			}
			if abi, read := f.advised().VerbsABI[n.RDMA.Name]; read && kind(&f.NIC.Uverbs, abi.Version) {
				devices.add(fmt.Sprintf("%s (ABI %d)", n.RDMA.Name, abi.Version), saw(abi.File, strconv.Itoa(abi.Version)))
			}
		}
		return devices
	}
}

// bar: only a part of a GPU's memory is visible on PCI.
var bar = check{name: "bar", rows: []row{
	{
		status: Warn, code: "SmallBAR", which: smallBAR,
		text: "only a part of the GPU's memory is visible on PCI: {about}",
		fix:  do(largeBAR),
	},
	{
		status: Warn, code: "SmallBAR1", which: smallBAR1,
		text: "BAR1 is less than 1 GiB, and no more GPU memory than this can be registered at a time: {about}",
		fix:  largerBAR1,
	},
}}

const largeBAR = "turn on Above 4G Decoding and Resizable BAR (large BAR) in the firmware setup, then power cycle"

// smallBAR lists the GPUs whose BAR is smaller than their memory.
func smallBAR(f *judged) (gpus subjects) {
	for _, fn := range f.functions(eligibleGPU) {
		if m := fn.Memory; m != nil && m.Visible < m.Total {
			gpus.add(fmt.Sprintf("%v (%d of %d MiB)", fn.Address, m.Visible/mib, m.Total/mib),
				sawBAR(fn), saw(fn.Address.File(fn.GPU.MemoryFile), strconv.FormatUint(m.Total, 10)))
		}
	}
	return gpus
}

const mib = 1 << 20

// smallBAR1 lists the GPUs whose memory has an unknown size and a BAR that is certainly too
// small for it.
func smallBAR1(f *judged) (gpus subjects) {
	for _, fn := range f.functions(hasSmallBAR1) {
		seen := []string{sawBAR(fn)}
		if sizes := fn.Memory.Sizes; sizes != 0 {
			seen = append(seen, saw(fn.Address.File(fn.Memory.ResizeFile()), fmt.Sprintf("%016x", sizes)))
		}
		gpus.add(fmt.Sprintf("%v (%d MiB)", fn.Address, fn.Memory.Visible/mib), seen...)
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
		return steps(largeBAR, fmt.Sprintf("or unbind the GPU's driver and write %d to %s, for %d MiB",
			number, gpu.Address.File(gpu.Memory.ResizeFile()), size/mib))
	case size > 0:
		return steps("the BAR cannot be made larger: register small buffers, or use another GPU")
	}
	return steps(largeBAR, "nvidia-smi -q -d MEMORY shows BAR1")
}

// sawBAR is evidence of the BAR that a GPU's memory is reached through.
func sawBAR(fn *pci.Function) string {
	return saw(fn.Address.File(pci.ResourceFile), fmt.Sprintf("BAR %d: %d MiB", fn.Memory.BAR, fn.Memory.Visible/mib))
}
