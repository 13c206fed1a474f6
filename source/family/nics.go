package family

// What remedies name for the NICs of NVIDIA.
const (
	mofed          = "MOFED / DOCA-OFED"
	mofedContainer = "the Network Operator's driver container"
	mlxlink        = "mlxlink"
	mlxLinkType    = "mlxconfig -d ADDRESS set LINK_TYPE_P1=1 (InfiniBand) or 2 (Ethernet), then reset the card"
	mlxFirmware    = "mlxfwmanager, or flint -d ADDRESS query, shows it: update it, then reset the card (mlxfwreset) or power cycle"
	mlxATS         = "`mlxconfig -d ADDRESS set ATS_ENABLED=true`, then a reboot"
)

// ethernetInfiniBand are the classes of NICs of both link layers.
var ethernetInfiniBand = []uint16{0x0200, 0x0207}

// mlx5: Connect-IB, ConnectX-4 and newer, BlueField. Every other id of vendor 15b3 is in
// this row too. Unsupported are the older and other products that pci.ids (2025.07.11)
// names: InfiniHost, ConnectX and ConnectX-2, network processors, and the switch chips
// Spectrum and Quantum. Unknown ids count as newer NICs.
//
// Each generation up to ConnectX-6 has an id for its virtual functions, all later ones
// share 101e (kernel: drivers/net/ethernet/mellanox/mlx5/core/main.c, id table).
// ConnectX-8 and ConnectX-9 have data-direct functions (kernel:
// drivers/infiniband/hw/mlx5/data_direct.c). rdma-core calls 2101 "ConnectX-10 NVLink-C2C"
// (providers/mlx5/mlx5.c, commit 0e0b5574f); no source says yet how it reaches GPU memory. The PSIDs of NICs that manage NVLink
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
	ForHost:        DeviceIDs{0x101f},                                         // ConnectX-6 Lx
	DPU:            DeviceIDs{0xa2d2, 0xa2d3, 0xa2d6, 0xa2d9, 0xa2dc, 0xa2df}, // BlueField to BlueField-4
	DataDirect:     DeviceIDs{0x2100},
	WithDataDirect: DeviceIDs{0x1023, 0x1025},
	OverC2C:        DeviceIDs{0x2101}, // ConnectX-10
	OwnSwitch:      true,              // BlueField, ConnectX-8
	NVLinkManagement: &NVLinkManagement{
		Narrow: DeviceIDs{0x1021}, // ConnectX-7
		Boards: []string{"MT_0000001121", "MT_0000001122", "MT_0000001181", "MT_0000001182", "NVD0000000079", "OMN0000000006"},
	},
	Drivers:     []string{"mlx5_core"},
	Module:      "mlx5_ib",
	MOFED:       true,
	DMABuf:      "mlx5_ib_reg_user_mr_dmabuf",
	PeerMemory:  PeerMemory{Core: true},
	IBGDA:       true,
	GPUOperator: true,
	NetDevMTU:   true,
	Uverbs: Uverbs{
		Driver: 1, // RDMA_DRIVER_MLX5
		// struct mlx5_ib_alloc_ucontext_req_v2 (include/uapi/rdma/mlx5-abi.h) as
		// rdma-core fills it in: 16 doorbell registers, 4 of them for low latency,
		// and the capabilities MLX5_LIB_CAP_4K_UAR and MLX5_LIB_CAP_DYN_UAR. With
		// the latter, Linux 5.7 and newer set no doorbell pages aside.
		Context: []uint32{16, 4, 0, 0, 0, 0, 3, 0},
	},
	Provider: Provider{
		// rdma-core providers/mlx5/libmlx5.map; NVIDIA/nccl src/misc/mlx5dvsymbols.cc
		DataDirect: []string{"mlx5dv_reg_dmabuf_mr@MLX5_1.25", "mlx5dv_get_data_direct_sysfs_path@MLX5_1.25"},
	},
	Help: Help{
		Product:     "ConnectX-4 or newer",
		DMABufStack: "Linux 5.12 or newer, or MOFED 5.5 or newer",
		PeerStack:   mofed,
		Operator:    mofedContainer,
		EnableRDMA:  "`devlink dev param set pci/ADDRESS name enable_rdma value true cmode driverinit`, then `devlink dev reload pci/ADDRESS` when nothing uses it",
		PortTool:    mlxlink, LinkType: mlxLinkType, Firmware: mlxFirmware, ATS: mlxATS,
	},
}

