package findings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/source/kmod"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// advice are the facts behind advice; empty ones where they were not read.
func (f *Facts) advice() *kmod.Advice {
	if f.Kmod.Advice == nil {
		return &kmod.Advice{}
	}
	return f.Kmod.Advice
}

const peerSymbol = "ib_register_peer_memory_client"

func (f *Facts) peermem(v verdict.Verdict) Finding {
	out := Finding{
		Check: "peermem", Status: either(v.Peermem, v.DMABuf),
		Sources:  []string{peermemDir + "/initstate", "/sys/module/nv_peer_mem/initstate", "/sys/kernel/mm/memory_peers"},
		Evidence: []string{saw(peermemDir+"/initstate", string(f.Kmod.PeermemModule))},
	}
	switch {
	case v.Peermem == tristate.True:
		out.Detail = f.Kmod.PeermemBy + " is registered with the RDMA stack"
		if v.Ready == tristate.True && v.DMABuf == tristate.False {
			f.unseenByNCCL(&out)
		}
	case v.Peermem == tristate.Unknown:
		out.Reason, out.Detail = verdict.Unreadable, "the state of the kernel's modules cannot be read"
		out.Fix = "read with the host's /sys in place"
	case v.DMABuf == tristate.True:
		out.Detail = "not loaded, and not needed: DMA-BUF serves (NCCL 2.13 and newer)"
	default:
		f.peermemMissing(&out)
	}
	if f.Kmod.PeermemModule == kmod.Coming || f.Kmod.PeermemModule == kmod.Going {
		out.Detail += "; nvidia_peermem is " + string(f.Kmod.PeermemModule) + " just now"
	}
	return out
}

// unseenByNCCL: NCCL up to 2.22 looks for the client's directory alone, newer
// ones for /sys/module/nvidia_peermem/version too (NVIDIA/nccl src/transport/
// net_ib/gdr.cc). RDMA stacks from MOFED 24.04 on make no such directory.
func (f *Facts) unseenByNCCL(out *Finding) {
	a := f.advice()
	seen := tristate.And(tristate.Of(f.Kmod.PeermemModule == kmod.Live), a.Peermem.Version) // by NCCL 2.23
	if a.NCCLClient != tristate.False || f.Kmod.Advice == nil || seen == tristate.Unknown {
		return
	}
	out.Status, out.Code = Warn, MemoryPeersMissing
	out.Evidence = append(out.Evidence, sawFile("/sys/kernel/mm/memory_peers/nv_mem/version", tristate.False),
		sawFile("/sys/kernel/mm/memory_peers/nv_mem_nc/version", tristate.False), sawFile(peermemDir+"/version", seen))
	if seen == tristate.True {
		out.Detail += "; NCCL before 2.23 does not see it, as this stack makes no memory_peers, and DMA-BUF does not stand in"
		out.Fix = "use NCCL 2.23 or newer, also in containers (NCCL_DEBUG=INFO prints the version)" + f.orDMABuf()
		return
	}
	out.Detail += ", where no NCCL looks for it: neither memory_peers nor nvidia_peermem/version is there"
	out.Fix = "unload " + f.clientModule() + " and load nvidia-peermem of the GPU driver, with NCCL 2.23 or newer"
}

func (f *Facts) clientModule() string {
	if strings.HasPrefix(f.Kmod.PeermemBy, "/") {
		return "the module behind " + f.Kmod.PeermemBy
	}
	return f.Kmod.PeermemBy
}

