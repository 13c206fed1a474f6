package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/assign"
	"gdr-features/internal/frameworks"
	"gdr-features/internal/mechanism"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/platform"
	"gdr-features/tristate"
)

// switchedOff: variables of NCCL, UCX and NVSHMEM that keep them from using GPUDirect RDMA.
var switchedOff = check{name: "gpudirect-variables", rows: []row{
	{
		status: Fail, code: "GPUDirectOff", which: effects(true),
		text: "GPUDirect RDMA is not used because of {about}", fix: correctVariable,
	},
	{
		status: Warn, code: "GPUDirectOff", which: effects(false),
		text: "{about}", fix: correctVariable,
	},
}}

var correctVariable = do("remove or correct the variable in spec.containers[].env (or envFrom)")

// effects names the variables that turn GPUDirect RDMA off, as a whole or in part.
func effects(whole bool) func(*judged) subjects {
	form := "%s=%s: %s"
	if whole {
		form = "%s=%s (%s)"
	}
	return func(f *judged) (variables subjects) {
		ways := mechanism.Ways{Peermem: f.Verdict.Peermem, DMABuf: f.Verdict.DMABuf}
		if s := &f.Pod.Selected; whole && len(s.By) > 0 && len(s.GPUs) == 0 {
			variables.add(strings.Join(s.By, " ")+" (it leaves no GPU)", s.By...)
		}
		writesAlone := len(throughClientCPU(f).names) > 0
		for _, e := range frameworks.Switches(f.frameworkMap(), ways, f.Pod.Environment.Variables) {
			neededHere := e.Name == "NCCL_NET_GDR_READ" && writesAlone
			if e.Whole == whole && !neededHere {
				variables.add(fmt.Sprintf(form, e.Name, e.Value, e.Why), saw(e.Name, e.Value))
			}
		}
		return variables
	}
}

// frameworkMap is the map by which variables are judged: that of the NICs which the
// container can use, and of all where it can use none.
func (f *judged) frameworkMap() *assign.Assignment {
	if len(f.Pod.Map.NICs)+len(f.Pod.Map.Unknown) == 0 {
		return f.Pod.Namespace
	}
	return f.Pod.Map
}

// nicVariables are those that tell a framework which NIC each GPU should use.
var nicVariables = check{name: "nic-variables", rows: []row{
	{
		status: Fail, code: "WrongNICVariable", which: variablesThatAre(tristate.False, false),
		text: "{about}", fix: do(fromEnv),
	},
	{status: Undecidable, which: variablesThatAre(tristate.Unknown, false), text: "{about}"},
	{status: Warn, code: "WrongNICVariable", which: variablesThatAre(tristate.False, true), text: "{about}", fix: do(fromEnv)},
	{
		status: OK, which: variablesThatAre(tristate.True, false),
		text: "each GPU is given the nearest NIC by {about}",
	},
}}

const fromEnv = "set it from gdr-features env in an initContainer, or remove it from spec.containers[].env"

// variablesThatAre names the variables that are wrong, mildly or not, right, or not known to be.
func variablesThatAre(state tristate.State, mild bool) func(*judged) subjects {
	return func(f *judged) (variables subjects) {
		if len(f.frameworkMap().NICs) == 0 {
			return variables // the ports say why
		}
		for _, found := range frameworks.Check(f.frameworkMap(), f.Pod.Environment) {
			if !found.Aside && found.State == state && found.Mild() == mild {
				variables.add(found.Text(), f.sawVariable(found.Name)...)
			}
		}
		return variables
	}
}

