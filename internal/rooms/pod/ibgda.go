package pod

import (
	"cmp"
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/findings"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/source/container"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/tristate"
)

// ibgda: what NVSHMEM's IBGDA needs, in which GPUs start transfers themselves. NVSHMEM 3.4.5
// takes mlx5 NICs alone. It maps the doorbells of a NIC for the GPU, which the driver allows
// with PeerMappingOverride, or to a process with CAP_SYS_ADMIN; where it cannot, the CPU rings
// them, by GDRCopy where that is usable (src/modules/transport/ibgda/ibgda.cpp, nvshmemt_init,
// ibgda_check_gpu_mapping_nic_uar). Versions before 3.4.5 need one of both. EnableStreamMemOPs,
// which DeepEP's instructions set, decides nothing: NVSHMEM takes the version of these operations
// that needs no parameter (src/host/init/cudawrap.cpp, cuStreamWaitValue64_v2).
var ibgda = check{
	Name: "nvshmem-ibgda", Codes: []finding.Code{"IBGDAImpossible", "IBGDAOptions", "IBGDAByCPU", finding.Unreadable},
	Judge: func(f *judged) finding.Said {
		if !frameworks.AsksIBGDA(f.Pod.Environment.Variables) {
			return finding.Said{}
		}
		if said := f.noIBGDA(); said.Found() {
			return said
		}
		maps := tristate.Or(f.Kmod.Params.PeerMapping(), f.capable(container.CapSysAdmin)) // for this process
		switch {
		case f.byGDRCopy() || f.handler() == "cpu_host_memory":
			return finding.OK("the CPU rings the doorbells, as NVSHMEM_IBGDA_NIC_HANDLER asks for")
		case maps == tristate.True:
			return finding.OK("GPUs may ring the doorbells of NICs").Saw(f.sawParams()...)
		case maps == tristate.Unknown:
			return finding.Unknown("whether GPUs may ring the doorbells of NICs cannot be determined").
				Saw(f.sawParams()...)
		case f.Kmod.Advice.GDRCopy == tristate.False:
			return finding.Warn("IBGDAOptions", "PeerMappingOverride is not set and gdrdrv is not loaded, "+
				"so that GPUs cannot write to the doorbells of NICs; NVSHMEM before 3.4.5 does not start "+
				"IBGDA, and newer ones are slower").
				Do(`set options nvidia NVreg_RegistryDwords="PeerMappingOverride=1;" in /etc/modprobe.d of the ` +
					"node (GPU Operator: driver.kernelModuleConfig) and load the driver again").
				Do("or load gdrdrv of GDRCopy (GPU Operator: gdrcopy.enabled=true)").
				Saw(f.sawIBGDA()...).Saw(f.sawParams()...).
				Saw(finding.Map(f.Kmod.Files[kmod.FactGDRCopy], finding.SawMissing)...)
		}
		return finding.Warn("IBGDAByCPU", "GPUs may not ring the doorbells of NICs here, so that the CPU "+
			"does, which is slower; NVSHMEM before 3.4.5 needs GDRCopy for that (%s)", f.gdrCopyHere()).
			Do("see IBGDAOptions for the node", "or SYS_ADMIN in securityContext.capabilities.add of a "+
				"container that runs as root").
			Saw(f.sawIBGDA()...).Saw(f.sawParams()...).Saw(f.sawGDRCopy())
	},
}

func (f *judged) noIBGDA() finding.Said {
	nics := f.frameworkMap().NICs
	there := finding.FirstFew(finding.Map(nics, func(nic *assign.NIC) string { return nic.RDMA + " (" + f.familyOf(nic).Name + ")" }))
	ofMLX5 := func(nic *assign.NIC) bool { return f.familyOf(nic).IBGDA } // the only driver that IBGDA is made for
	named := func(nic *assign.NIC) bool { return strings.Contains(nic.RDMA, f.hcaPrefix()) }
	var said finding.Said
	switch {
	case len(nics) > 0 && !slices.ContainsFunc(nics, ofMLX5):
		said = finding.Fail("IBGDAImpossible", "IBGDA is asked for, and NVSHMEM has it for mlx5 NICs alone; "+
			"there are %s", there).
			Do("remove NVSHMEM_IB_ENABLE_IBGDA from spec.containers[].env, or use a node with ConnectX NICs")
	case len(nics) > 0 && !slices.ContainsFunc(nics, named):
		said = finding.Fail("IBGDAImpossible", "NVSHMEM has IBGDA for NICs whose name contains %s alone; "+
			"there are %s", f.hcaPrefix(), there).
			Do("NVSHMEM_HCA_PREFIX=" + letters(nics[0].RDMA) + " in spec.containers[].env")
	case !slices.Contains([]string{"", "auto", "gpu", "cpu", "cpu_host_memory"}, f.handler()):
		said = finding.Fail("IBGDAImpossible", "IBGDA does not start, because NVSHMEM_IBGDA_NIC_HANDLER is "+
			"none of auto, gpu, cpu and cpu_host_memory").
			Do("remove NVSHMEM_IBGDA_NIC_HANDLER from spec.containers[].env")
	case f.byGDRCopy() && f.gdrCopy() == tristate.False:
		return finding.Fail("IBGDAImpossible", "NVSHMEM_IBGDA_NIC_HANDLER=cpu needs GDRCopy, whose device "+
			"node "+container.GDRCopyNode+" cannot be used here").
			Do("load gdrdrv on the node (GPU Operator: gdrcopy.enabled=true) and give the container its " +
				"node (NVIDIA_GDRCOPY=enabled in spec.containers[].env)").
			Do("or NVSHMEM_IBGDA_NIC_HANDLER=auto").Saw(f.sawIBGDA()...).Saw(f.sawGDRCopy())
	default:
		return finding.Said{}
	}
	return said.Saw(f.sawIBGDA()...)
}

// handler is the processor that rings the doorbells, as NVSHMEM reads it.
func (f *judged) handler() string {
	return strings.ToLower(strings.Join(strings.Fields(f.Pod.Environment.Variables[frameworks.IBGDAHandler]), ""))
}

func (f *judged) byGDRCopy() bool { return f.handler() == "cpu" }

// hcaPrefix is what the name of a NIC must contain. Device names that udev makes (rocep24s0) do not.
func (f *judged) hcaPrefix() string {
	return cmp.Or(f.Pod.Environment.Variables[frameworks.HCAPrefix], "mlx5")
}

// letters are those that a name begins with.
func letters(name string) string {
	if end := strings.IndexAny(name, "0123456789"); end > 0 {
		return name[:end]
	}
	return name
}

func (f *judged) familyOf(nic *assign.NIC) *family.NIC { return f.PCI.Find(nic.Address).NIC }

// gdrCopy reports whether this process may use GDRCopy.
func (f *judged) gdrCopy() tristate.State { return f.Pod.usable(container.GDRCopyNode, f.Pod.GDRCopy) }

func (f *judged) gdrCopyHere() string {
	return finding.Choose(f.gdrCopy(), container.GDRCopyNode+" is here", container.GDRCopyNode+" cannot be "+
		"used here", "not known: "+container.GDRCopyNode)
}

func (f *judged) sawGDRCopy() string { return f.sawNode(container.GDRCopyNode, f.Pod.GDRCopy) }

func (f *judged) sawIBGDA() []string {
	return append(f.sawVariable(frameworks.EnableIBGDA), f.sawVariable(frameworks.IBGDAHandler)...)
}

func (f *judged) sawParams() []string {
	const name = "RegistryDwords"
	return findings.SawFact(f.Node, kmod.FactParams, name+": "+f.Kmod.Params[name])
}
