package pod

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/findings"
	"gdr-features/internal/fleet/image"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/internal/version"
	"gdr-features/source/container"
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

// ncclGIN: what NCCL's GIN needs, with which GPUs start transfers, as DeepEP from version 2 on does
// (NVIDIA/nccl docs/userguide/source/usage/deviceapi.rst). Other checks judge the ways to GPU memory.
var ncclGIN = check{
	Name: "nccl-gin", Codes: []finding.Code{"GINImpossible", "GINFusedNICs"},
	Judge: func(f *judged) finding.Said {
		if !f.asksGIN() {
			return finding.Said{}
		}
		if said := f.noGIN(); said.Found() {
			return said
		}
		if f.olderKernel() {
			return finding.Warn("GINImpossible", "GDAKI needs nvidia-peermem, or DMA-BUF with Linux 6.1 or "+
				"newer: this kernel is %s, with DMA-BUF alone", f.Platform.Kernel).
				Do("load nvidia-peermem on the node, or use a newer kernel there", "or "+byProxy).
				Saw(f.sawGIN()...).
				Saw(finding.Saw(platform.ReleaseFile, f.Platform.Kernel))
		}
		if fused := f.fusedNICs(); fused.Any() {
			return finding.Warn("GINFusedNICs", "GIN does not support NICs that NCCL fuses, the ports of "+
				"one card, unless NCCL_IB_MERGE_NICS=0: %s", fused).
				Of(fused).Do("set NCCL_IB_MERGE_NICS=0 in spec.containers[].env")
		}
		return finding.OK("nothing that can be seen keeps NCCL's GIN from starting")
	},
}

const byProxy = "remove NCCL_GIN_TYPE from spec.containers[].env, so that the CPU helps (proxy)"

func (f *judged) noGIN() finding.Said {
	variables, old := f.ginVariables(), f.ginTooOld()
	switch {
	case variables.Any():
		return finding.Fail("GINImpossible", "NCCL's GIN is asked for, and does not start because of "+
			"%s", variables).
			Of(variables).Do(correctVariable)
	case f.ginOf(ginGDAKI) && !f.allOf(func(n *family.NIC) bool { return n.IBGDA }):
		names := finding.Map(f.familiesInQuestion(), func(n *family.NIC) string { return n.Name })
		return finding.Fail("GINImpossible", "NCCL has GIN of type GDAKI for mlx5 NICs alone; there are "+
			"%s", strings.Join(names, ", ")).Do(byProxy).Saw(f.sawGIN()...)
	case old.Any():
		return finding.Fail("GINImpossible", "NCCL's GIN needs newer libraries than the image has: %s", old).
			Of(old).
			Do("use an image with these versions, or newer ones")
	case f.allOf(onlyByPlugin) && f.gdrCopy() == tristate.False:
		return finding.Fail("GINImpossible", "GIN over EFA needs GDRCopy, whose device node "+
			container.GDRCopyNode+" cannot be used here").
			Do("load gdrdrv 2.5 or newer on the node (GPU Operator: gdrcopy.enabled=true) and give the " +
				"container its node (NVIDIA_GDRCOPY=enabled in spec.containers[].env)").
			Saw(f.sawGIN()...).Saw(f.sawGDRCopy())
	case f.otherMachine():
		return finding.Fail("GINImpossible", "a machine of type %s has no EFA-GDA "+
			"(NCCL_GIN_TYPE="+ginEFAGDA+")", f.Matrix.Machine.Product.Value).
			Do("use "+f.NIC.NCCLPlugin.GPUStarts.Instead, "or "+byProxy).Saw(findings.SawMachine(f.Node)...)
	}
	return finding.Said{}
}

// asksGIN: a variable asks for a type of GIN, or the framework that is asked for builds on it.
func (f *judged) asksGIN() bool {
	if value := f.Pod.Environment.Variables[frameworks.GINType]; value != "" {
		return value != "-1" && !frameworks.Zero(value)
	}
	return f.Pod.For == "deepep" && slices.ContainsFunc(f.frameworksInQuestion(), func(p image.Package) bool {
		return p.Version != "" && version.Compare(p.Version, "2") >= 0
	})
}

