package family

// nvidia: NVIDIA supports GPUDirect RDMA on data-center and professional products,
// not on GeForce and TITAN, and not on the GB10 of DGX Spark (2e12, 2e2a). Device ids
// are from the README of the open kernel modules (595.45.04). The lowest of Turing,
// the first generation that these drive, is 1e02, and the highest before it 1df6.
// GPUs that share memory with a Grace CPU are GH200, GB200 and GB300 (kernel:
// drivers/vfio/pci/nvgrace-gpu/main.c, 6.18).
//
// The driver (R580 and newer) demands a common bridge on Ampere Altra, AmpereOne 160
// and Grace (open kernel modules: nv-pci.c nv_grdma_pci_topology_supported, osinit.c
// _checkP2pChipsetSupport, ids from nvcst.h).
var nvidia = GPU{
	Name:             "nvidia",
	Vendor:           0x10de,
	Classes:          []uint16{0x0300, 0x0302}, // VGA, 3D
	UnsupportedNames: []string{"GeForce", "TITAN"},
	Unsupported:      DeviceIDs{0x2e12, 0x2e2a},
	Coherent:         DeviceIDs{0x2342, 0x2345, 0x2348, 0x2941, 0x31c2},
	SwitchClass:      0x0680,
	Driver:           "nvidia",
	Passthrough:      []string{"vfio-pci"},
	VersionFile:      "proc/driver/nvidia/version",
	Client: Client{
		// nvidia-peermem and its forerunner nv_peer_mem. Either fails to load where it
		// cannot register.
		Modules:     []string{"nvidia_peermem", "nv_peer_mem"},
		Directories: []string{"nv_mem", "nv_mem_nc"},
		Holder:      "nvidia_peermem",
	},
	OpenFrom: 0x1e00,
	CommonBridge: map[uint16]DeviceIDs{
		0x1def: {0xe000, 0xe00d, 0xe00e, 0xe010, 0xe100, 0xe110, 0xe200, 0xe201, 0xe202, 0xe203, 0xe204, 0xe205, 0xe206, 0xe207},
		0x10de: {0x22b1, 0x22b2, 0x22b3, 0x22b4, 0x22b8, 0x22b9},
	},
}

// ethernetInfiniBand are the classes of NICs of both link layers.
var ethernetInfiniBand = []uint16{0x0200, 0x0207}

// mlx5: Connect-IB, ConnectX-4 and newer, BlueField. Every other id of vendor 15b3
// is in this row too: those that are not known count as newer, and those that are
// (pci.ids 2025.07.11) are unsupported. These are InfiniHost, ConnectX and ConnectX-2,
// network processors, and the switch chips Spectrum and Quantum.
//
// Each generation up to ConnectX-6 has an id for its virtual functions, all later ones
// share 101e (kernel: drivers/net/ethernet/mellanox/mlx5/core/main.c, id table).
// ConnectX-8 and ConnectX-9 have data-direct functions (kernel:
// drivers/infiniband/hw/mlx5/data_direct.c). The PSIDs of NICs that manage NVLink
// switches are of B200 and B300 baseboards (mstflint, boards named Canoe; scitix/sichek).
var mlx5 = NIC{
	Name:    "mlx5",
	Vendor:  0x15b3,
	Devices: DeviceRanges{{0, 0x1002}, {0x1011, 0xffff}},
	Classes: ethernetInfiniBand,
	Unsupported: DeviceIDs{
		0x5274, 0x5a44, 0x5a45, 0x5a46, 0x5e8c, 0x5e8d, 0x6274, 0x6278, 0x6279, 0x6282,
		0x1002, 0x6340, 0x634a, 0x6354, 0x6368, 0x6372, 0x6732, 0x673c, 0x6746, 0x6750, 0x675a, 0x6764, 0x676e, 0x6778,
		0x7101, 0x7102, 0x7103, 0x7121, 0x7122, 0x7123, 0x8200,
		0xc738, 0xc739, 0xc838, 0xc839, 0xcb84, 0xcf08, 0xcf6c, 0xcf70, 0xcf80, 0xcf82, 0xcf84, 0xcf86,
		0xd2f0, 0xd2f2, 0xd2f4, 0xd2f6, 0xd2f8, 0xd2fa, 0xd2fc,
	},
	Virtual:        DeviceIDs{0x1002, 0x1012, 0x1014, 0x1016, 0x1018, 0x101a, 0x101c, 0x101e, 0xa2d3},
	DataDirect:     DeviceIDs{0x2100},
	WithDataDirect: DeviceIDs{0x1023, 0x1025},
	OwnSwitch:      true, // BlueField, ConnectX-8
	NVLinkManagement: &NVLinkManagement{
		Narrow: DeviceIDs{0x1021}, // ConnectX-7
		Boards: []string{"MT_0000001121", "MT_0000001122", "MT_0000001181", "MT_0000001182", "NVD0000000079", "OMN0000000006"},
	},
	Drivers:    []string{"mlx5_core"},
	Module:     "mlx5_ib",
	MOFED:      true,
	DMABuf:     "mlx5_ib_reg_user_mr_dmabuf",
	PeerMemory: PeerMemory{Core: true},
	Uverbs: Uverbs{
		Driver: 1, // RDMA_DRIVER_MLX5
		// struct mlx5_ib_alloc_ucontext_req_v2 (include/uapi/rdma/mlx5-abi.h) as
		// rdma-core fills it in: 16 doorbell registers, 4 of them for low latency,
		// and the capabilities MLX5_LIB_CAP_4K_UAR and MLX5_LIB_CAP_DYN_UAR. With
		// the latter, Linux 5.7 and newer set no doorbell pages aside.
		Context: []uint32{16, 4, 0, 0, 0, 0, 3, 0},
	},
	Help: Help{
		Product:     "ConnectX-4 or newer",
		DMABufStack: "Linux 5.12 or newer, or MOFED 5.5 or newer",
		Operator:    "the Network Operator's driver container",
		EnableRDMA:  "devlink dev param set pci/ADDRESS name enable_rdma value true cmode driverinit, then devlink dev reload pci/ADDRESS when nothing uses it",
	},
}

// mlx4: ConnectX-3 and ConnectX-3 Pro (kernel: drivers/net/ethernet/mellanox/mlx4/
// main.c, id table). The driver registers no DMA-BUF.
var mlx4 = NIC{
	Name:       "mlx4",
	Vendor:     0x15b3,
	Devices:    DeviceRanges{{0x1003, 0x1010}},
	Classes:    ethernetInfiniBand,
	Virtual:    DeviceIDs{0x1004},
	OwnSwitch:  true,
	Drivers:    []string{"mlx4_core"},
	Module:     "mlx4_ib",
	MOFED:      true,
	PeerMemory: PeerMemory{Core: true},
	Help: Help{
		Product:  "ConnectX-4 or newer",
		Operator: "the Network Operator's driver container",
	},
}
