package findings

import (
	"strings"

	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// gpuDriverFix says how a GPU gets the driver nvidia: one that another driver has
// is not given up by loading nvidia, nor is nvidia loaded twice.
func (f *Facts) gpuDriverFix() string {
	for _, gpu := range f.Matrix.GPUs {
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
		return "the adapters are bound to vfio, for virtual machines; for use on this host unbind one there that no machine uses, and bind it to " + f.NICFamily() + "_core"
	}
	return "modprobe " + f.NICFamily() + "_core, or wait for the Network Operator's driver container"
}

func (f *Facts) rdmaDeviceFix() string {
	fix := "modprobe " + f.NICFamily() + "_ib"
	switch {
	case f.NICDriven() == tristate.False:
		return "see nic-driver"
	case f.NICFamily() == "mlx5":
		fix += "; on a function with RDMA switched off: devlink dev param set pci/ADDRESS name enable_rdma value true cmode driverinit, then devlink dev reload pci/ADDRESS when nothing uses it"
	}
	return fix
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