// podIBGDA: what NVSHMEM's IBGDA needs, in which GPUs start transfers themselves. NVSHMEM 3.4.5
// takes mlx5 NICs alone. It maps the doorbells of a NIC for the GPU, which the driver allows
// with PeerMappingOverride, or to a process with CAP_SYS_ADMIN; where it cannot, the CPU rings
// them, by GDRCopy where that is usable (src/modules/transport/ibgda/ibgda.cpp,
// nvshmemt_init, ibgda_check_gpu_mapping_nic_uar). Versions before 3.4.5 need one of both.
// EnableStreamMemOPs, which DeepEP's instructions set as well, decides nothing: NVSHMEM takes
// the version of these operations that needs no parameter (src/host/init/cudawrap.cpp,
// cuStreamWaitValue64_v2).
var podIBGDA = check{name: "nvshmem-ibgda", rows: under(asksIBGDA, nil, []row{
	{
		status: Fail, code: "IBGDAImpossible", when: func(f *judged) bool { return !anyMLX5(f) }, which: usableNICs,
		text: "IBGDA is asked for, and NVSHMEM has it for mlx5 NICs alone; there are {about}",
		fix:  do("remove NVSHMEM_IB_ENABLE_IBGDA from spec.containers[].env, or use a node with ConnectX NICs"), evidence: sawIBGDA,
	},
	{
		status: Fail, code: "IBGDAImpossible", when: func(f *judged) bool {
			return !slices.ContainsFunc(f.frameworkMap().NICs, func(nic *assign.NIC) bool { return strings.Contains(nic.RDMA, hcaPrefix(f)) })
		}, which: usableNICs,
		text: "NVSHMEM has IBGDA for NICs whose name contains {hcaPrefix} alone; there are {about}",
		fix:  do("NVSHMEM_HCA_PREFIX={letters} in spec.containers[].env"), evidence: sawIBGDA,
	},
	{
		status: Fail, code: "IBGDAImpossible", when: func(f *judged) bool {
			return !slices.Contains([]string{"", "auto", "gpu", "cpu", "cpu_host_memory"}, handler(f))
		},
		text: "IBGDA does not start, because NVSHMEM_IBGDA_NIC_HANDLER is none of auto, gpu, cpu and cpu_host_memory",
		fix:  do("remove NVSHMEM_IBGDA_NIC_HANDLER from spec.containers[].env"), evidence: sawIBGDA,
	},
	{
		status: Fail, code: "IBGDAImpossible", when: func(f *judged) bool { return byGDRCopy(f) && gdrCopy(f) == tristate.False },
		text: "NVSHMEM_IBGDA_NIC_HANDLER=cpu needs GDRCopy, whose device node " + platform.GDRCopyNode + " cannot be used here",
		fix:  do("load gdrdrv on the node (GPU Operator: gdrcopy.enabled=true) and give the container its node (NVIDIA_GDRCOPY=enabled in spec.containers[].env)", "or NVSHMEM_IBGDA_NIC_HANDLER=auto"), evidence: func(f *judged) []string { return slices.Concat(sawIBGDA(f), sawGDRCopy(f)) },
	},
	{status: OK, when: func(f *judged) bool { return byGDRCopy(f) || handler(f) == "cpu_host_memory" }, text: "the CPU rings the doorbells, as NVSHMEM_IBGDA_NIC_HANDLER asks for"},
	{
		status: OK, when: func(f *judged) bool { return mapsDoorbells(f) == tristate.True },
		text: "GPUs may ring the doorbells of NICs", evidence: sawParams,
	},
	{
		status: Undecidable, when: func(f *judged) bool { return mapsDoorbells(f) == tristate.Unknown },
		text: "whether GPUs may ring the doorbells of NICs cannot be determined", evidence: sawParams,
	},
	{
		status: Warn, code: "IBGDAOptions", when: noGDRCopy,
		text: "PeerMappingOverride is not set and gdrdrv is not loaded, so that GPUs cannot write to the doorbells of NICs; NVSHMEM before 3.4.5 does not start IBGDA, and newer ones are slower",
		fix:  do(`set options nvidia NVreg_RegistryDwords="PeerMappingOverride=1;" in /etc/modprobe.d of the node (GPU Operator: driver.kernelModuleConfig) and load the driver again`, "or load gdrdrv of GDRCopy (GPU Operator: gdrcopy.enabled=true)"),
		evidence: func(f *judged) []string {
			return slices.Concat(sawIBGDA(f), sawParams(f), texts(f.Kmod.Files[kmod.FactGDRCopy], sawMissing))
		},
	},
	{
		status: Warn, code: "IBGDAByCPU",
		text:     "GPUs may not ring the doorbells of NICs here, so that the CPU does, which is slower; NVSHMEM before 3.4.5 needs GDRCopy for that ({gdrCopyHere})",
		fix:      do("see IBGDAOptions for the node", "or SYS_ADMIN in securityContext.capabilities.add of a container that runs as root"),
		evidence: func(f *judged) []string { return slices.Concat(sawIBGDA(f), sawParams(f), sawGDRCopy(f)) },
	},
})}

