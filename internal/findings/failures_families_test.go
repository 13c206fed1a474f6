package findings_test

import (
	"strings"

	"gdr-features/source/family"
	"gdr-features/test/machine"
)

// otherNICs are states of NICs of other vendors.
func otherNICs() []failure {
	const (
		efaDMABuf  = "efa_reg_user_mr_dmabuf\t[efa]"
		bnxtDMABuf = "bnxt_re_reg_user_mr_dmabuf\t[bnxt_re]"
		efaVersion = "sys/module/efa/version"
		peerMemory = "ib_register_peer_memory_client\t[ib_peer_mem]"
		uverbs     = "sys/class/infiniband_verbs/uverbs0/"
	)
	holders := all(file("sys/module/ib_peer_mem/holders/nvidia_peermem", ""), file("sys/module/ib_peer_mem/holders/bnxt_re", ""))
	thor := all(proprietary, unloaded, inbox, kernelHas(bnxtDMABuf))
	return []failure{
		{
			name: "no NIC that is judged", machine: "listed", code: "NICNotJudged", fixedOn: "pair", fix: "--nic-families=" + strings.Join(family.Names(family.Known().NICs), ",") + ",example",
		},
		{
			name: "a NIC that no table has", from: github + "torvalds/linux/blob/3d2e5d12/drivers/infiniband/hw/bng_re/bng_dev.c", machine: "thor ultra",
			code: "NICNotJudged", fixedOn: "pair", fix: "gdr-features snapshot",
		},
		{
			name: "a fabric controller that no table has, without a driver", machine: "omni-path",
			code: "NICNotJudged", fixedOn: "pair", fix: "gdr-features snapshot",
		},
		{
			name: "a NIC without verbs", from: github + "HewlettPackard/shs-cxi-driver/blob/3e70303f/drivers/net/ethernet/hpe/ss1/cass_core.h", machine: "slingshot",
			code: "NICNotJudged", fixedOn: "pair", fix: "gdr-features snapshot",
		},
		{
			name: "EFA, and names of a vendor that is not Amazon", machine: "efa",
			broken: file("sys/class/dmi/id/sys_vendor", "Amazo\n"), code: "Unreadable", fixedOn: "efa gen 4", fixed: file("sys/class/dmi/id/sys_vendor", "Amazon EC2\n"), fix: "/sys/class/dmi/id",
		},
		{
			name: "an EC2 type whose GPUs could", from: github + "aws/aws-ofi-nccl/issues/547", machine: "g6e",
			code: "PlatformForbidsP2P", fixedOn: "efa", fix: "another instance type",
		},
		{
			name: "an EC2 type with L4", from: github + "ofiwg/libfabric/pull/12409", machine: "g6",
			code: "PlatformForbidsP2P", fixedOn: "efa gen 4", fix: "another instance type",
		},
		{
			name: "an EC2 type with the GPUs of a larger one", from: github + "aws/aws-ofi-nccl/pull/1057", machine: "g7e.8",
			code: "PlatformForbidsP2P", fixedOn: "g7e.12", fix: "g7e.12xlarge and larger",
		},
		{
			name: "an EC2 type before p4d", from: github + "aws/aws-ofi-nccl/issues/104", machine: "p3dn",
			code: "PlatformForbidsP2P", fixedOn: "efa", fix: "another instance type",
		},
		{
			name: "a part of a p5", from: github + "aws/aws-ofi-nccl/blob/2daf7d30/src/platform-aws.cpp", machine: "p5.4",
			code: "PlatformForbidsP2P", fixedOn: "efa", fix: "p5.48xlarge",
		},
		{
			name: "EFA on a machine of unknown type", machine: "efa",
			broken: file("sys/class/dmi/id/product_name", "\n"), code: "Unreadable", fixedOn: "efa gen 4", fixed: file("sys/class/dmi/id/product_name", "p5en.48xlarge\n"), fix: "/sys/class/dmi/id",
		},
		{
			name: "EFA, and nothing loaded efa_nv_peermem", from: github + "aws/aws-ofi-nccl/issues/803", machine: "efa",
			broken: all(unloaded, inbox, kernelHas(), ofNIC("p2p", "\n")), code: "EFAPeermemMissing", fixed: ofNIC("p2p", "NVIDIA peermem\n"), fix: "modprobe efa_nv_peermem",
		},
		{
			name: "EFA names a peer of another vendor", machine: "efa",
			broken: all(unloaded, inbox, kernelHas(), ofNIC("p2p", "NEURON\n")), code: "EFAPeermemMissing", fixed: ofNIC("p2p", "NVIDIA\n"),
		},
		{
			name: "EFA and the proprietary GPU driver", machine: "efa",
			broken: all(proprietary, unloaded, inbox, ofNIC("p2p", "\n")), code: "EFAPeermemMissing", fixed: ofNIC("p2p", "NVIDIA\n"), fix: "open kernel modules",
		},
		{
			name: "the kernel's own EFA driver and the proprietary GPU driver", machine: "efa",
			broken: all(proprietary, unloaded, inbox, kernelHas(efaDMABuf)), code: "EFAPeermemMissing", fixed: func(s *machine.State) { s.Open = true }, fix: "EFA installer",
		},
		{
			name: "an EFA driver that does not know driver 580", machine: "efa",
			broken: all(unloaded, inbox, ofNIC("p2p", "NVIDIA\n"), file(efaVersion, "2.17.2g\n"), func(s *machine.State) { s.NVIDIA = "580.82.07" }),
			code:   "EFADriverTooOldForR580", fixed: file(efaVersion, "2.17.3g\n"), fix: "2.17.3",
		},
		{
			name: "an EFA driver that always says gdr=1", machine: "efa",
			broken: all(unloaded, inbox, ofNIC("gdr", "1\n"), file(efaVersion, "1.9.0g\n")), code: "EFAPeermemUnproven", fixed: file(efaVersion, "1.14.1g\n"),
		},
		{
			name: "DMA-BUF alone on a generation of EFA that the plugin leaves out", machine: "efa",
			broken: all(unloaded, inbox, kernelHas(efaDMABuf)), code: "EFADMABufOff", fixedOn: "efa gen 4", fix: "aws-ofi-nccl 1.19.2",
		},
		{
			name: "the GPU Operator waits for NICs that are not there", machine: "efa",
			broken: all(unloaded, inbox, kernelHas(efaDMABuf), driverCtr("true")), code: "OperatorsWait", fixed: driverCtr("false"), fix: "driver.rdma.enabled=false",
		},
		{
			name: "bnxt_re without an interface for clients", machine: "thor",
			broken: thor, code: "NoPeerMemoryPath", fixed: func(s *machine.State) { s.Open = true }, fix: "netxtreme-peer-mem-dkms",
		},
		{
			name: "bnxt_re with an interface that nobody uses", machine: "thor",
			broken: all(thor, kernelHas(peerMemory)), code: "PeermemNotLoaded", fixed: holders, fix: "modprobe nvidia-peermem",
		},
		{
			name: "nvidia_peermem serves other NICs than bnxt_re", machine: "thor",
			broken: all(thor, loaded, kernelHas(peerMemory)), code: "PeermemNotLoaded", fixed: holders, fix: "against ib_peer_mem",
		},
		{
			name: "the client of another stack, and no interface of bnxt_re", machine: "thor",
			broken: all(thor, loaded), code: "NoPeerMemoryPath", fixed: holders, fix: "load it before bnxt_re",
		},
		{
			name: "no known library opens the device", from: github + "rajkiranjoshi/bnxt-oob-driver-k8s", machine: "thor",
			broken: all(inbox, kernelHas(bnxtDMABuf), file(uverbs+"ibdev", "mlx5_0\n"), file(uverbs+"abi_version", "9\n"), file("sys/class/infiniband_verbs/abi_version", "6\n")),
			code:   "VerbsABIMismatch", fixed: file(uverbs+"abi_version", "1\n"), fix: "container image",
		},
	}
}

