package findings_test

import (
	"slices"
	"strings"

	"gdr-features/test/machine"
	"gdr-features/tristate"
)

const (
	numaBalancing = "proc/sys/kernel/numa_balancing"

	github = "https://github.com/"
	p6e    = "aws-p6e-gb300-group"
	// partitions are two of a Broadcom switch, with a link between them.
	partitions = "made-broadcom-partitions"
	talos      = github + "siderolabs/talos/issues/12021"
)

// failures are the ways in which GPUDirect RDMA is reported to fail, each with its report, and
// then those that no report was found for.
func failures() []failure {
	return slices.Concat(reported(), withoutTrace(), unreported(), otherNICs(), otherGPUs(), linkFailures(), networkFailures(), apartFailures(), doubtFailures(), missingFailures())
}

func reported() []failure {
	return append(reportedPeermem(), reportedPlatform()...)
}

func reportedPeermem() []failure {
	notLoaded := all(proprietary, unloaded)
	stubHere := all(notLoaded, inbox, onDisk("", stub))
	return []failure{
		{
			name: "the module file is a stub, on the kernel's own RDMA drivers", from: talos,
			broken: stubHere, code: "PeermemStub", fixed: all(symbols(true, "ib_uverbs"), onDisk("", forUverbs)), fix: "DMA-BUF",
		},
		{
			name: "the module wants a symbol that the running kernel lacks", from: github + "Mellanox/nv_peer_memory/issues/79",
			broken: all(notLoaded, inbox, onDisk("", forMOFED)), code: "PeermemUnknownSymbol", fixed: symbols(true, "ib_uverbs"),
		},
		{
			name: "MOFED on disk has the symbol, the drivers that run do not", from: github + "Mellanox/nv_peer_memory/issues/84",
			broken: all(notLoaded, symbols(false, ""), onDisk("", forUverbs)), code: "PeermemUnknownSymbol", fixed: symbols(true, "ib_uverbs"), fix: "openibd restart",
		},
		{
			name: "the module disagrees about the symbol's version, which no file shows", from: github + "NVIDIA/gpu-operator/issues/2868",
			broken: all(notLoaded, onDisk("", forUverbs)), code: "PeermemNotLoaded", fixed: loaded, fix: "disagrees about version of symbol, rebuild the GPU driver",
		},
		{
			name: "the symbol's owner on disk is not the one that runs", from: github + "NVIDIA/gpu-operator/issues/2844",
			broken: all(notLoaded, symbols(true, "ib_core"), onDisk("", forUverbs)), code: "PeermemSymbolMismatch", fixed: symbols(true, "ib_uverbs"),
		},
		{
			name: "nv_peer_mem was built for another RDMA stack", from: github + "Mellanox/nv_peer_memory/issues/63",
			broken: all(notLoaded, onDisk("", legacyCore)), code: "PeermemSymbolMismatch", fixed: symbols(true, "ib_core"),
		},
		{
			name: "loaded, and no client in memory_peers", from: github + "NVIDIA/nccl/issues/1939",
			broken: proprietary, code: "MemoryPeersMissing", fixed: clientDir, fix: "NCCL 2.23",
		},
		{
			name: "nvidia-peermem took the place of nv_peer_mem", from: github + "NVIDIA/nccl/issues/1676",
			broken: proprietary, code: "MemoryPeersMissing", fixed: func(s *machine.State) { s.Open = true },
		},
		{
			name: "the same on a newer kernel", from: github + "NVIDIA/nccl/issues/1537",
			broken: all(proprietary, func(s *machine.State) { s.NVIDIA, s.MOFED = "555.42.02", "24.04-0.6.6" }), code: "MemoryPeersMissing", fixed: clientDir,
		},
		{
			name: "not loaded", from: github + "NVIDIA/nccl/issues/1343", machine: "a40-8gpu-2cx7-nccl1343",
			broken: notLoaded, code: "PeermemNotLoaded", fixed: loaded, fix: "modprobe nvidia-peermem",
		},
		{
			name: "the image has no such module; gdrdrv is no proof", from: github + "Azure/azhpc-images/issues/316",
			broken: all(notLoaded, onDisk("", ""), file("sys/module/gdrdrv/initstate", "live\n")), code: "PeermemNotInstalled", fixed: onDisk("", forUverbs),
		},
		{
			name: "gone when the RDMA drivers were loaded anew", from: github + "Azure/aks-rdma-infiniband/issues/50",
			broken: all(unloaded, driverCtr("true"), mofedIsUp), code: "PeermemSidecar", fixed: loaded, fix: "nvidia-peermem-ctr",
		},
		{
			name: "a restart of the RDMA drivers stops at peermem", from: github + "Mellanox/doca-driver-build/pull/481",
			broken: all(noNIC, file("sys/module/ib_uverbs/holders/nvidia_peermem", ""), file("sys/module/nvidia_peermem/refcnt", "3\n")),
			code:   "OFEDReloadBlocked", fixed: withNIC, fix: "end the jobs",
		},
		{
			name: "the driver's container has user space only", from: github + "NVIDIA/gpu-operator/issues/2619",
			broken: all(notLoaded, driverCtr("true"), mofedIsUp, onDisk(driverRoot, "")), code: "PeermemNotInstalled", fixed: onDisk(driverRoot, forUverbs), fix: "driver Pod",
		},
		{
			name: "waiting for a MOFED container, with drivers of the host", from: github + "NVIDIA/gpu-operator/issues/2685",
			broken: all(unloaded, driverCtr("true")), code: "OperatorsWait", fixed: mofedIsUp, fix: "useHostMofed=true",
		},
		{
			name: "the GPU driver waits for the RDMA drivers", from: github + "NVIDIA/aicr/issues/2499",
			broken: all(noDriver, noNIC, unloaded, gpuOperator), code: "OperatorsWait", fixed: mofedIsUp,
		},
		{
			name: "the container that loads it fails", from: github + "NVIDIA/gpu-operator/issues/609",
			broken: all(notLoaded, driverCtr("true"), mofedIsUp), code: "PeermemSidecar", fixed: loaded, fix: "kubectl logs -c nvidia-peermem-ctr",
		},
	}
}