func asksIBGDA(f *judged) bool { return frameworks.AsksIBGDA(f.Pod.Environment.Variables) }

// handler is the processor that rings the doorbells, as NVSHMEM reads it.
func handler(f *judged) string {
	return strings.ToLower(strings.Join(strings.Fields(f.Pod.Environment.Variables[frameworks.IBGDAHandler]), ""))
}

// hcaPrefix is what the name of a NIC must contain, at any place. Device names that udev
// makes (rocep24s0) do not.
func hcaPrefix(f *judged) string {
	return cmp.Or(f.Pod.Environment.Variables[frameworks.HCAPrefix], "mlx5")
}

// letters are those that the name of the first usable NIC begins with.
func letters(f *judged) string {
	name := f.frameworkMap().NICs[0].RDMA
	if end := strings.IndexAny(name, "0123456789"); end > 0 {
		return name[:end]
	}
	return name
}

func byGDRCopy(f *judged) bool { return handler(f) == "cpu" }

// anyMLX5 reports whether some NIC is of the only driver that IBGDA is made for.
func anyMLX5(f *judged) bool {
	return len(f.frameworkMap().NICs) == 0 || slices.ContainsFunc(f.frameworkMap().NICs, func(nic *assign.NIC) bool { return familyOf(f, nic).IBGDA })
}

// usableNICs names the NICs and their families.
func usableNICs(f *judged) subjects {
	return subjects{names: texts(f.frameworkMap().NICs, func(nic *assign.NIC) string { return nic.RDMA + " (" + familyOf(f, nic).Name + ")" })}
}

// familyOf is the family of a usable NIC.
func familyOf(f *judged, nic *assign.NIC) *family.NIC { return f.PCI.Find(nic.Address).NIC }

// gdrCopy reports whether this process may use GDRCopy.
func gdrCopy(f *judged) tristate.State {
	return f.Pod.usable(platform.GDRCopyNode, f.Pod.GDRCopy)
}

// mapsDoorbells reports whether the GPU driver lets this process map a NIC's doorbells for a
// GPU.
func mapsDoorbells(f *judged) tristate.State {
	return tristate.Or(f.Kmod.Params.PeerMapping(), f.capable(platform.CapSysAdmin))
}

// noGDRCopy: the node is known to have no gdrdrv.
func noGDRCopy(f *judged) bool { return f.advised().GDRCopy == tristate.False }

func sawIBGDA(f *judged) []string {
	return append(f.sawVariable(frameworks.EnableIBGDA), f.sawVariable(frameworks.IBGDAHandler)...)
}

// sawVariable is the value of a variable, nothing where it has none.
func (f *judged) sawVariable(name string) []string {
	if value := f.Pod.Environment.Variables[name]; value != "" {
		return []string{saw(name, value)}
	}
	return nil
}

func sawGDRCopy(f *judged) []string { return []string{f.sawNode(platform.GDRCopyNode, f.Pod.GDRCopy)} }

func sawParams(f *judged) []string {
	const name = "RegistryDwords"
	return f.saw(kmod.FactParams, name+": "+f.Kmod.Params[name])
}
