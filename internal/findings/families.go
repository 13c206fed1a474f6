package findings

import (
	"fmt"
	"strconv"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// otherGPUs says, on a node with GPUs of two families, which of them the findings are
// about, and how the others stand.
var otherGPUs = check{name: "other-gpus", sources: []string{pci.Devices}, rows: []row{
	{
		status: Warn, code: "MixedGPUs", which: notReadyGPUs,
		text: say("the findings are about the GPUs of %s with %s; %s", gpuFamily, nicFamily, which),
		fix:  say("what these lack is in the page of the reason; gdr-features explain REASON prints it"),
	},
	{
		status: OK, when: func(f *Facts) bool { return len(f.Others()) > 0 },
		text: say("the findings are about the GPUs of %s with %s; those of %s are ready too", gpuFamily, nicFamily, otherFamilies),
	},
}}

func gpuFamily(f *Facts) string { return gpuOf(f).Name }

// notReadyGPUs are the families of GPUs that the findings are not about and that are not
// ready.
func notReadyGPUs(f *Facts) (names, evidence []string) {
	for _, o := range f.Others() {
		switch o.Ready {
		case tristate.True:
			continue
		case tristate.False:
			names = append(names, fmt.Sprintf("those of %s with %s are not ready (%s)", o.GPU.Name, o.NIC.Name, o.Reason))
		case tristate.Unknown:
			names = append(names, fmt.Sprintf("those of %s with %s may be ready (%s)", o.GPU.Name, o.NIC.Name, o.Reason))
		}
		evidence = append(evidence, f.of(func(fn *pci.Function) bool { return eligibleGPU(fn) && fn.GPU == o.GPU }, sawDriver)...)
	}
	return names, evidence
}

func otherFamilies(f *Facts) string {
	var names []string
	for _, o := range f.Others() {
		names = append(names, o.GPU.Name)
	}
	return strings.Join(names, " and ")
}

// userSpace: rdma-core opens no device whose driver has another interface than it knows.
var userSpace = check{name: "user-space", rows: []row{{
	status: Warn, code: "VerbsABIMismatch", which: otherABI,
	text: say("programs with the library of rdma-core cannot open %s", which),
	fix:  say("install the library of %s's vendor, of the same release as the driver, on the node and in every container image; or use the kernel's own driver", nicFamily),
}}}

// otherABI are the devices whose driver has an interface that rdma-core does not know.
func otherABI(f *Facts) (names, evidence []string) {
	for i := range f.Matrix.NICs {
		n := &f.Matrix.NICs[i]
		if !n.Eligible || n.RDMA == nil || n.Function.NIC != nicOf(f) {
			continue
		}
		known := n.Function.NIC.Uverbs.ABI
		abi, read := f.advised().VerbsABI[n.RDMA.Name]
		if known == 0 || !read || abi.Version == known {
			continue
		}
		names = append(names, fmt.Sprintf("%s (its driver has ABI %d, rdma-core %d)", n.RDMA.Name, abi.Version, known))
		evidence = append(evidence, saw(abi.File, strconv.Itoa(abi.Version)))
	}
	return names, evidence
}

// bar: a GPU whose memory PCI reaches in part only.
var bar = check{name: "bar", rows: []row{{
	status: Warn, code: "SmallBAR", which: smallBAR,
	text: say("PCI reaches only a part of the memory of %s", which),
	fix:  say("switch on Above 4G Decoding and Resizable BAR (large BAR) in the firmware, then reboot"),
}}}

func smallBAR(f *Facts) (names, evidence []string) {
	for i := range f.PCI.Functions {
		fn := &f.PCI.Functions[i]
		if m := fn.Memory; eligibleGPU(fn) && m != nil && m.Visible < m.Total {
			const mib = 1 << 20
			names = append(names, fmt.Sprintf("%v (%d of %d MiB)", fn.Address, m.Visible/mib, m.Total/mib))
			evidence = append(evidence, saw(fn.Address.File("mem_info_vis_vram_total"), strconv.FormatUint(m.Visible, 10)),
				saw(fn.Address.File("mem_info_vram_total"), strconv.FormatUint(m.Total, 10)))
		}
	}
	return names, evidence
}
