package findings

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/frameworks"
	"gdr-features/internal/image"
	"gdr-features/internal/version"
	"gdr-features/source/family"
	"gdr-features/source/platform"
	"gdr-features/tristate"
)

// Types of NCCL's GIN (NVIDIA/nccl src/include/nccl_device/core.h; aws/aws-ofi-nccl
// doc/gin-getting-started.md): GPUs ring the doorbells of mlx5 NICs, or those of EFA.
const (
	ginGDAKI  = "3"
	ginEFAGDA = "5"
)

// ncclGIN: what NCCL's GIN needs, with which GPUs start transfers, as DeepEP from version 2 on
// does (NVIDIA/nccl docs/userguide/source/usage/deviceapi.rst). That GPU memory is reached at
// all is the affair of other checks.
var ncclGIN = check{name: "nccl-gin", rows: under(asksGIN, nil, []row{
	{
		status: Fail, code: "GINImpossible", which: ginVariables,
		text: "NCCL's GIN is asked for, and does not start because of {about}", fix: correctVariable,
	},
	{
		status: Fail, code: "GINImpossible", when: func(f *judged) bool {
			return ginOf(ginGDAKI)(f) && !allOf(f, func(n *family.NIC) bool { return n.IBGDA })
		},
		text: "NCCL has GIN of type GDAKI for mlx5 NICs alone; there are {familiesInQuestion}",
		fix:  do("remove NCCL_GIN_TYPE from spec.containers[].env, so that the CPU helps (proxy)"), evidence: sawGIN,
	},
	{
		status: Fail, code: "GINImpossible", which: ginTooOld,
		text: "NCCL's GIN needs newer libraries than the image has: {about}",
		fix:  do("use an image with these versions, or newer ones"),
	},
	{
		status: Fail, code: "GINImpossible", when: func(f *judged) bool { return allOf(f, onlyByPlugin) && gdrCopy(f) == tristate.False },
		text:     "GIN over EFA needs GDRCopy, whose device node " + platform.GDRCopyNode + " cannot be used here",
		fix:      do("load gdrdrv 2.5 or newer on the node (GPU Operator: gdrcopy.enabled=true) and give the container its node (NVIDIA_GDRCOPY=enabled in spec.containers[].env)"),
		evidence: func(f *judged) []string { return slices.Concat(sawGIN(f), sawGDRCopy(f)) },
	},
	{
		status: Fail, code: "GINImpossible", when: otherMachine,
		text: "a machine of type {machineType} has no EFA-GDA (NCCL_GIN_TYPE=" + ginEFAGDA + ")",
		fix:  do("use {machineWithGDA}", "or remove NCCL_GIN_TYPE from spec.containers[].env, so that the CPU helps (proxy)"), evidence: machineNames,
	},
	{
		status: Warn, code: "GINImpossible", when: olderKernel,
		text: "GDAKI needs nvidia-peermem, or DMA-BUF with Linux 6.1 or newer: this kernel is {kernel}, with DMA-BUF alone",
		fix:  do("load nvidia-peermem on the node, or use a newer kernel there", "or remove NCCL_GIN_TYPE from spec.containers[].env, so that the CPU helps (proxy)"),
		evidence: func(f *judged) []string {
			return append(sawGIN(f), saw(platform.ReleaseFile, f.Platform.Kernel))
		},
	},
	{
		status: Warn, code: "GINFusedNICs", which: fusedNICs,
		text: "GIN does not support NICs that NCCL fuses, the ports of one card, unless NCCL_IB_MERGE_NICS=0: {about}",
		fix:  do("set NCCL_IB_MERGE_NICS=0 in spec.containers[].env"),
	},
	{status: OK, text: "nothing that can be seen keeps NCCL's GIN from starting"},
})}