func reportedPlatform() []failure {
	return []failure{
		{
			name: "the RDMA drivers have no DMA-BUF", from: github + "NVIDIA/nccl/issues/778",
			broken: all(unloaded, func(s *machine.State) { s.Symbols = s.Symbols[:1] }), code: "NoDMABuf", fixed: symbols(true, "ib_uverbs"),
		},
		{
			name: "the RDMA devices refuse DMA-BUF", from: github + "NVIDIA/nccl/issues/778",
			broken: unloaded, asked: tristate.False, code: "DMABufRefused", fix: "ON_DEMAND_PAGING",
		},
		{
			name: "the proprietary driver cannot export DMA-BUF", from: github + "microsoft/mscclpp/issues/657",
			broken: all(proprietary, unloaded), code: "ClosedDriver", fixed: func(s *machine.State) { s.Open = true }, fix: "open kernel modules",
		},
		{
			name: "the NICs near the GPU are down", from: github + "ai-dynamo/nixl/pull/1768",
			broken: file("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n"), code: "NearPortDown", fixed: file("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"),
		},
		{
			name: "the rail of a data-direct NIC is down", from: github + "ai-dynamo/nixl/pull/1768", machine: "gb300-datadirect",
			broken: file("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n"), code: "NearPortDown", fixed: file("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"), fix: "UCX_IB_DIRECT_NIC=n",
		},
		{
			name: "a GPU and the data-direct function beside it are kept apart", from: github + "ai-dynamo/nixl/pull/1694", machine: "apart",
			code: "DataDirectApart", fixedOn: "gb300-datadirect", fix: "rdma_topo",
		},
		{
			name: "the same with the parameter that allows it", from: github + "ai-dynamo/nixl/pull/1694", machine: "apart",
			broken: topoCheck("580.142", "0"), code: "DataDirectApart", fixed: topoCheck("580.142", "1"),
		},
		{
			name: "the same with R595, which has no such parameter", from: github + "ai-dynamo/nixl/pull/1694", machine: "apart",
			broken: topoCheck("595.91.07", ""), code: "DataDirectApart", fixedOn: "gb300-datadirect", fix: "rdma_topo",
		},
		{
			name: "R595 and an EFA without IOMMU group below another root port", from: github + "NVIDIA/aicr/issues/2459", machine: p6e,
			broken: all(onlyEFA, topoCheck("595.91.07", "")), code: "DriverRefusesPlace", fixed: topoCheck("580.173.02", "1"), fix: "one IOMMU group; or put a NIC that has no IOMMU group below one PCIe bridge",
		},
		{
			name: "R595 and an EFA in another IOMMU group", from: github + "NVIDIA/aicr/issues/2459", machine: "p6e in two groups",
			broken: all(onlyEFA, topoCheck("595.91.07", "")), code: "DriverRefusesPlace", fixed: topoCheck("580.173.02", "1"), fix: "or use GPU driver R580",
		},
		{name: "R595 and another id of a GB300", from: github + "NVIDIA/aicr/issues/2459", machine: "p6e, another GB300", broken: all(onlyEFA, topoCheck("595.91.07", "")), code: "DriverRefusesPlace", fixed: topoCheck("580.173.02", "1")},
		{name: "R610 and newer, and a Rubin", from: github + "kubevirt/kubevirt/pull/19070", machine: "p6e, Rubin", broken: all(onlyEFA, topoCheck("615.23", "")), code: "DriverRefusesPlace", fixedOn: "p6e in one group"},
		{name: "R595 with one IOMMU group", from: github + "NVIDIA/aicr/pull/2439", machine: p6e, broken: all(onlyEFA, topoCheck("595.91.07", "")), code: "DriverRefusesPlace", fixedOn: "p6e in one group"},
		{name: "R595 without any IOMMU group", from: github + "NVIDIA/aicr/pull/2439", machine: p6e, broken: all(onlyEFA, topoCheck("595.91.07", "")), code: "DriverRefusesPlace", fixedOn: "p6e without IOMMU"},
		{name: "R595 with one root port", from: github + "NVIDIA/aicr/pull/2439", machine: p6e, broken: all(onlyEFA, topoCheck("595.91.07", "")), code: "DriverRefusesPlace", fixedOn: "p6e below one root port"},
		{
			name: "R580 without the parameter", from: github + "Azure/azhpc-images/pull/589", machine: p6e,
			broken: all(onlyEFA, topoCheck("580.173.02", "0")), code: "DriverRefusesPlace", fixed: topoCheck("580.173.02", "1"), fix: "NVreg_GrdmaPciTopoCheckOverride=1 in /etc/modprobe.d",
		},
		{
			name: "an early R595, whose parameter does not help", from: github + "NVIDIA/aicr/issues/2459", machine: p6e,
			broken: all(onlyEFA, topoCheck("595.45.04", "1")), code: "DriverRefusesPlace", fixed: topoCheck("580.173.02", "1"), fix: "one IOMMU group; or use GPU driver R580",
		},
		{
			name: "too far for NCCL", from: github + "NVIDIA/nccl/issues/1657", machine: "far",
			code: "BeyondNCCLDefault", fixedOn: "pair", fix: "NCCL_NET_GDR_LEVEL",
		},
		{
			name: "slower than without, through the CPU", from: github + "Mellanox/nv_peer_memory/issues/50", machine: "epyc-3gpu-phb-nccltests320",
			code: "GPUWithoutNearNIC", fixedOn: "pair",
		},
		{
			name: "ACS redirects", from: github + "NVIDIA/nccl/issues/1086", machine: "redirect",
			code: "ACSRedirect", fixedOn: "pair", fix: "0000:12:00.0 0000:12:01.0 | xargs -I{} setpci -s {} ECAP_ACS+0x6.w=0000:002c",
		},
		{
			name: "ACS redirects, for virtual machines", from: github + "NVIDIA/nccl-tests/issues/256", machine: "passed",
			code: "ACSRedirect", fixedOn: "pair", fix: "leave it on",
		},
		{
			name: "ACS redirects, in a virtual machine", from: github + "NVIDIA/nccl-tests/issues/256", machine: "guest",
			code: "ACSRedirect", fixedOn: "pair", fix: "on the hypervisor",
		},
		{
			name: "the IOMMU translates", from: github + "NVIDIA/nccl/issues/1737",
			broken: all(inState("iommu-translated"), file("proc/cmdline", "root=/dev/sda1 intel_iommu=on\n")), code: "IOMMUTranslated", fixed: inState("ready"), fix: "boot with iommu=pt",
		},
		{
			name: "the IOMMU translates, against the command line", from: github + "linux-rdma/perftest/issues/289",
			broken: all(inState("iommu-translated"), file("proc/cmdline", "intel_iommu=on iommu=pt\n")), code: "IOMMUTranslated", fixed: inState("iommu-off"), fix: "the kernel was booted with iommu=pt",
		},
		{
			name: "a virtual machine with a flat tree", from: github + "NVIDIA/nccl-tests/issues/256", machine: "kvm-h200-flat-passthrough",
			code: "VirtualTopology", fixedOn: "pair", fix: "NCCL_TOPO_FILE",
		},
		{
			name: "virtual GPUs", from: github + "linux-rdma/perftest/issues/126", machine: "guest",
			broken: model("NVIDIA A30-8C"), code: "VirtualGPU", fixed: model("NVIDIA A30"), fix: "whole GPU",
		},
		{
			name: "virtual GPUs, by DMA-BUF alone", from: github + "linux-rdma/perftest/issues/126", machine: "guest",
			broken: all(unloaded, model("GRID A100-1-5CME")), code: "VirtualGPU", fixed: model("NVIDIA A100-SXM4-80GB"),
		},
		{
			name: "two GPUs are nearest to one NIC", from: github + "NVIDIA/nccl/issues/820", machine: "shared",
			code: "SharedNearNIC", fixedOn: "one each", fix: "firmware",
		},
		{
			name: "one port of many is down", from: github + "ROCm/rccl/issues/1423", machine: "dell-xe9680-h100",
			broken: all(file("sys/class/infiniband/mlx5_3/ports/1/state", "1: DOWN\n"), file("sys/class/infiniband/mlx5_3/ports/1/phys_state", "2: Polling\n")),
			code:   "PortDown", fixed: file("sys/class/infiniband/mlx5_3/ports/1/state", "4: ACTIVE\n"), fix: "Polling",
		},
		{
			name: "a consumer GPU", from: github + "aikitoria/open-gpu-kernel-modules/issues/20", machine: "geforce-4x4090",
			code: "GPUUnsupported", fixedOn: "pair",
		},
	}
}

