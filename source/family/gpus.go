package family

// nvidia: NVIDIA supports GPUDirect RDMA on data-center and professional products, but
// not on GeForce, TITAN and the GB10 of DGX Spark (2e12, 2e2a). Device ids
// are from the README of the open kernel modules (595.45.04), which drive Turing and
// newer. The lowest id of Turing is 1e02, and the highest before it 1df6.
//
// GPUs that share memory with their CPU, "self-hosted" ones, have ranges of ids (open kernel
// modules, 595.45.04: kernel-open/nvidia/detect-self-hosted.h): Hopper, Blackwell. Those of Rubin are in
// later releases (610 and newer): 3041 was seen in kubevirt/kubevirt#19070, 307f in
// NVIDIA/k8s-test-infra#872.
//
// The driver (R580 and newer) demands a common bridge on Ampere Altra, AmpereOne 160
// and Grace (open kernel modules: nv-pci.c nv_grdma_pci_topology_supported, osinit.c
// _checkP2pChipsetSupport, ids from nvcst.h).
//
// The names of virtual GPUs end with the size of their memory in GiB and the letter of a
// series, as in "NVIDIA A30-8C", "GRID A100-1-5CME", or with the size alone (open kernel
// modules, 595.45.04: src/nvidia/generated/g_nv_name_released.h). Their PCI device ids are
// those of whole GPUs.
var nvidia = GPU{
	Name:             "nvidia",
	Vendor:           0x10de,
	Classes:          []uint16{0x0300, 0x0302}, // VGA, 3D
	UnsupportedNames: []string{"GeForce", "TITAN"},
	Unsupported:      DeviceIDs{0x2e12, 0x2e2a},
	Coherent: DeviceRanges{
		{0x2340, 0x237f}, // GH200
		{0x2940, 0x297f}, // GB200
		{0x31a1, 0x31a1},
		{0x31c0, 0x31ff}, // GB300
		{0x3040, 0x307f}, // Vera Rubin
		{0x30c0, 0x30ff},
	},
	SwitchClass:  0x0680,
	Driver:       "nvidia",
	GPUOperator:  true,
	VersionFile:  "proc/driver/nvidia/version",
	Information:  "proc/driver/nvidia/gpus",
	Nodes:        "dev/nvidia",
	VirtualNames: `-([0-9]{1,2}|[0-9]{1,3}[ABCQ][A-Z0-9]*)$`,
	Client: Client{
		// nvidia-peermem and its forerunner nv_peer_mem. Either fails to load where it
		// cannot register.
		Modules:     []string{"nvidia_peermem", "nv_peer_mem"},
		Directories: []string{"nv_mem", "nv_mem_nc"},
		Holder:      "nvidia_peermem",
	},
	OpenFrom:     0x1e00,
	ManagersFrom: 0x2900, // Blackwell: B200 is 2901
	CUDA:         true,
	// BAR1 in NVIDIA's count: BAR 1 or, where BAR 0 has 64 bits (Hopper and newer), BAR 2
	// (open kernel modules: nv-pci.c, nv_pci_probe; nv.h, NV_GPU_BAR_INDEX_FB).
	MemoryBAR: 1,
	CommonBridge: map[uint16]DeviceIDs{
		0x1def: {0xe000, 0xe00d, 0xe00e, 0xe010, 0xe100, 0xe110, 0xe200, 0xe201, 0xe202, 0xe203, 0xe204, 0xe205, 0xe206, 0xe207},
		0x10de: {0x22b1, 0x22b2, 0x22b3, 0x22b4, 0x22b8, 0x22b9},
	},
	Help: GPUHelp{
		Vendor: "NVIDIA", Product: "a data-center or professional GPU (the driver refuses GeForce, TITAN and GB10)",
		Operator: "the GPU Operator's driver container", Version: " (GPU Operator: driver.version)",
		Unbound: "`dmesg | grep NVRM` says why (most often a driver too old for the GPU, or proprietary kernel modules on a GPU that needs the open ones)",
		DMABuf:  "NCCL 2.13 and newer",
		Library: "NCCL", Limit: "PXB, P2C on Grace",
		Beyond: "reaches it through the CPU's C2C link or a data-direct function",
	},
}