// asksGIN: a variable asks for a type of GIN, or the framework that is asked for builds on it.
func asksGIN(f *judged) bool {
	if value := f.Pod.Environment.Variables[frameworks.GINType]; value != "" {
		return value != "-1" && !frameworks.Zero(value)
	}
	return f.Pod.For == "deepep" && slices.ContainsFunc(f.frameworksInQuestion(), func(p image.Package) bool {
		return p.Version != "" && version.Compare(p.Version, "2") >= 0
	})
}

func ginOf(kind string) func(*judged) bool {
	return func(f *judged) bool { return f.Pod.Environment.Variables[frameworks.GINType] == kind }
}

func allOf(f *judged, is func(*family.NIC) bool) bool {
	return !slices.ContainsFunc(f.familiesInQuestion(), func(n *family.NIC) bool { return !is(n) })
}

// otherMachine: EFA-GDA is asked for on a machine whose type is known, and is none that has it.
func otherMachine(f *judged) bool {
	if !ginOf(ginEFAGDA)(f) || f.NIC == nil || f.NIC.NCCLPlugin == nil || f.NIC.NCCLPlugin.GPUStarts == nil {
		return false
	}
	has, names := f.NIC.NCCLPlugin.GPUStarts, f.Matrix.Machine
	return has.OfVendor(names.Vendor.Value) && names.Product.Value != "" && !has.OfType(names.Product.Value)
}

// olderKernel: GDAKI is asked for, DMA-BUF is the only way to GPU memory, and the kernel is
// older than GDAKI asks for with it. A distribution may have brought back what it needs.
func olderKernel(f *judged) bool {
	return ginOf(ginGDAKI)(f) && f.waysHere().OnlyDMABuf() &&
		f.Platform.Kernel != "" && version.Compare(f.Platform.Kernel, "6.1") < 0
}

func onlyByPlugin(n *family.NIC) bool { return n.NCCLPlugin != nil }

func sawGIN(f *judged) []string { return f.sawVariable(frameworks.GINType) }

// ginVariables are those that keep GIN from starting: it is off, it needs GPU virtual memory
// management, and NICs that reach those of other rails.
func ginVariables(f *judged) (variables subjects) {
	for _, name := range [...]string{frameworks.GINEnable, frameworks.CuMem, frameworks.CrossNIC} {
		if value := f.Pod.Environment.Variables[name]; frameworks.Zero(value) {
			variables.add(name+"="+value, saw(name, value))
		}
	}
	return variables
}

// ginTooOld names what the image has in a version that is too old: rdma-core for NCCL's own
// transport, plugin and libfabric for EFA.
func ginTooOld(f *judged) (old subjects) {
	if !withVerbs(f) {
		return old
	}
	plugin := allOf(f, onlyByPlugin)
	if release := f.Pod.Image.Verbs.Release(); !plugin && release != "" && version.Compare(release, "44") < 0 {
		old.add("rdma-core "+release+" (44)", saw(f.Pod.Image.Verbs.Path, release))
	}
	needs := map[string]string{}
	if plugin {
		needs["aws-ofi-nccl"] = "1.21"
		if ginOf(ginEFAGDA)(f) {
			needs["libfabric"] = "2.6"
		}
	}
	for _, p := range f.Pod.Image.Frameworks {
		if least := needs[p.Name]; least != "" && p.Version != "" && version.Compare(p.Version, least) < 0 {
			old.add(fmt.Sprintf("%s %s (%s)", p.Name, p.Version, least), sawFramework(p)...)
		}
	}
	return old
}

// fusedNICs names usable NICs that are functions of one card, which NCCL fuses by default.
func fusedNICs(f *judged) (fused subjects) {
	if frameworks.Zero(f.Pod.Environment.Variables[frameworks.MergeNICs]) {
		return fused
	}
	cards := map[string][]string{}
	for _, nic := range f.nicsInQuestion() {
		card, _, _ := strings.Cut(nic.Address.String(), ".")
		if cards[card] = append(cards[card], nic.RDMA); len(cards[card]) == 2 && !nic.Virtual {
			fused.add(strings.Join(cards[card], " and "), saw(nic.Address.File(""), nic.RDMA))
		}
	}
	return fused
}