// withoutTrace are the cases that leave no trace in the files of a node.
func withoutTrace() []failure {
	return []failure{
		{name: "NFD does not label the NIC's node", from: github + "Mellanox/network-operator/issues/211", noTrace: "labels and NFD's settings are in the API server"},
		{name: "labels vanish with the worker's Pod", from: github + "kubernetes-sigs/node-feature-discovery/issues/1752", noTrace: "owners of objects are in the API server"},
		{name: "an old NodeFeature of another namespace wins", from: github + "kubernetes-sigs/node-feature-discovery/issues/1601", noTrace: "objects are in the API server"},
		{name: "feature files outlive their writer", from: github + "kubernetes-sigs/node-feature-discovery/issues/857", noTrace: "a feature file does not tell whether its writer lives; the agent's own expire"},
		{name: "NCCL warns of a missing data-direct path", from: github + "NVIDIA/nccl/issues/1866", noTrace: "normal on every NIC before ConnectX-8; topo shows the functions there are"},
		{name: "peermem looked for in a container", from: github + "Mellanox/nv_peer_memory/issues/41", noTrace: "modules are the host's, and a container's /sys shows them"},
		{name: "registered, and refused at run time", from: github + "leptonai/gpud", noTrace: "the kernel's log alone tells (invalid context callback)"},
	}
}

