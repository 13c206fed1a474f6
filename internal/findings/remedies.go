package findings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// Remedies that take more than a sentence, and the names in them: those in the row
// of the family of NICs that the other findings are about.

func nicOf(f *Facts) *family.NIC { _, n := f.Pair(); return n }
func gpuOf(f *Facts) *family.GPU { g, _ := f.Pair(); return g }

// gpuDriverState is the driver of these GPUs.
func gpuDriverState(f *Facts) kmod.Driver { return f.Kmod.Drivers[gpuOf(f).Name] }

// peermemOf is their client for these NICs.
func peermemOf(f *Facts) kmod.Peermem {
	g, n := f.Pair()
	return f.Kmod.Peermem[kmod.Pair{GPU: g.Name, NIC: n.Name}]
}

func nicFamily(f *Facts) string     { return nicOf(f).Name }
func nicDriverName(f *Facts) string { return nicOf(f).Drivers[0] }
func rdmaModule(f *Facts) string    { return nicOf(f).Module }
func dmabufSymbol(f *Facts) string  { return nicOf(f).DMABuf }
func newerNIC(f *Facts) string      { return nicOf(f).Help.Product }

// peerModules are the peer memory clients that serve these NICs.
func peerModules(f *Facts) []string {
	if g, n := f.Pair(); n.PeerMemory.Core {
		return g.Client.Modules
	}
	return nil
}

// newerStack is what registers DMA-BUF for these NICs.
func newerStack(f *Facts) string {
	if stack := nicOf(f).Help.DMABufStack; stack != "" {
		return "use " + stack
	}
	return "use an RDMA stack that registers DMA-BUF"
}

// bindGPU says how a GPU gets the driver nvidia. Loading nvidia does not unbind a
// GPU from another driver, and does nothing if it is loaded already.
func bindGPU(f *Facts) string {
	for _, gpu := range f.Matrix.GPUs {
		if driver := gpu.Driver; gpu.Eligible && driver != "" && !slices.Contains(gpu.GPU.Passthrough, driver) {
			return driver + " is bound to the GPUs: blacklist " + driver + " in /etc/modprobe.d, rebuild the initramfs and reboot; then modprobe nvidia, or wait for the GPU Operator's driver container"
		}
	}
	if gpuDriverState(f).Loaded == tristate.True {
		return "nvidia is loaded but bound to none of them: dmesg | grep NVRM says why (most often a driver too old for the GPU, or proprietary kernel modules on a GPU that needs the open ones)"
	}
	return "modprobe nvidia, or wait for the GPU Operator's driver container"
}

func bindNIC(f *Facts) string {
	nic := nicOf(f)
	driver := nic.Drivers[0]
	if allNICsVFIO(f) {
		return "the NICs are bound to vfio, for virtual machines; to use one on this host, unbind one that no virtual machine uses and bind it to " + driver
	}
	if nic.Help.Operator == "" {
		return "modprobe " + driver
	}
	return "modprobe " + driver + ", or wait for " + nic.Help.Operator
}

func loadRDMA(f *Facts) string {
	if f.NICDriven() == tristate.False {
		return "see nic-driver"
	}
	fix := "modprobe " + rdmaModule(f)
	if enable := nicOf(f).Help.EnableRDMA; enable != "" {
		fix += "; if RDMA is switched off on the function: " + enable
	}
	return fix
}

// vfio recognizes a function that is given to a virtual machine: vfio-pci,
// mlx5_vfio_pci.
func vfio(fn *pci.Function) bool { return strings.Contains(fn.Driver, "vfio") }

func allNICsVFIO(f *Facts) bool {
	others := f.of(func(fn *pci.Function) bool { return eligibleNIC(fn) && !vfio(fn) }, sawDriver)
	return len(others) == 0 && slices.ContainsFunc(f.PCI.Functions, func(fn pci.Function) bool { return eligibleNIC(&fn) })
}

// oldPeermem is a package of its own; the GPU driver has nvidia-peermem from 470 on.
const oldPeermem = "nv_peer_mem"

// peermemName is what to load: the old module where only that is installed.
func peermemName(f *Facts) string {
	if moduleFile(f) == oldPeermem {
		return oldPeermem
	}
	return "nvidia-peermem"
}

