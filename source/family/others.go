package family

// Families that are listed, and count only if they are selected. Nobody has published that
// GPUDirect RDMA works with them on GPU nodes, or they reach GPU memory by another way than
// verbs, or not at all. Ids are of the kernel's drivers (6.12) and of rdma-core's providers (v64).

// irdma: Intel E810, E82x, E830, X722 and the IPUs (kernel: drivers/net/ethernet/intel/ice/
// ice_devids.h, i40e/i40e_devids.h, idpf/idpf_devids.h). Its iWARP ports are Ethernet too, and
// NCCL needs RoCE.
var irdma = NIC{
	Name:   "irdma",
	Vendor: 0x8086,
	Devices: DeviceRanges{
		{0x0dda, 0x0dda},
		{0x124c, 0x124f},
		{0x12d1, 0x12d5},
		{0x12d8, 0x12d8},
		{0x12da, 0x12da},
		{0x12dc, 0x12de},
		{0x1452, 0x1452},
		{0x145c, 0x145c},
		{0x151d, 0x151d},
		{0x1591, 0x1593},
		{0x1599, 0x159b},
		{0x1888, 0x1888},
		{0x188a, 0x188e},
		{0x1890, 0x1894},
		{0x1897, 0x189a},
		{0x374c, 0x374d},
		{0x37cd, 0x37d3},
		{0x37d9, 0x37d9},
		{0x579c, 0x579f},
	},
	Virtual:    DeviceIDs{0x145c, 0x374d, 0x37cd, 0x37d9},
	Classes:    ethernet,
	Drivers:    []string{"ice", "i40e", "idpf"},
	Module:     "irdma",
	DMABuf:     "irdma_reg_user_mr_dmabuf",
	LinkLayers: []string{"Ethernet"},
	Uverbs: Uverbs{
		Driver: 9, // RDMA_DRIVER_IRDMA
		// struct irdma_alloc_ucontext_req (include/uapi/rdma/irdma-abi.h): version 5, raw
		// attributes and the second format of work requests, as rdma-core asks for.
		Context: []uint32{0, 5, 9, 0},
	},
	Help: Help{Product: "Intel E810 or newer with RoCE", DMABufStack: "Linux 6.3 or newer"},
}

// mana: Microsoft Azure Network Adapter (kernel: include/net/mana/gdma.h).
var mana = NIC{
	Name:       "mana_ib",
	Vendor:     0x1414,
	Devices:    DeviceRanges{{0x00b9, 0x00ba}},
	Virtual:    DeviceIDs{0x00ba},
	Classes:    ethernet,
	Drivers:    []string{"mana"},
	Module:     "mana_ib",
	DMABuf:     "mana_ib_reg_user_mr_dmabuf",
	LinkLayers: []string{"Ethernet"},
	Uverbs:     Uverbs{Driver: 20}, // RDMA_DRIVER_MANA, whose context takes no request
	Provider:   Provider{Name: "mana"},
	Help:       Help{Product: "MANA", DMABufStack: "Linux 6.15 or newer"},
}

// erdma: Elastic RDMA of Alibaba Cloud (kernel: drivers/infiniband/hw/erdma/erdma_main.c).
var erdma = NIC{
	Name:       "erdma",
	Vendor:     0x1ded,
	Devices:    DeviceRanges{{0x107f, 0x107f}},
	Classes:    ethernet,
	Drivers:    []string{"erdma"},
	Module:     "erdma",
	DMABuf:     "erdma_reg_user_mr_dmabuf", // proposed for Linux in 2026
	LinkLayers: []string{"Ethernet"},
	Help:       Help{Product: "eRDMA"},
}

// hns: Huawei's HNS (kernel: drivers/infiniband/hw/hns/hns_roce_hw_v2.c).
var hns = NIC{
	Name:       "hns_roce",
	Vendor:     0x19e5,
	Devices:    DeviceRanges{{0xa222, 0xa228}, {0xa22f, 0xa22f}},
	Virtual:    DeviceIDs{0xa22f},
	Classes:    ethernet,
	Drivers:    []string{"hns3"},
	Module:     "hns_roce_hw_v2",
	LinkLayers: []string{"Ethernet"},
	Provider:   Provider{Name: "hns"},
	Help:       Help{Product: "HNS RoCE"},
}

// qedr: Marvell FastLinQ (kernel: drivers/net/ethernet/qlogic/qede/qede_main.c).
var qedr = NIC{
	Name:   "qedr",
	Vendor: 0x1077,
	Devices: DeviceRanges{
		{0x1629, 0x1629},
		{0x1634, 0x1634},
		{0x1636, 0x1636},
		{0x1644, 0x1644},
		{0x1654, 0x1654},
		{0x1656, 0x1656},
		{0x1664, 0x1664},
		{0x1666, 0x1666},
		{0x8070, 0x8070},
		{0x8090, 0x8090},
		{0x8170, 0x8170},
		{0x8190, 0x8190},
	},
	Virtual:    DeviceIDs{0x1664, 0x8090, 0x8190},
	Classes:    ethernet,
	Drivers:    []string{"qede"},
	Module:     "qedr",
	LinkLayers: []string{"Ethernet"},
	Help:       Help{Product: "FastLinQ 41000 or 45000"},
}