// amd: AMD supports peer access from NICs on Instinct products, which have the class
// of display controllers up to MI200 and that of processing accelerators from MI300 on.
// Device ids are those of AMD's own rules for Node Feature Discovery (ROCm/gpu-operator,
// hack/k8s-patch, gpu-nfd-default-rule.yaml) and, for MI25, MI50 and MI60, those that
// pci.ids (2026.08.22) names Instinct. A new id of class 1200 counts: every known function
// of that class is an Instinct. Other displays of AMD are in servers' BMCs and in Ryzen CPUs,
// or Radeon cards.
//
// amdgpu-dkms looks for the interface with symbol_get, unless it was built where the sources of
// the RDMA drivers were (amd/dkms/m4/peer_direct.m4); then it is linked with them. Linux 6.6, and
// older kernels that took over the change ("modules: only allow symbol_get of EXPORT_SYMBOL_GPL
// modules"), refuse symbol_get of MOFED's interface, whose export is no GPL one (ROCm/mori PR#560).
//
// Linux 7.1 and newer have no option DMABUF_MOVE_NOTIFY: the feature is always built in. gim is AMD's driver for hosts of virtual machines.
var amd = GPU{
	Name:    "amd",
	Vendor:  0x1002,
	Classes: []uint16{0x0300, 0x0380, 0x1200}, // VGA, other display, processing accelerator
	Supported: DeviceIDs{
		0x6860, 0x6864, 0x686c, 0x66a0, 0x66a1, 0x7388, 0x738c, 0x738e, 0x7390, 0x7408, 0x740c, 0x740f, 0x7410,
	},
	SupportedClasses: []uint16{0x1200},
	Driver:           "amdgpu",
	Passthrough:      []string{"gim"},
	VersionFile:      "sys/module/amdgpu/version",
	RCCL:             true,
	HyperVPairs: DeviceIDs{ // gfx942 and gfx950
		0x74a0, 0x74a1, 0x74a2, 0x74a5, 0x74a8, 0x74a9, 0x74b5, 0x74b6, 0x74b9, 0x74bc, 0x74bd,
		0x75a0, 0x75a3, 0x75a8, 0x75b0, 0x75b3, 0x75b8,
	},
	// The driver itself is the client (ROCm/amdgpu, amdkfd/kfd_peerdirect.c).
	Client:        Client{Directories: []string{"amdkfd"}, AnyNIC: true, Symbol: "kfd_init_peer_direct", Holder: "amdgpu"},
	MemoryFile:    "mem_info_vram_total", // amdgpu_vram_mgr.c; the memory is BAR 0: gmc_v9_0.c, gmc_v9_0_mc_init
	Integrated:    DeviceIDs{0x74a0},     // MI300A
	PCIP2PDMA:     true,
	KernelOptions: []KernelOption{{Name: "PCI_P2PDMA"}, {Name: "DMABUF_MOVE_NOTIFY", Always: "DMA_SHARED_BUFFER", Gone: [2]int{7, 1}}},
	Help: GPUHelp{
		Vendor: "AMD", Product: "an Instinct GPU",
		Operator: "the driver of AMD's GPU Operator",
		Unbound:  "`dmesg | grep amdgpu` says why (most often a driver too old for the GPU)",
		Install:  "install amdgpu-dkms after the RDMA drivers (the kernel's own amdgpu is not a client)",
		Register: "start a ROCm program once (rocminfo), which registers it, or reload amdgpu",
		Refused:  "failing symbol_get of non-GPLONLY symbol ib_register_peer_memory_client",
		Rebuild:  "rebuild amdgpu-dkms where the RDMA drivers' sources are installed, so that it is linked with them",
		DMABuf:   "RCCL, older releases with NCCL_DMABUF_ENABLE=1",
		Library:  "RCCL", Limit: "PXB",
		Beyond: "pairs the two by their addresses under Hyper-V",
	},
}