// mlx4: ConnectX-3 and ConnectX-3 Pro (kernel: drivers/net/ethernet/mellanox/mlx4/
// main.c, id table). The driver registers no DMA-BUF.
var mlx4 = NIC{
	Name:        "mlx4",
	Vendor:      0x15b3,
	Devices:     DeviceRanges{{0x1003, 0x1010}},
	Classes:     ethernetInfiniBand,
	Virtual:     DeviceIDs{0x1004},
	OwnSwitch:   true,
	Drivers:     []string{"mlx4_core"},
	Module:      "mlx4_ib",
	MOFED:       true,
	PeerMemory:  PeerMemory{Core: true},
	GPUOperator: true,
	Help: Help{
		Product:   "ConnectX-4 or newer",
		PeerStack: mofed,
		Operator:  mofedContainer,
		PortTool:  mlxlink, LinkType: mlxLinkType, Firmware: mlxFirmware, ATS: mlxATS,
	},
}

var ethernet = []uint16{0x0200}

// efa: the Elastic Fabric Adapter of AWS. The kernel has no name for its link layer, and
// its ports are always ACTIVE (kernel: drivers/infiniband/hw/efa/efa_verbs.c,
// efa_query_port). The file p2p of the out-of-tree driver names the GPUs whose memory it
// reaches without DMA-BUF. Releases before 2.6 have the file gdr instead: 1 if the GPU
// driver's interface was found (amzn/amzn-drivers, kernel/linux/efa, efa_sysfs.c, efa_p2p.c),
// but always 1 before 1.14.1. Releases before 2.17.3 do not know the interface of NVIDIA's
// driver 580 (RELEASENOTES.md). aws-ofi-nccl 1.13.2 to 1.19.1 does not use DMA-BUF on the
// first three generations.
//
// NCCL uses EFA through a plugin, which tells NCCL the PCI path of each NIC
// (aws/aws-ofi-nccl, src/nccl_ofi_net.cpp, get_device_pci_path). Unless NCCL_TOPO_FILE is
// set, the plugin sets it to a file of its own (src/platform-aws.cpp, platform_data_map).
// The directories are those of its packages for hosts and for NVIDIA's containers
// (contrib/fedora, contrib/debian-template), and one that is usual for builds from source.
// For p5 and newer there is no such file: the plugin writes one into memory at run time
// (src/nccl_ofi_rdma.cpp).
var efa = NIC{
	Name:       "efa",
	Vendor:     0x1d0f,
	Devices:    DeviceRanges{{0xefa0, 0xefa4}},
	Classes:    ethernet,
	Drivers:    []string{"efa"},
	Module:     "efa",
	DMABuf:     "efa_reg_user_mr_dmabuf",
	LinkLayers: []string{"Unspecified"},
	PeerMemory: PeerMemory{
		Files: []PeerFile{
			{Name: "p2p", Says: map[string][]string{"nvidia": {"NVIDIA", "NVIDIA peermem"}}},
			{Name: "gdr", Says: map[string][]string{"nvidia": {"1"}}, ProvenFrom: "1.14.1"},
		},
		Bridge:  "efa_nv_peermem",
		Package: "efa-nv-peermem of the EFA installer",
		Newest:  []DriverPair{{GPU: "nvidia", Driver: 580, Module: "2.17.3"}},
	},
	DMABufOff: DeviceIDs{0xefa0, 0xefa1, 0xefa2},
	// The plugin asks for it (aws-ofi-nccl, src/nccl_ofi_cuda.cpp, nccl_net_ofi_gpu_get_dma_buf_fd).
	PCIeMapping: true,
	// "The only instance types in EC2 that support GPUDirect RDMA are the P-series starting
	// with p4d" (AWS in aws/aws-ofi-nccl#547, 2025-08). g7e came later. The plugin demands
	// GPUDirect RDMA (src/platform-aws.cpp at 2daf7d30, gdr_required) on p4d, p4de, p5, p5e,
	// p5en, p6, newer P types, and g7e.12xlarge, .24xlarge and .48xlarge.
	NoGPUMemory: &Machines{
		Vendor: "Amazon EC2",
		Types: []string{
			"p3dn.",       // not demanded; aws/aws-ofi-nccl#104
			"p5.4xlarge",  // not demanded
			"g4dn.",       // not a P type: #547
			"g5.",         // not demanded on g5.48xlarge; #547
			"g6.",         // #547
			"g6e.",        // "the G6e hardware does not support GPUDirect RDMA": #547
			"gr6.",        // #547
			"g7e.8xlarge", // not demanded; "does not support GPUDirect RDMA": aws/aws-ofi-nccl PR#1057
		},
		Instead: "another instance type, one with GPUDirect RDMA: p4d, p4de, p5.48xlarge, p5e, p5en, p6 and newer P types, or g7e.12xlarge and larger",
	},
	NCCLPlugin: &NCCLPlugin{
		Name: "aws-ofi-nccl",
		TopologyFiles: map[string]string{
			"p4d.24xlarge":  "p4d-24xl-topo.xml",
			"p4de.24xlarge": "p4de-24xl-topo.xml",
			"g5.48xlarge":   "g5.48xl-topo.xml",
		},
		Directories: []string{
			"opt/amazon/ofi-nccl/share/aws-ofi-nccl/xml",
			"opt/amazon/aws-ofi-nccl/share/aws-ofi-nccl/xml",
			"opt/aws-ofi-nccl/share/aws-ofi-nccl/xml",
		},
		// aws-ofi-nccl doc/gin-getting-started.md at 2daf7d30: EFA-GDA.
		GPUStarts: &Machines{
			Vendor: "Amazon EC2", Types: []string{"p5en.", "p6-b200.", "p6-b300."},
			Instead: "p5en, p6-b200 or p6-b300",
		},
	},
	NetDevMTU: true,
	Uverbs: Uverbs{
		Driver: 17, // RDMA_DRIVER_EFA
		// struct efa_ibv_alloc_ucontext_cmd (include/uapi/rdma/efa-abi.h), with the two
		// capabilities that rdma-core sets: a device that has them refuses others.
		Context: []uint32{3, 0, 0, 0},
	},
	Help: Help{
		Product:     "EFA",
		DMABufStack: "Linux 5.16 or newer, or the EFA installer's driver",
		PeerStack:   "the EFA installer's packages efa and efa-nv-peermem",
	},
}