// hfi1: Omni-Path (kernel: drivers/infiniband/hw/hfi1/hfi.h). Its ports say InfiniBand,
// and GPUs are reached through its own libraries, not through verbs.
var hfi1 = NIC{
	Name:       "hfi1",
	Vendor:     0x8086,
	Devices:    DeviceRanges{{0x24f0, 0x24f1}},
	Classes:    []uint16{0x0207, 0x0208},
	Drivers:    []string{"hfi1"},
	Module:     "hfi1",
	LinkLayers: []string{"InfiniBand"},
	Provider:   Provider{Name: "hfi1verbs"},
	Help:       Help{Product: "Omni-Path"},
}

// cxgb4: Chelsio T4 to T6. Function 4 of a card is the one with RDMA (kernel: drivers/net/
// ethernet/chelsio/cxgb4/t4_pci_id_tbl.h).
var cxgb4 = NIC{
	Name:       "cxgb4",
	Vendor:     0x1425,
	Devices:    DeviceRanges{{0x4400, 0x44ff}, {0x5400, 0x54ff}, {0x6400, 0x64ff}},
	Classes:    ethernet,
	Drivers:    []string{"cxgb4"},
	Module:     "iw_cxgb4",
	LinkLayers: []string{"Ethernet"},
	Help:       Help{Product: "Chelsio T4 or newer"},
}

// usnic: Cisco usNIC (kernel: drivers/infiniband/hw/usnic/usnic.h), which has no RDMA writes.
var usnic = NIC{
	Name:       "usnic",
	Vendor:     0x1137,
	Devices:    DeviceRanges{{0x00cf, 0x00cf}},
	Classes:    ethernet,
	Drivers:    []string{"usnic_verbs", "enic"},
	Module:     "usnic_verbs",
	LinkLayers: []string{"Ethernet"},
	Help:       Help{Product: "Cisco usNIC"},
}

// ocrdma: Emulex OneConnect (rdma-core: providers/ocrdma/ocrdma_main.c).
var ocrdma = NIC{
	Name:       "ocrdma",
	Vendor:     0x10df,
	Devices:    DeviceRanges{{0x0720, 0x0720}, {0x0728, 0x0728}, {0xe220, 0xe220}},
	Virtual:    DeviceIDs{0x0728},
	Classes:    ethernet,
	Drivers:    []string{"be2net"},
	Module:     "ocrdma",
	LinkLayers: []string{"Ethernet"},
	Help:       Help{Product: "Emulex OneConnect"},
}

// pvrdma: VMware's paravirtual device (rdma-core: providers/vmw_pvrdma/pvrdma_main.c).
var pvrdma = NIC{
	Name:       "vmw_pvrdma",
	Vendor:     0x15ad,
	Devices:    DeviceRanges{{0x0820, 0x0820}},
	Classes:    []uint16{0x0200, 0x0280},
	Drivers:    []string{"vmw_pvrdma"},
	Module:     "vmw_pvrdma",
	LinkLayers: []string{"Ethernet"},
	Help:       Help{Product: "VMware PVRDMA"},
}

// qib: QLogic InfiniPath (rdma-core: providers/ipathverbs/ipathverbs.c).
var qib = NIC{
	Name:       "qib",
	Vendor:     0x1077,
	Devices:    DeviceRanges{{0x7220, 0x7220}, {0x7322, 0x7322}},
	Classes:    []uint16{0x0206, 0x0207, 0x0280},
	Drivers:    []string{"ib_qib"},
	Module:     "ib_qib",
	LinkLayers: []string{"InfiniBand"},
	Provider:   Provider{Name: "ipathverbs"},
	Help:       Help{Product: "InfiniPath"},
}

// cxi: HPE Slingshot with Cassini (HewlettPackard/shs-cxi-driver, drivers/net/ethernet/hpe/ss1/
// cass_core.h, PCI_DEVICE_ID_CASSINI_1, and CXI_MODULE_NAME). Programs use it through libfabric, not
// through verbs, and the driver gives it no RDMA device: a node of Perlmutter shows the four network
// devices hsn0 to hsn3 and nothing below /sys/class/infiniband. NCCL reaches GPU memory through its
// plugin for libfabric, of which no file of /sys or /proc tells.
var cxi = NIC{
	Name:    "cxi",
	Vendor:  0x17db,
	Devices: DeviceRanges{{0x0501, 0x0501}},
	Classes: ethernet,
	Drivers: []string{"cxi_ss1"},
	Help:    Help{Product: "HPE Slingshot"},
}

// cxi2: the same with Cassini 2 (cass_core.h, PCI_DEVICE_ID_CASSINI_2, of vendor HPE).
var cxi2 = NIC{
	Name:    "cxi2",
	Vendor:  0x1590,
	Devices: DeviceRanges{{0x0371, 0x0371}},
	Classes: ethernet,
	Drivers: []string{"cxi_ss1"},
	Help:    Help{Product: "HPE Slingshot 400"},
}