func (f *judged) ginOf(kind string) bool {
	return f.Pod.Environment.Variables[frameworks.GINType] == kind
}

func (f *judged) allOf(is func(*family.NIC) bool) bool {
	return !slices.ContainsFunc(f.familiesInQuestion(), func(n *family.NIC) bool { return !is(n) })
}

// otherMachine: EFA-GDA is asked for on a machine whose type is known, and is none that has it.
func (f *judged) otherMachine() bool {
	if !f.ginOf(ginEFAGDA) || f.NIC == nil || f.NIC.NCCLPlugin == nil || f.NIC.NCCLPlugin.GPUStarts == nil {
		return false
	}
	has, names := f.NIC.NCCLPlugin.GPUStarts, f.Matrix.Machine
	return has.OfVendor(names.Vendor.Value) && names.Product.Value != "" && !has.OfType(names.Product.Value)
}

// olderKernel: GDAKI is asked for, DMA-BUF is the only way, and the kernel is older than GDAKI asks
// for with it. A distribution may have brought back what it needs.
func (f *judged) olderKernel() bool {
	return f.ginOf(ginGDAKI) && f.waysHere().OnlyDMABuf() &&
		f.Platform.Kernel != "" && version.Compare(f.Platform.Kernel, "6.1") < 0
}

func onlyByPlugin(n *family.NIC) bool { return n.NCCLPlugin != nil }

func (f *judged) sawGIN() []string { return f.sawVariable(frameworks.GINType) }

// ginVariables are those that keep GIN from starting: it is off, it needs GPU virtual memory
// management, and NICs that reach those of other rails.
func (f *judged) ginVariables() (variables finding.Subjects) {
	for _, name := range [...]string{frameworks.GINEnable, frameworks.CuMem, frameworks.CrossNIC} {
		if value := f.Pod.Environment.Variables[name]; frameworks.Zero(value) {
			variables.Add(name+"="+value, finding.Saw(name, value))
		}
	}
	return variables
}

// ginTooOld names what the image has in a version that is too old: rdma-core for NCCL's own
// transport, plugin and libfabric for EFA.
func (f *judged) ginTooOld() (old finding.Subjects) {
	if !withVerbs(f.Pod.Image) {
		return old
	}
	plugin := f.allOf(onlyByPlugin)
	if release := f.Pod.Image.Verbs.Release(); !plugin && release != "" && version.Compare(release, "44") < 0 {
		old.Add("rdma-core "+release+" (44)", finding.Saw(f.Pod.Image.Verbs.Path, release))
	}
	needs := map[string]string{}
	if plugin {
		needs["aws-ofi-nccl"] = "1.21"
		if f.ginOf(ginEFAGDA) {
			needs["libfabric"] = "2.6"
		}
	}
	for _, p := range f.Pod.Image.Frameworks {
		if least := needs[p.Name]; least != "" && p.Version != "" && version.Compare(p.Version, least) < 0 {
			old.Add(fmt.Sprintf("%s %s (%s)", p.Name, p.Version, least), sawFramework(p)...)
		}
	}
	return old
}

// fusedNICs names usable NICs that are functions of one card, which NCCL fuses by default.
func (f *judged) fusedNICs() (fused finding.Subjects) {
	if frameworks.Zero(f.Pod.Environment.Variables[frameworks.MergeNICs]) {
		return fused
	}
	cards := map[string][]string{}
	for _, nic := range f.nicsInQuestion() {
		card, _, _ := strings.Cut(nic.Address.String(), ".")
		if cards[card] = append(cards[card], nic.RDMA); len(cards[card]) == 2 && !nic.Virtual {
			fused.Add(strings.Join(cards[card], " and "), finding.Saw(nic.Address.File(""), nic.RDMA))
		}
	}
	return fused
}