// bnxt_re: Broadcom's NetXtreme-E and newer. Thor (BCM5750X) and newer are supported, older
// ids are not (kernel: drivers/net/ethernet/broadcom/
// bnxt/bnxt.c, bnxt_pci_tbl, bnxt_vf_pciid). Broadcom's own stack brings ib_peer_mem.
var bnxtRE = NIC{
	Name:   "bnxt_re",
	Vendor: 0x14e4,
	Devices: DeviceRanges{
		{0x1604, 0x1609},
		{0x1614, 0x1614},
		{0x16bd, 0x16bd},
		{0x16c0, 0x16c5},
		{0x16c8, 0x16d9},
		{0x16dc, 0x16dc},
		{0x16de, 0x16df},
		{0x16e1, 0x16e3},
		{0x16e5, 0x16f1},
		{0x1750, 0x1752},
		{0x1760, 0x1763},
		{0x1800, 0x1809},
		{0x1819, 0x1819},
		{0x181b, 0x181b},
		{0xd800, 0xd800},
		{0xd802, 0xd802},
		{0xd804, 0xd804},
	},
	Classes:   ethernet,
	Supported: DeviceRanges{{0x1750, 0x1752}, {0x1760, 0x1763}, {0x1800, 0x1809}, {0x1819, 0x1819}, {0x181b, 0x181b}},
	Virtual: DeviceIDs{
		0x1606, 0x1607, 0x1608, 0x1609, 0x16bd, 0x16c1, 0x16c2, 0x16c3, 0x16c4, 0x16c5, 0x16cb, 0x16d3, 0x16dc, 0x16e1, 0x16e5, 0x16e6,
		0x1806, 0x1807, 0x1808, 0x1809, 0x1819, 0x181b, 0xd800,
	},
	Drivers:    []string{"bnxt_en"},
	Module:     "bnxt_re",
	DMABuf:     "bnxt_re_reg_user_mr_dmabuf",
	LinkLayers: []string{"Ethernet"},
	PeerMemory: PeerMemory{Module: "ib_peer_mem", Package: "netxtreme-peer-mem-dkms of Broadcom"},
	// ROCm/mori tools/env_check.sh, check_bnxt_version_recommendation; PR#471.
	NoIBGDA:   &Firmware{Branches: []string{"231", "232"}, Need: "237.1.137.0"},
	NetDevMTU: true,
	Uverbs: Uverbs{
		Driver:     6, // RDMA_DRIVER_BNXT_RE
		ABI:        1,
		VendorABIs: []int{6, 7, 8}, // sgl-project/sglang#16242, rajkiranjoshi/bnxt-oob-driver-k8s
		// struct bnxt_re_uctx_req (include/uapi/rdma/bnxt_re-abi.h) with what rdma-core
		// sets.
		Context: []uint32{3, 0, 0, 0},
	},
	Help: Help{
		Product:     "Broadcom BCM57500 (Thor) or newer",
		DMABufStack: "Linux 6.6 or newer, or Broadcom's own driver",
		PeerStack:   "Broadcom's own driver and its package netxtreme-peer-mem-dkms",
		Library:     "Broadcom's libbnxt_re",
	},
}