// unreported are further states that have a code of their own.
func unreported() []failure {
	ready := inState("ready")
	const virtual = "var/run/nvidia-topologyd/virtualTopology.xml"
	topologyFile := func(version string) change {
		return file(virtual, "<system version=\""+version+"\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\"/></cpu></system>\n")
	}
	const crusoe = github + "crusoecloud/solutions-library/commit/6a72945a"
	withVF := func(nic string) change {
		return file(virtual, `<system version="1"><cpu numaid="0"><pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">`+
			`<pci busid="0000:00:05.0" class="0x030200"/><pci busid="`+nic+`" class="0x020700"/></pci></cpu></system>`+"\n")
	}
	return []failure{
		{name: "a topology file with a virtual function at its own address", from: crusoe, machine: "guest with a VF", broken: withVF("0000:01:09.0"), code: "VirtualTopology", fixed: withVF("0000:01:00.0"), fix: "NCCL_IB_MERGE_VFS=0"},
		{name: "a topology file that NCCL refuses", broken: topologyFile("2"), code: "TopologyFileRefused", fixed: topologyFile("1"), fix: "nccl-xml"},
		{name: "a topology file that RCCL refuses", from: github + "ROCm/rccl/blob/0cbce2a7/src/graph/xml.h", machine: "instinct", broken: topologyFile("1"), code: "TopologyFileRefused", fixed: topologyFile("2"), fix: "nccl-xml"},
		{name: "partitions of a Broadcom switch without a link inside it", from: github + "ROCm/rocm-systems/pull/3121", machine: "partitions without links", code: "BeyondNCCLDefault", fixedOn: partitions, fix: "NCCL_NET_GDR_LEVEL"},
		{name: "no GPU", machine: "no GPU", code: "NoGPU", fixedOn: "pair"},
		{name: "a Tegra", machine: "no GPU", broken: file("proc/device-tree/compatible", "nvidia,p3701\x00nvidia,tegra234\x00"), code: "TegraGPU", fixedOn: "pair"},
		{name: "no NIC", machine: "no NIC", code: "NoNIC", fixedOn: "pair"},
		{name: "old NICs", machine: "old NICs", code: "NICUnsupported", fixedOn: "pair"},
		{name: "a CPU without peer to peer", machine: "ampere-altra-a100", code: "PlatformForbidsP2P", fixedOn: "pair"},
		{name: "passed through", broken: inState("vfio"), code: "GPUPassthrough", fixed: ready},
		{name: "no GPU driver", broken: noDriver, code: "GPUDriverNotLoaded", fixed: ready},
		{name: "no GPU driver is not a proprietary one", broken: all(proprietary, unloaded), code: "ClosedDriver", fixed: noDriver},
		{name: "unloaded RDMA drivers show no interface", broken: all(proprietary, unloaded, inbox, onDisk("", forUverbs)), code: "PeermemUnknownSymbol", fixed: noNIC},
		{name: "the driver excludes the GPUs", broken: model("NVIDIA H100\nGPU Excluded:\t Yes"), code: "GPUDriverNotLoaded", fixed: model("NVIDIA H100\nGPU Excluded:\t No"), fix: "NVreg_ExcludedGpus"},
		{name: "the driver excludes the GPUs, with DMA-BUF alone", broken: all(unloaded, model("NVIDIA H100\nGPU Excluded:\t Yes")), code: "GPUDriverNotLoaded", fixed: model("NVIDIA H100")},
		{name: "whether the driver excludes the GPUs is unreadable", broken: model("NVIDIA H100\nGPU Excluded:"), code: "Unreadable", fixed: model("NVIDIA H100")},
		{name: "no NIC driver", broken: noNIC, code: "NICDriverNotLoaded", fixed: withNIC},
		{name: "no RDMA device", broken: inState("no-rdma"), code: "NoRDMADevice", fixed: ready},
		{name: "RDMA namespaces", broken: all(inState("no-rdma"), file("sys/module/ib_core/parameters/netns_mode", "N\n")), code: "RDMANamespaces", fixed: ready},
		{name: "no port", broken: inState("ports-down"), code: "NoActivePort", fixed: ready, fix: "Polling"},
		{name: "no way to GPU memory", broken: all(proprietary, unloaded, inbox), code: "NoPeerMemoryPath", fixed: all(symbols(true, "ib_uverbs"), loaded)},
		{name: "unreadable", broken: inState("kallsyms-missing"), code: "Unreadable", fixed: ready},
		{name: "ACS not readable", broken: file("sys/bus/pci/devices/0000:12:00.0/config", strings.Repeat("\x00", 64)), code: "ACSUnreadable", fixed: ready},
		{name: "ACS redirects where traffic goes up anyway", machine: "redirect", code: "ACSRedirect", fixedOn: "far redirect"},
		{name: "ACS redirects in the NIC's own switch, where traffic goes up anyway", machine: "redirect", code: "ACSRedirect", fixedOn: "bluefield3-l40s"},
		{name: "ACS redirects where the platform wants it", machine: "redirect", code: "ACSRedirect", fixedOn: "gb300-datadirect"},
		{name: "an old GPU", machine: "old GPUs", broken: unloaded, code: "PreTuring", fixedOn: "pair"},
		{name: "mlx4", machine: "mlx4", broken: all(unloaded, func(s *machine.State) { s.NICDriver = "mlx4_core" }), code: "NoMLX5Device", fixed: withNIC, fixedOn: "pair"},
		{name: "legacy PeerDirect", broken: all(proprietary, inState("mofed-4.9"), proprietary), code: "LegacyPeerDirect", fixed: file("sys/module/nvidia_peermem/parameters/peerdirect_support", "1\n")},
		{name: "legacy PeerDirect, newer driver", broken: all(inState("mofed-4.9"), proprietary, func(s *machine.State) { s.NVIDIA = "559.99" }), code: "LegacyPeerDirect", fixed: func(s *machine.State) { s.NVIDIA = "560.28.03" }},
		{name: "the operator is not configured for RDMA", broken: all(proprietary, unloaded, driverCtr("false")), code: "OperatorRDMAOff", fixed: driverCtr("true")},
		{name: "half the lanes", broken: file("sys/bus/pci/devices/0000:13:00.0/current_link_width", "8\n"), code: "LinkDegraded", fixed: file("sys/bus/pci/devices/0000:13:00.0/current_link_width", "16\n")},
		{name: "a NIC at half speed", broken: file("sys/bus/pci/devices/0000:14:00.0/current_link_speed", "16.0 GT/s PCIe\n"), code: "LinkDegraded", fixed: file("sys/bus/pci/devices/0000:14:00.0/max_link_speed", "16.0 GT/s PCIe\n")},
		{name: "a NIC in a slower slot is not degraded", broken: file("sys/bus/pci/devices/0000:14:00.0/current_link_speed", "16.0 GT/s PCIe\n"), code: "LinkDegraded", fixed: file("sys/bus/pci/devices/0000:12:01.0/max_link_speed", "16.0 GT/s PCIe\n")},
		{name: "an idle GPU is slow", broken: file("sys/bus/pci/devices/0000:14:00.0/current_link_speed", "2.5 GT/s PCIe\n"), code: "LinkDegraded", fixed: all(file("sys/bus/pci/devices/0000:14:00.0/current_link_speed", "32.0 GT/s PCIe\n"), file("sys/bus/pci/devices/0000:13:00.0/current_link_speed", "2.5 GT/s PCIe\n"))},
		{
			name: "BAR1 of a T4", broken: all(ofGPU("resource", bars(16, 256)), ofGPU("resource1_resize", "0000000000007fc0\n")),
			code: "SmallBAR1", fixed: ofGPU("resource", bars(16, 16384)), fix: "write 14 to /sys/bus/pci/devices/0000:13:00.0/resource1_resize, for 16384 MiB",
		},
		{
			name: "BAR1 that cannot be made larger", broken: all(ofGPU("resource", bars(16, 256)), ofGPU("resource1_resize", "00000000000001c0\n")),
			code: "SmallBAR1", fixed: ofGPU("resource", bars(16, 1024)), fix: "another GPU",
		},
		{name: "BAR1 that has no address", broken: ofGPU("resource", bars(16)), code: "SmallBAR1", fixed: ofGPU("resource", "garbage\n"), fix: "Above 4G Decoding"},
		{name: "an Intel desktop", machine: "desktop", code: "PlatformP2PWriteOnly", fixedOn: "desktop with a switch", fix: "PCIe switch"},
		{name: "a Core with the die of a Xeon", machine: "desktop", code: "PlatformP2PWriteOnly", fixedOn: "high-end desktop"},
		{name: "a Xeon", machine: "desktop", code: "PlatformP2PWriteOnly", fixedOn: "pair"},
		{name: "a virtual machine on an Intel desktop", machine: "desktop", code: "PlatformP2PWriteOnly", fixedOn: "desktop guest"},
		{name: "the host bridge of another vendor", machine: "desktop", code: "PlatformP2PWriteOnly", fixedOn: "other host bridge"},
		{name: "a CPU without a name", machine: "desktop", code: "PlatformP2PWriteOnly", fixed: file("proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu\n\n")},
		{name: "no NIC but one over NVLink-C2C", from: github + "linux-rdma/rdma-core/commit/0e0b5574f", machine: "over C2C", code: "Unreadable", fixedOn: "pair", fix: "ib_write_bw --use_cuda"},
		{name: "NUMA balancing", broken: file(numaBalancing, "1\n"), code: "NUMABalancing", fixed: file(numaBalancing, "2\n")},
		{name: "a driver that is told to refuse every place", broken: topoCheck("580.142", "2"), code: "DriverRefusesPlace", fixed: topoCheck("580.142", "0"), fix: "remove NVreg_GrdmaPciTopoCheckOverride=2"},
		{name: "the same, with DMA-BUF alone", broken: all(unloaded, topoCheck("580.142", "2")), code: "DriverRefusesPlace", fixed: topoCheck("580.142", "1")},
		{name: "whether a driver is told to refuse every place is unreadable", broken: all(topoCheck("580.142", "0"), file("proc/driver/nvidia/params", "garbage\n")), code: "Unreadable", fixed: topoCheck("580.142", "0"), fix: "problems listed"},
		{name: "the same, with DMA-BUF alone", broken: all(unloaded, topoCheck("580.142", "0"), file("proc/driver/nvidia/params", "garbage\n")), code: "Unreadable", fixed: topoCheck("580.142", "0")},
		{name: "storage and IOMMU", broken: all(inState("iommu-translated"), file("sys/module/nvidia_fs/initstate", "live\n")), code: "StorageIOMMU", fixed: func(s *machine.State) { s.IOMMU = "identity" }},
	}
}