// peermemMissing says why no client is there and what to do: by the symbol, which
// tells whether the RDMA stack has an interface for one, and by the module's
// dependencies, which tell what it was built for.
func (f *Facts) peermemMissing(out *Finding) {
	symbol, file := f.Kmod.Symbols.PeerMemory, &f.advice().File
	out.Reason = verdict.NoPeerMemoryPath
	if symbol == tristate.True {
		out.Reason = verdict.PeermemNotLoaded
	}
	out.Sources = append(out.Sources, kallsyms)
	out.Sources = append(out.Sources, file.Dep...)
	out.Evidence = append(out.Evidence, sawSymbol(peerSymbol, symbol))
	out.Evidence = append(out.Evidence, f.sawModuleFile()...)
	running, onDisk := f.Kmod.Symbols.PeerMemoryOwner, exporter(file)
	switch {
	case f.GPUDriven() == tristate.False:
		out.Detail, out.Fix = "not loaded; the GPU driver, which it needs, comes first", "see gpu-driver"
	case symbol == tristate.False && f.NICDriven() == tristate.False:
		out.Detail, out.Fix = "not loaded, and neither are the RDMA drivers, whose interface it needs", "see nic-driver"
	case file.Listed == tristate.False && symbol == tristate.True:
		out.Code, out.Detail = PeermemNotInstalled, "the RDMA stack has the interface for it, and no module nvidia-peermem is installed for this kernel"
		out.Fix = f.install()
	case file.Listed == tristate.True && len(file.Needs) == 0:
		out.Code, out.Detail = PeermemStub, file.Name+" was built without the RDMA stack's peer memory symbols: loading it ends in Invalid argument"
		out.Fix = f.rebuild() + f.orDMABuf()
		if symbol == tristate.False {
			out.Fix = "install MOFED / DOCA-OFED, then " + f.rebuild() + f.orDMABuf()
		}
	case file.Listed == tristate.True && symbol == tristate.False && onDisk == "":
		out.Code, out.Detail = PeermemUnknownSymbol, file.Name+" was built for an RDMA stack with "+peerSymbol+", which the one that runs lacks: loading it ends in Unknown symbol"
		out.Fix = "have MOFED / DOCA-OFED for this kernel installed and loaded, then " + f.rebuild() + f.orDMABuf()
	case file.Listed == tristate.True && symbol == tristate.False:
		out.Code, out.Detail = PeermemUnknownSymbol, onDisk+" on disk has "+peerSymbol+", and the one that runs does not: the RDMA drivers were installed and not loaded since"
		out.Fix = "restart the RDMA drivers when no job runs (/etc/init.d/openibd restart), or reboot; then modprobe " + f.peermemName()
	case onDisk != "" && running != "" && onDisk != running:
		out.Code = PeermemSymbolMismatch
		out.Detail = fmt.Sprintf("not loaded, and another RDMA stack runs than is installed: the interface for it is in %s on disk, and in %s of the running kernel", onDisk, running)
		out.Fix = f.modprobe() + "; if that says Invalid argument or Unknown symbol, restart the RDMA drivers or reboot where MOFED was upgraded; where it was not, " + f.rebuild()
	case symbol == tristate.True:
		out.Detail = "not loaded, though the RDMA stack has the interface for it"
		out.Fix = f.modprobe() + "; if that says Invalid argument or dmesg disagrees about version of symbol, " + f.rebuild() + "; if it says Unknown symbol, see PeermemUnknownSymbol"
	case symbol == tristate.False:
		out.Detail = "not loaded, and the RDMA stack shows no interface for it (" + peerSymbol + ")"
		out.Fix = "install MOFED / DOCA-OFED, then " + f.rebuild() + f.orDMABuf()
	default:
		out.Detail = "not loaded; whether the RDMA stack has an interface for it cannot be read"
		out.Fix = f.load() + "; it says Unknown symbol or Invalid argument where there is no interface, or it was built without"
	}
}

// exporter tells which module on disk has the PeerDirect API, by what peermem
// depends on: ib_uverbs (MOFED 24.07 and newer, Ubuntu), which needs ib_core
// itself, or ib_core; "" for none. What a driver's container has on disk is not
// the RDMA stack of the node.
func exporter(file *kmod.ModuleFile) string {
	if file.Listed != tristate.True || strings.HasPrefix(file.Dep[0], "/run/") {
		return ""
	}
	for _, module := range [...]string{"ib_uverbs", "ib_core"} {
		if slices.Contains(file.Needs, module) {
			return module
		}
	}
	return ""
}

func (f *Facts) sawModuleFile() []string {
	file := &f.advice().File
	var all []string
	for _, dep := range file.Dep {
		switch {
		case file.Listed != tristate.True:
			all = append(all, saw(dep, "no nvidia-peermem"))
		case len(file.Needs) == 0:
			all = append(all, saw(dep, file.Name+" needs nothing"))
		default:
			all = append(all, saw(dep, file.Name+" needs "+strings.Join(file.Needs, " ")))
		}
	}
	return all
}

