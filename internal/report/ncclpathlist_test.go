package report_test

// ncclPath is a path that NCCL or RCCL opens, lists or resolves.
type ncclPath struct {
	// path has %s for the name of a device, or a number. What is below the real path of a PCI
	// function is written as below /sys/bus/pci/devices, a link to the same place.
	path string
	// from are the file and function, in the commits that ncclPaths names.
	from string
	// same is a path from which this program has the same fact; "" for none.
	same string
	// why says why path is not read here; "" where it is.
	why string
}

// ncclPaths are from NVIDIA/nccl 5067397c2676 and, where "rccl" or "rocm-systems" is before the
// file, ROCm/rccl 0cbce2a7571c (October 2024) and ROCm/rocm-systems 0d92d17d37ab (projects/rccl). They are all
// below /sys and /proc in src/graph, src/transport, src/misc, src/os, and src/init.cc. What
// libraries open for them (libibverbs, libmlx5, NVML, ROCm SMI) is not among them.
var ncclPaths = []ncclPath{
	// The PCI tree.
	{
		path: "/sys/class/pci_bus/%s/../../%s", from: "src/os/linux.cc, ncclOsGetPciPath; rccl src/graph/xml.cc, getPciPath",
		same: "/sys/bus/pci/devices/%s", why: "the link leads to the same directory",
	},
	{path: "/sys/bus/pci/devices/%s/class", from: pciAttributes + "; src/os/linux.cc, ncclOsGetPciDeviceClassByBusId"},
	{path: "/sys/bus/pci/devices/%s/vendor", from: pciAttributes},
	{path: "/sys/bus/pci/devices/%s/device", from: pciAttributes},
	{path: "/sys/bus/pci/devices/%s/subsystem_vendor", from: pciAttributes},
	{path: "/sys/bus/pci/devices/%s/subsystem_device", from: pciAttributes},
	{path: "/sys/bus/pci/devices/%s/max_link_speed", from: pciAttributes},
	{path: "/sys/bus/pci/devices/%s/max_link_width", from: pciAttributes},
	{path: "/sys/bus/pci/devices/" + aPort + "/max_link_speed", from: pciAttributes + ", as ../max_link_speed"},
	{path: "/sys/bus/pci/devices/" + aPort + "/max_link_width", from: pciAttributes + ", as ../max_link_width"},
	{path: "/sys/bus/pci/devices/%s/numa_node", from: pciAttributes},
	{
		path: "/sys/bus/pci/devices/%s/subsystem", from: "src/graph/xml.cc, ncclTopoGetSubsystem",
		same: "/sys/bus/pci/devices/%s", why: "every function is there; its link shows the bridges above",
	},
	{path: "/sys/kernel/pci_switch_link/virtual_switch_links/%s", from: "src/os/linux.cc, ncclOsGetBcmLinks"},
	{
		path: "/sys/kernel/pci_switch_link/refresh_switch_toplogy", from: "src/graph/topo.cc, ncclTopoRefreshBcmP2pLinks",
		why: "reading it makes the driver scan the switches again: this program changes nothing",
	},
	{
		path: "/sys/devices/system/node/node%s/cpumap", from: "src/os/linux.cc, ncclOsGetNumaNodeAffinity; rccl src/graph/xml.cc, ncclTopoGetXmlFromCpu",
		why: "which CPUs threads are pinned to; it moves no path",
	},

	// RDMA devices.
	{
		path: "/sys/class/infiniband/%s/device", from: "src/transport/net_ib/init.cc, ncclIbGetPciPath; rccl src/transport/net_ib.cc, same function",
		same: "/sys/class/infiniband/%s", why: "the link to the RDMA device goes through its PCI function",
	},
	{path: "/sys/class/infiniband/%s/ports/%s/gid_attrs/types/%s", from: "src/transport/net_ib/connect.cc, ncclIbRoceGetVersionNum; rccl src/transport/net_ib.cc, same function"},

	// Peer memory clients, and what RCCL asks beside them.
	{path: "/sys/kernel/mm/memory_peers/nv_mem/version", from: gdrSupport},
	{path: "/sys/kernel/mm/memory_peers/nv_mem_nc/version", from: gdrSupport},
	{path: "/sys/module/nvidia_peermem/version", from: gdrSupport + ", ibPeerMemSupportInitOnce"},
	{path: "/sys/kernel/mm/memory_peers/amdkfd/version", from: rcclGDR},
	{
		path: "/sys/kernel/memory_peers/amdkfd/version", from: rcclGDR,
		same: "/sys/kernel/memory_peers/amdkfd", why: "the client's directory is asked for",
	},
	{
		path: "/sys/memory_peers/amdkfd/version", from: rcclGDR,
		same: "/sys/memory_peers/amdkfd", why: "the client's directory is asked for",
	},
	{path: "/sys/kernel/mm/memory_peers/%s", from: scanClients},
	{path: "/sys/kernel/memory_peers/%s", from: scanClients},
	{path: "/sys/memory_peers/%s", from: scanClients},
	{
		path: "/sys/kernel/mm/memory_peers/nvidia-peermem/version", from: rcclGDR + ", as built for CUDA",
		same: "/sys/module/nvidia_peermem/version", why: "RCCL built for CUDA; the module's own directory shows it",
	},
	{path: "/proc/kallsyms", from: rcclGDR},
	{
		path: "/sys/devices/virtual/dmi/id/bios_version", from: rcclGDR + "; rccl src/graph/paths.cc, ncclTopoComputePaths; rccl src/init.cc, ncclInit",
		same: "/sys/class/dmi/id/bios_version", why: "a link leads to the same directory",
	},
	{path: "/proc/sys/kernel/numa_balancing", from: rcclGDR + "; rccl src/init.cc, ncclInit"},
	{
		path: "/proc/version", from: "rccl src/init.cc, ncclInit",
		same: "/proc/sys/kernel/osrelease", why: "the release of the kernel, and no more, is taken from it",
	},
	{path: "/proc/cmdline", from: "rccl src/init.cc, ncclInit"},

	// Links between AMD GPUs.
	{path: "/sys/class/kfd/kfd/topology/nodes", from: "rccl src/misc/alt_rsmi.cc, ARSMI_init", why: xgmi},
	{path: "/sys/class/kfd/kfd/topology/nodes/%s/gpu_id", from: "rccl src/misc/alt_rsmi.cc, readGpuId", why: xgmi},
	{path: "/sys/class/kfd/kfd/topology/nodes/%s/properties", from: "rccl src/misc/alt_rsmi.cc, ARSMI_readDeviceProperties", why: xgmi},
	{path: "/sys/class/kfd/kfd/topology/nodes/%s/io_links", from: "rccl src/misc/alt_rsmi.cc, countIoLinks", why: xgmi},
	{path: "/sys/class/kfd/kfd/topology/nodes/%s/io_links/%s/properties", from: "rccl src/misc/alt_rsmi.cc, openLinkFile", why: xgmi},

	// What is not about GPUs and RDMA devices.
	{path: "/sys/class/net/%s/speed", from: "src/transport/net_socket.cc, ncclNetSocketGetSpeed", why: sockets},
	{path: "/sys/class/net/%s/device/vendor", from: "src/transport/net_socket.cc, ncclNetSocketGetNsockNthread", why: sockets},
	{
		path: "/sys/class/net/%s/device", from: "src/transport/net_socket.cc, ncclNetSocketGetPciPath",
		why: sockets + "; read in a container alone, for the routes",
	},
	{path: "/proc/sys/kernel/random/boot_id", from: "src/misc/utils.cc, getHostHashOnce; rccl src/misc/utils.cc, getHostHash", why: "it tells hosts apart"},
	{path: "/proc/self/ns/pid", from: "src/misc/utils.cc, getPidHash; rccl, same function", why: "it tells processes apart"},
}

// Functions that open several of the paths.
const (
	pciAttributes = "src/graph/xml.cc, ncclTopoGetXmlFromSys; rccl, same function"
	gdrSupport    = "src/transport/net_ib/gdr.cc, ibGdrSupportInitOnce"
	rcclGDR       = "rccl src/transport/net_ib.cc, ncclIbGdrSupport"
	scanClients   = "rocm-systems src/transport/net_ib/gdr.cc, ibGdrSupportInitOnce (ncclIbScanPeerMemClients)"
)

// aPort is a port of a switch of made-broadcom-partitions, with a GPU below it.
const aPort = "0000:8c:01.0"

// Reasons for several of the paths.
const (
	xgmi    = "links between GPUs: how near a NIC is does not follow from them"
	sockets = "of the socket transport, which does without RDMA"
)
