package findings

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/version"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// Remedies that take more than a sentence.

// gpuDriverState is the driver of these GPUs.
func gpuDriverState(f *judged) kmod.Driver { return f.Kmod.Drivers[f.GPU.Name] }

// families returns the table in use.
func families(f *judged) family.Table { return f.Families.OrDefault() }

// newerStack is what registers DMA-BUF for these NICs.
func newerStack(f *judged) string {
	if stack := f.NIC.Help.DMABufStack; stack != "" {
		return "use " + stack
	}
	return "use an RDMA stack that registers DMA-BUF"
}

// bindGPU says how a GPU gets the driver of its family. Loading it does not unbind a
// GPU from another driver, and does nothing if it is loaded already.
func bindGPU(f *judged) []string {
	family := f.GPU
	load := "`modprobe " + family.Driver + "`, or wait for " + family.Help.Operator
	for _, gpu := range f.Matrix.GPUs {
		if driver := gpu.Driver; gpu.Counts() && gpu.GPU == family && driver != "" && !gpu.PassedThrough() {
			return finding.Steps(driver+" is bound to the GPUs: blacklist "+driver+" in /etc/modprobe.d, rebuild the "+
				"initramfs and reboot", "then "+load)
		}
	}
	if gpuDriverState(f).Loaded == tristate.True {
		return finding.Steps(family.Driver + " is loaded but bound to none of them: " + family.Help.Unbound)
	}
	return finding.Steps(load)
}

func bindNIC(f *judged) []string {
	driver, operator := f.NIC.Drivers[0], f.NIC.Help.Operator
	switch {
	case allNICsPassedThrough(f):
		return finding.Steps("the NICs are bound to vfio, for virtual machines",
			"to use one on this host, unbind one that no virtual machine uses and bind it to "+driver)
	case operator == "":
		return finding.Steps("`modprobe " + driver + "`")
	}
	return finding.Steps("`modprobe " + driver + "`, or wait for " + operator)
}

func loadRDMA(f *judged) []string {
	if f.Verdict.NICDriven == tristate.False {
		return finding.Steps("see nic-driver")
	}
	return finding.Steps("`modprobe "+f.NIC.Module+"`", enableRDMA(f))
}

func enableRDMA(f *judged) string {
	if enable := f.NIC.Help.EnableRDMA; enable != "" {
		return "if RDMA is switched off on the function: " + enable
	}
	return ""
}

// allNICsPassedThrough: every eligible NIC is given to a virtual machine.
func allNICsPassedThrough(f *judged) bool {
	nics := f.functions(eligibleNIC)
	return len(nics) > 0 && !slices.ContainsFunc(nics, func(fn *pci.Function) bool { return !fn.PassedThrough() })
}

// forerunner reports whether a module is nv_peer_mem, the package before the first of Client.Modules.
func forerunner(f *judged, module string) bool {
	return module != firstModule(f) && slices.Contains(f.GPU.Client.Modules, module)
}

// peermemName is the module to load, or the predecessor if only that is installed.
func peermemName(f *judged) string {
	if module := f.advised().File.Name; forerunner(f, module) {
		return module
	}
	return strings.ReplaceAll(firstModule(f), "_", "-")
}

// modprobe says how the module is loaded here.
func modprobe(f *judged) []string {
	switch {
	case forerunner(f, f.advised().File.Name):
		return finding.Steps("`modprobe "+peermemName(f)+"`, which is the one installed", newerClient(f))
	case f.advised().Operators.GPU == tristate.True:
		return finding.Steps("set driver.rdma.enabled=true in the GPU Operator, whose container "+
			"nvidia-peermem-ctr loads it", "by hand: "+load(f)+legacyParameter(f))
	}
	return finding.Steps(load(f) + legacyParameter(f) + ", and for the next boot /etc/modules-load.d (GPU " +
		"Operator: driver.rdma.enabled=true)")
}

// newerClient is advice where only a forerunner is installed; "" otherwise.
func newerClient(f *judged) string {
	if forerunner(f, f.advised().File.Name) {
		return "better, move to nvidia-peermem of GPU driver 470 or newer"
	}
	return ""
}

// load is the command that loads the module. The GPU Operator's driver container
// has it in a file system of its own (docs/operators.md#ctr-peermem).
func load(f *judged) string {
	if f.advised().Operators.DriverReady == tristate.True {
		return "`chroot /run/nvidia/driver modprobe " + peermemName(f) + "`"
	}
	return "`modprobe " + peermemName(f) + "`"
}

// legacyParameter is the parameter that the module needs on a MOFED before 5.1.
func legacyParameter(f *judged) string {
	if legacyStack(f) && !f.persistentByDefault() {
		return " peerdirect_support=1"
	}
	return ""
}