// otherGPUs are states of GPUs of AMD.
func otherGPUs() []failure {
	const (
		options    = "CONFIG_PCI_P2PDMA=y\nCONFIG_DMABUF_MOVE_NOTIFY=y\n"
		interfaceT = "ib_register_peer_memory_client\t[ib_uverbs]"
		registers  = "kfd_init_peer_direct\t[amdgpu]"
		mlx5DMABuf = "mlx5_ib_reg_user_mr_dmabuf\t[mlx5_ib]"
		gib        = "1073741824\n"
	)
	instinct := all(noDriver, unloaded, inbox)
	listsOthers := file("sys/kernel/mm/memory_peers/other/version", "1.0\n")
	registered := file("sys/kernel/mm/memory_peers/amdkfd/version", "1.0\n")
	return []failure{
		{name: "a Radeon, or another display of AMD", machine: "radeon", code: "NoGPU", fixedOn: "instinct", fix: "Instinct"},
		{name: "an Instinct without driver", machine: "mixed", broken: noDriver, code: "GPUDriverNotLoaded", fixed: inState("ready"), fix: "modprobe"},
		{
			name: "amdgpu is not a client, and has none", machine: "instinct",
			broken: all(instinct, kernelHas(interfaceT, mlx5DMABuf)), code: "PeermemNotLoaded", fixed: registered, fix: "amdgpu-dkms",
		},
		{
			name: "amdgpu was loaded before the RDMA drivers", machine: "instinct",
			broken: all(instinct, listsOthers, kernelHas(interfaceT, registers, mlx5DMABuf)), code: "PeermemNotLoaded", fixed: registered, fix: "rocminfo",
		},
		{
			name: "amdgpu may be a client, and the stack lists none", from: github + "ROCm/rccl/issues/1377", machine: "instinct",
			broken: all(instinct, kernelHas(interfaceT, registers, mlx5DMABuf)), code: "MemoryPeersMissing", fixed: registered, fix: "ib_write_bw --use_rocm=0",
		},
		{
			name: "the same, and the kernel's configuration forbids DMA-BUF", from: github + "ROCm/rccl/pull/1328", machine: "instinct",
			broken: all(instinct, kernelHas(interfaceT, registers, mlx5DMABuf), kernelConfig("CONFIG_PCI_P2PDMA=y\n# CONFIG_DMABUF_MOVE_NOTIFY is not set\n")),
			code:   "MemoryPeersMissing", fixed: registered, fix: "a log of RCCL",
		},
		{
			name: "the kernel refuses amdgpu's search for the interface, which only its log tells", from: github + "ROCm/mori/pull/560", machine: "instinct",
			broken: all(instinct, kernelHas(interfaceT, registers, mlx5DMABuf)), code: "MemoryPeersMissing", fixed: registered, fix: "rebuild amdgpu-dkms",
		},
		{
			name: "the same, and DMA-BUF", from: github + "ROCm/mori/pull/481", machine: "instinct",
			broken: all(instinct, listsOthers, kernelHas(interfaceT, registers, mlx5DMABuf)), code: "PeermemNotLoaded", fixed: kernelConfig(options), fix: "use DMA-BUF",
		},
		{
			name: "amdgpu and no interface", machine: "instinct",
			broken: all(instinct, kernelHas(mlx5DMABuf)), code: "NoPeerMemoryPath", fixed: kernelConfig(options), fix: "DMA-BUF",
		},
		{
			name: "a kernel without PCI_P2PDMA", machine: "instinct",
			broken: all(instinct, kernelHas(mlx5DMABuf), kernelConfig("# CONFIG_PCI_P2PDMA is not set\n")), code: "KernelOptionMissing", fixed: kernelConfig(options), fix: "CONFIG_PCI_P2PDMA=y",
		},
		{
			name: "a kernel whose configuration cannot be read", machine: "instinct",
			broken: all(instinct, kernelHas(mlx5DMABuf)), code: "Unreadable", fixed: kernelConfig(options), fix: "/boot",
		},
		{
			name: "a small BAR", machine: "instinct",
			broken: all(instinct, ofGPU("mem_info_vram_total", gib), ofGPU("resource", bars(256))), code: "SmallBAR", fixed: ofGPU("resource", bars(1024)), fix: "firmware",
		},
		{name: "GPUs of two vendors, one without driver", machine: "mixed", code: "MixedGPUs", fixedOn: "pair", fix: "explain"},
	}
}