// ionic: AMD Pensando, such as Pollara 400 (kernel: drivers/net/ethernet/pensando/ionic/
// ionic.h; id 1004, in AMD's own driver, is only for management). AMD's own driver brings
// ib_peer_mem (ROCm/network-operator, docs/drivers).
var ionic = NIC{
	Name:    "ionic",
	Vendor:  0x1dd8,
	Devices: DeviceRanges{{0x1002, 0x1003}},
	Virtual: DeviceIDs{0x1003},
	Classes: ethernet,
	Drivers: []string{"ionic"},
	// ROCm/mori tools/env_check.sh, check_ainic_version_recommendation; PR#471.
	NoIBGDA:    &Firmware{Branches: []string{"1.117.1"}, Need: "1.117.5-a-45"},
	Module:     "ionic_rdma",
	DMABuf:     "ionic_reg_user_mr_dmabuf",
	LinkLayers: []string{"Ethernet"},
	PeerMemory: PeerMemory{Module: "ib_peer_mem", Package: "ionic-dkms of AMD"},
	NetDevMTU:  true,
	Uverbs: Uverbs{
		Driver:     21, // RDMA_DRIVER_IONIC
		ABI:        1,
		VendorABIs: []int{4}, // meta-pytorch/monarch, make_rdma_core_ainic; sgl-project/sglang PR#33374
		// struct ionic_ctx_req (include/uapi/rdma/ionic-abi.h), which is reserved.
		Context: []uint32{0, 0, 0, 0},
	},
	Provider: Provider{Since: "61"},
	Help: Help{
		Product:     "AMD Pensando",
		DMABufStack: "Linux 6.18 or newer, or AMD's package ionic-dkms",
		PeerStack:   "AMD's package ionic-dkms, which brings ib_peer_mem",
		Library:     "AMD's own libionic",
		Operator:    "AMD's network operator",
	},
}