// persistentByDefault: from driver 560 on, nvidia-peermem uses the persistent
// API unless told otherwise, and peerdirect_support has no effect.
func (f *judged) persistentByDefault() bool {
	return version.Major(gpuDriverState(f).Version) >= 560
}

// operatorRebuild is how the GPU Operator rebuilds the driver. A new driver Pod
// alone does not: it keeps modules that were loaded with the same configuration
// (docs/operators.md#manager-skip, #ctr-userspace, #manager-force).
const operatorRebuild = "drain this node and reboot it, so that the GPU Operator rebuilds the driver " +
	"(since v26.3 a new driver Pod keeps the modules that are loaded), " +
	"or set FORCE_REINSTALL=true in driver.manager.env, which rebuilds it on all nodes of that driver"

// rebuild says how the module is rebuilt here, after what has to be done before.
func rebuild(f *judged, before string) []string {
	return finding.Steps(before+rebuildHere(f), newerClient(f))
}

func rebuildHere(f *judged) string {
	version := gpuDriverState(f).Version
	switch o := &f.advised().Operators; {
	case forerunner(f, f.advised().File.Name):
		return "rebuild " + peermemName(f) + " against the running RDMA stack"
	case o.GPU == tristate.True && o.DriverReady == tristate.True:
		return operatorRebuild
	case version == "":
		return "rebuild the GPU driver against the running RDMA stack (its installer, or DKMS)"
	}
	return fmt.Sprintf("rebuild the GPU driver against the running RDMA stack (its installer, or `dkms build "+
		"--force nvidia/%[1]s && dkms install --force nvidia/%[1]s`)", version)
}

// install says where a missing module comes from.
func install(f *judged) []string {
	if f.advised().Operators.GPU == tristate.True {
		return finding.Steps("use a driver image that has nvidia-peermem for this kernel",
			"if the log of the driver Pod says userspace-only install, "+operatorRebuild)
	}
	return finding.Steps("install the GPU driver's kernel modules for this kernel (nvidia-peermem is part of "+
		"them from 470 on), or an image that has it", orDMABuf(f))
}

// orDMABuf names the other way where this machine's GPUs and NICs support it.
func orDMABuf(f *judged) string {
	if gpuDriverState(f).Open == tristate.False && f.Verdict.Turing == tristate.True && f.NIC.Help.DMABufStack != "" {
		return "or do without: the open kernel modules of the GPU driver with DMA-BUF " +
			"(" + f.NIC.Help.DMABufStack + ")"
	}
	return ""
}

// passthroughIOMMU says how this machine boots with an IOMMU that passes through.
// Devices of virtual machines stay translated and apart.
func passthroughIOMMU(f *judged) string {
	word := "iommu=pt"
	if f.Platform.CPU.Arch == "arm64" {
		word = "iommu.passthrough=1"
	}
	switch {
	case translationNeeded(f) && f.BeforePASID() != tristate.False:
		return "use Linux 6.11 or newer, then boot with " + word + " (before it, no program would get a CUDA " +
			"context here while ACS is on)"
	case slices.Contains(f.Platform.CommandLine, word):
		return "the kernel was booted with " + word + ", but these groups are translated: a later word of its " +
			"command line, an untrusted port or a driver's own choice set them otherwise (dmesg, Default domain type)"
	case f.Guest():
		return "in this virtual machine: boot with " + word + ", or configure the hypervisor without a virtual IOMMU"
	}
	return "boot with " + word + ", as " + f.GPU.Help.Vendor + " recommends for GPUDirect RDMA (devices given " +
		"to virtual machines stay isolated)"
}

// orOff is an alternative to waiting for drivers that DMA-BUF does not need.
func orOff(f *judged) string {
	if f.Verdict.DMABuf == tristate.True {
		return "or driver.rdma.enabled=false, as DMA-BUF is available"
	}
	return ""
}

// setpci is the command that clears the redirect bits of the bridges, and no others.
func setpci(bridges []string) string {
	if len(bridges) == 1 {
		return "setpci -s " + bridges[0] + " ECAP_ACS+0x6.w=0000:002c"
	}
	return `printf '%s\n' ` + strings.Join(bridges, " ") + " | xargs -I{} setpci -s {} ECAP_ACS+0x6.w=0000:002c"
}

// disableRedirect is the word of the kernel's command line that does the same.
func disableRedirect(bridges []string) string {
	if len(bridges) == 1 {
		return "pci=disable_acs_redir=" + bridges[0]
	}
	return "pci=disable_acs_redir= followed by these addresses, separated by semicolons"
}
