package findings_test

import (
	"fmt"
	"strings"

	"gdr-features/test/machine"
)

// Changes to a healthy machine, beside those of failures_test.go.

// defaultRoute is the node's default route over an interface, as a process in the node's network
// namespace sees it.
func defaultRoute(iface string) change {
	return all(file("proc/sys/net/core/netdev_budget", "300\n"), file("proc/self/net/route",
		"Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"+iface+"\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"))
}

// bars is the file resource of a function whose memory BARs have these sizes in MiB.
func bars(sizes ...uint64) string {
	var text strings.Builder
	for i := range 13 {
		at, end, flags := 0, uint64(0), 0
		if i < len(sizes) {
			at, end, flags = 1<<40, 1<<40+sizes[i]<<20-1, 0x14220c // prefetchable, 64 bits
		}
		fmt.Fprintf(&text, "0x%016x 0x%016x 0x%016x\n", at, end, flags)
	}
	return text.String()
}

// topoCheck is an NVIDIA driver of a version, with this value of
// GrdmaPciTopoCheckOverride; "" for one that no longer has the parameter.
func topoCheck(version, value string) change {
	text := "EnableStreamMemOPs: 0\n"
	if value != "" {
		text += "GrdmaPciTopoCheckOverride: " + value + "\n"
	}
	return all(func(s *machine.State) { s.NVIDIA = version }, file("proc/driver/nvidia/params", text+"RegistryDwords: \"\"\n"))
}

// model is the name that NVIDIA's driver gives both GPUs.
func model(name string) change {
	const head, tail = "Model: \t\t ", "\nIRQ:   \t\t 1\nDevice Minor: \t 0\n"
	return all(file("proc/driver/nvidia/gpus/0000:13:00.0/information", head+name+tail), file("proc/driver/nvidia/gpus/0000:83:00.0/information", head+name+tail))
}

// kernelConfig is the configuration of the running kernel.
func kernelConfig(lines string) change {
	return all(file("proc/sys/kernel/osrelease", "6.8.0-60-generic\n"), file("boot/config-6.8.0-60-generic", "CONFIG_DMA_SHARED_BUFFER=y\n"+lines))
}

// Lines of modules.dep.
const (
	otherModule = "kernel/drivers/net/bonding/bonding.ko.zst: kernel/net/tls/tls.ko.zst\n"
	stub        = "updates/dkms/nvidia-peermem.ko.zst:\n"
	forMOFED    = "updates/dkms/nvidia-peermem.ko.zst: updates/dkms/nvidia.ko.zst\n"
	forUverbs   = "updates/dkms/nvidia-peermem.ko.zst: updates/dkms/ib_uverbs.ko.zst updates/dkms/ib_core.ko.zst updates/dkms/nvidia.ko.zst\n"
	legacyCore  = "updates/nv_peer_mem.ko: updates/dkms/ib_core.ko updates/dkms/nvidia.ko\n"
)

// onDisk says what depmod knows below a root directory.
func onDisk(root, line string) change {
	return all(file("proc/sys/kernel/osrelease", "6.8.0-60-generic\n"), file(root+"lib/modules/6.8.0-60-generic/modules.dep", otherModule+line))
}

const driverRoot = "run/nvidia/driver/"

func driverCtr(rdma string) change {
	return file("run/nvidia/validations/.driver-ctr-ready", "GDRCOPY_ENABLED: false\nGDS_ENABLED: false\nGPU_DIRECT_RDMA_ENABLED: "+rdma+"\n")
}

var (
	gpuOperator = file("run/nvidia/validations/.keep", "")
	mofedIsUp   = file("run/mellanox/drivers/.driver-ready", "")
	clientDir   = file("sys/kernel/mm/memory_peers/nv_mem/version", "550.54.14\n")
)
