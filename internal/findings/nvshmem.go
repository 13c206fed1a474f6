package findings

import (
	"gdr-features/source/kmod"
	"gdr-features/tristate"
)

// ibgda: NVSHMEM's IBGDA transport maps the doorbells of the NIC for the GPU, which the
// driver allows processes without CAP_SYS_ADMIN only with PeerMappingOverride (kmod.Params).
// Where it cannot, it uses GDRCopy; from NVSHMEM 3.4.5 on it works without either
// (NVIDIA/nvshmem, src/modules/transport/ibgda/ibgda.cpp: ibgda_check_gpu_mapping_nic_uar
// and nvshmemt_init). EnableStreamMemOPs, which DeepEP's instructions set as well, decides
// nothing there: NVSHMEM takes the version of these operations that needs no parameter
// (src/host/init/cudawrap.cpp, cuStreamWaitValue64_v2).
var ibgda = check{name: "ibgda", rows: []row{{
	status: Warn, code: "IBGDAOptions", when: noDoorbells,
	text: say("matters only for NVSHMEM's IBGDA (DeepEP): PeerMappingOverride is not set and gdrdrv is not loaded, so that GPUs cannot write to the doorbells of NICs"),
	fix: say("without NVSHMEM ignore this; set options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1;\" in /etc/modprobe.d" +
		" (GPU Operator: driver.kernelModuleConfig) and load the driver again; or load gdrdrv of GDRCopy (GPU Operator: gdrcopy.enabled=true);" +
		" NVSHMEM 3.4.5 and newer start without either, and are slower"),
	evidence: sawDoorbells,
}}}

// noDoorbells: the loaded driver is known to keep the doorbells of NICs from GPUs, and
// there is no GDRCopy.
func noDoorbells(f *Facts) bool {
	return f.GPU.CUDA && f.NIC.IBGDA && gpuDriverState(f).Loaded == tristate.True &&
		f.Kmod.Params.PeerMapping() == tristate.False && f.advised().GDRCopy == tristate.False
}

func sawDoorbells(f *Facts) []string {
	params := f.saw(kmod.FactParams, "", `RegistryDwords: "`+f.Kmod.Params["RegistryDwords"]+`"`)
	return append(params, texts(f.Kmod.Files[kmod.FactGDRCopy], sawMissing)...)
}
