package verdict

import (
	"strings"

	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// gpuDriverFix says how a GPU gets the driver nvidia: one that another driver has
// is not given up by loading nvidia, nor is nvidia loaded twice.
func (f *Facts) gpuDriverFix() string {
	for _, gpu := range f.Map.GPUs {
		if driver := gpu.Driver; gpu.Eligible && driver != "" && driver != "vfio-pci" {
			return "keep " + driver + ", which has the GPUs, from loading (blacklist " + driver + " in /etc/modprobe.d, rebuild the initial ramdisk, reboot); then modprobe nvidia, or wait for the GPU Operator's driver container"
		}
	}
	if f.Kmod.Driver.Loaded == tristate.True {
		return "nvidia is loaded and took none of them: dmesg | grep NVRM says why (most often a driver too old for the GPU, or the closed one where it needs the open one)"
	}
	return "modprobe nvidia, or wait for the GPU Operator's driver container"
}

// nicDriverFix says how an adapter gets its driver.
func (f *Facts) nicDriverFix() string {
	if f.nicPassed() {
		return "the adapters are bound to vfio, for virtual machines; for use on this host unbind one there that no machine uses, and bind it to " + f.mlx() + "_core"
	}
	return "modprobe " + f.mlx() + "_core, or wait for the Network Operator's driver container"
}

func (f *Facts) rdmaDeviceFix() string {
	fix := "modprobe " + f.mlx() + "_ib"
	switch {
	case f.nicDriven() == tristate.False:
		return "see nic-driver"
	case f.mlx() == "mlx5":
		fix += "; on a function with RDMA switched off: devlink dev param set pci/ADDRESS name enable_rdma value true cmode driverinit, then devlink dev reload pci/ADDRESS when nothing uses it"
	}
	return fix
}

// mlx is the driver of this machine's eligible adapters: mlx4 where all are
// ConnectX-3, which have no DMA-BUF.
func (f *Facts) mlx() string {
	name := "mlx5"
	for i := range f.PCI.Functions {
		fn := &f.PCI.Functions[i]
		switch {
		case !fn.NICEligible():
		case fn.MLX4():
			name = "mlx4"
		default:
			return "mlx5"
		}
	}
	return name
}

// nicPassed: every eligible adapter is handed to virtual machines.
func (f *Facts) nicPassed() bool {
	passed := false
	for i := range f.PCI.Functions {
		if fn := &f.PCI.Functions[i]; fn.NICEligible() {
			if !vfio(fn) {
				return false
			}
			passed = true
		}
	}
	return passed
}

// vfio tells a function that is handed to a virtual machine: vfio-pci, mlx5_vfio_pci.
func vfio(fn *pci.Function) bool { return strings.Contains(fn.Driver, "vfio") }