// peermemName is what to load: the old module where that alone is installed.
func (f *Facts) peermemName() string {
	if f.advice().File.Name == oldPeermem {
		return oldPeermem
	}
	return "nvidia-peermem"
}

// oldPeermem is a package of its own; the GPU driver has nvidia-peermem from 470 on.
const oldPeermem = "nv_peer_mem"

// modprobe says how the module is loaded here.
func (f *Facts) modprobe() string {
	if f.peermemName() == oldPeermem {
		return "modprobe nv_peer_mem, the one that is installed; better, move to nvidia-peermem of GPU driver 470 or newer"
	}
	if f.advice().Operators.GPU == tristate.True {
		return "set driver.rdma.enabled=true in the GPU Operator, whose container nvidia-peermem-ctr loads it; by hand: " + f.load() + f.legacyParameter()
	}
	return f.load() + f.legacyParameter() + ", and for the next boot /etc/modules-load.d (GPU Operator: driver.rdma.enabled=true)"
}

// load is the command that loads the module. The GPU Operator's driver container
// has it in a file system of its own (docs/operators.md#ctr-peermem).
func (f *Facts) load() string {
	if f.advice().Operators.DriverReady == tristate.True {
		return "chroot /run/nvidia/driver modprobe " + f.peermemName()
	}
	return "modprobe " + f.peermemName()
}

// legacyParameter is what the module must be told on a MOFED before 5.1.
func (f *Facts) legacyParameter() string {
	if f.Kmod.Stack.PeerDirect == kmod.PeerDirectLegacy && !f.persistentByDefault() {
		return " peerdirect_support=1"
	}
	return ""
}

// persistentByDefault: from driver 560 on, nvidia-peermem uses the persistent
// API unless told otherwise, and peerdirect_support has no effect.
func (f *Facts) persistentByDefault() bool {
	major, _, _ := strings.Cut(f.Kmod.Driver.Version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 560
}

// operatorRebuild is how the GPU Operator builds the driver anew. A new driver Pod
// alone does not: it keeps modules that were loaded with the same configuration
// (docs/operators.md#manager-skip, #ctr-userspace, #manager-force).
const operatorRebuild = "drain this node and reboot it, so that the GPU Operator builds the driver anew " +
	"(since v26.3 deleting its driver Pod keeps the modules that are loaded), " +
	"or set FORCE_REINSTALL=true in driver.manager.env, which rebuilds it on all nodes of that driver"

// rebuild says how the module is built anew here, for the RDMA stack that runs.
func (f *Facts) rebuild() string {
	if f.peermemName() == oldPeermem {
		return "build nv_peer_mem anew against the RDMA stack that runs; better, move to nvidia-peermem of GPU driver 470 or newer"
	}
	if f.advice().Operators.GPU == tristate.True && f.advice().Operators.DriverReady == tristate.True {
		return operatorRebuild
	}
	version := f.Kmod.Driver.Version
	if version == "" {
		return "build the GPU driver anew against the RDMA stack that runs (its installer, or DKMS)"
	}
	return fmt.Sprintf("build the GPU driver anew against the RDMA stack that runs (its installer, or dkms build --force nvidia/%[1]s && dkms install --force nvidia/%[1]s)", version)
}

// install says where a missing module comes from.
func (f *Facts) install() string {
	if f.advice().Operators.GPU == tristate.True {
		return "use a driver image that has nvidia-peermem for this kernel; where the log of the driver Pod says userspace-only install, " + operatorRebuild
	}
	return "install the GPU driver's kernel modules for this kernel (nvidia-peermem is part of them from 470 on), or an image that has it" + f.orDMABuf()
}

// orDMABuf names the other way where this machine's GPUs can go it.
func (f *Facts) orDMABuf() string {
	if f.Kmod.Driver.Open == tristate.False && f.Turing() == tristate.True && f.NICFamily() == "mlx5" {
		return "; or go without it: the open GPU driver with DMA-BUF (Linux 5.12 or newer, or MOFED 5.5 or newer)"
	}
	return ""
}