// modprobe says how the module is loaded here.
func modprobe(f *Facts) string {
	switch {
	case peermemName(f) == oldPeermem:
		return "modprobe nv_peer_mem, which is the one installed; better, move to nvidia-peermem of GPU driver 470 or newer"
	case f.advised().Operators.GPU == tristate.True:
		return "set driver.rdma.enabled=true in the GPU Operator, whose container nvidia-peermem-ctr loads it; by hand: " + load(f) + legacyParameter(f)
	}
	return load(f) + legacyParameter(f) + ", and for the next boot /etc/modules-load.d (GPU Operator: driver.rdma.enabled=true)"
}

// load is the command that loads the module. The GPU Operator's driver container
// has it in a file system of its own (docs/operators.md#ctr-peermem).
func load(f *Facts) string {
	if f.advised().Operators.DriverReady == tristate.True {
		return "chroot /run/nvidia/driver modprobe " + peermemName(f)
	}
	return "modprobe " + peermemName(f)
}

// legacyParameter is the parameter that the module needs on a MOFED before 5.1.
func legacyParameter(f *Facts) string {
	if legacyStack(f) && !f.persistentByDefault() {
		return " peerdirect_support=1"
	}
	return ""
}

// persistentByDefault: from driver 560 on, nvidia-peermem uses the persistent
// API unless told otherwise, and peerdirect_support has no effect.
func (f *Facts) persistentByDefault() bool {
	major, _, _ := strings.Cut(gpuDriverState(f).Version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 560
}

// operatorRebuild is how the GPU Operator rebuilds the driver. A new driver Pod
// alone does not: it keeps modules that were loaded with the same configuration
// (docs/operators.md#manager-skip, #ctr-userspace, #manager-force).
const operatorRebuild = "drain this node and reboot it, so that the GPU Operator rebuilds the driver " +
	"(since v26.3 a new driver Pod keeps the modules that are loaded), " +
	"or set FORCE_REINSTALL=true in driver.manager.env, which rebuilds it on all nodes of that driver"

// rebuild says how the module is rebuilt here, for the running RDMA stack.
func rebuild(f *Facts) string {
	version := gpuDriverState(f).Version
	switch o := &f.advised().Operators; {
	case peermemName(f) == oldPeermem:
		return "rebuild nv_peer_mem against the running RDMA stack; better, move to nvidia-peermem of GPU driver 470 or newer"
	case o.GPU == tristate.True && o.DriverReady == tristate.True:
		return operatorRebuild
	case version == "":
		return "rebuild the GPU driver against the running RDMA stack (its installer, or DKMS)"
	}
	return fmt.Sprintf("rebuild the GPU driver against the running RDMA stack (its installer, or dkms build --force nvidia/%[1]s && dkms install --force nvidia/%[1]s)", version)
}

// install says where a missing module comes from.
func install(f *Facts) string {
	if f.advised().Operators.GPU == tristate.True {
		return "use a driver image that has nvidia-peermem for this kernel; if the log of the driver Pod says userspace-only install, " + operatorRebuild
	}
	return "install the GPU driver's kernel modules for this kernel (nvidia-peermem is part of them from 470 on), or an image that has it" + orDMABuf(f)
}

// orDMABuf names the other way where this machine's GPUs and NICs support it.
func orDMABuf(f *Facts) string {
	if gpuDriverState(f).Open == tristate.False && f.Turing() == tristate.True && nicOf(f).Help.DMABufStack != "" {
		return "; or do without: the open kernel modules of the GPU driver with DMA-BUF (" + nicOf(f).Help.DMABufStack + ")"
	}
	return ""
}

// passthroughIOMMU says how this machine boots with an IOMMU that passes through.
// Devices of virtual machines stay translated and apart.
func passthroughIOMMU(f *Facts) string {
	word := "iommu=pt"
	if f.Kmod.Arm {
		word = "iommu.passthrough=1"
	}
	switch {
	case slices.Contains(f.advised().CommandLine, word):
		return "the kernel was booted with " + word + ", but these groups are translated: a later word of its command line, an untrusted port or a driver's own choice set them otherwise (dmesg, Default domain type)"
	case guest(f):
		return "in this virtual machine: boot with " + word + ", or configure the hypervisor without a virtual IOMMU"
	}
	return "boot with " + word + ", as NVIDIA recommends for GPUDirect RDMA (devices given to virtual machines stay isolated)"
}

// orOff is an alternative where the GPU Operator waits for drivers that DMA-BUF does
// not need.
func orOff(f *Facts) string {
	if f.Verdict.DMABuf == tristate.True {
		return "; or driver.rdma.enabled=false, as DMA-BUF is available"
	}
	return ""
}

// setpci is the command that clears the redirect bits of bridges, and no others.
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
