package verdict

import (
	"fmt"
	"strings"

	"gdr-features/internal/tri"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
)

// Status is how a check ended.
type Status string

// Statuses of a check.
const (
	OK          Status = "OK"
	Warn        Status = "WARN"
	Fail        Status = "FAIL"
	Undecidable Status = "UNKNOWN"
)

// Finding is one check: what was looked at, what was found, what to do.
type Finding struct {
	Check  string
	Status Status
	// Reason is the verdict's word for a failed prerequisite, "" for others.
	Reason Reason
	// Detail is what was found, in one sentence.
	Detail string
	// Fix is what to do about it, "" for nothing.
	Fix string
	// Sources are the files it was read from.
	Sources []string
}

// Files that findings rest on.
const (
	pciDevices = "/sys/bus/pci/devices"
	ibClass    = "/sys/class/infiniband"
	nvVersion  = "/proc/driver/nvidia/version"
	kallsyms   = "/proc/kallsyms"
	peermemDir = "/sys/module/nvidia_peermem"
	verbsNodes = "/dev/infiniband/uverbs*"
)

// findings walks the checks in the order of the verdict.
func (f *Facts) findings(v Verdict) []Finding {
	list := []Finding{f.hardware(v)}
	if len(f.Map.GPUs) == 0 || v.Capable == tri.False {
		return list // drivers do not matter
	}
	list = append(list,
		f.gpuDriver(), f.nicDriver(), f.rdmaDevices(), f.ports(v),
		f.peermem(v), f.dmabufFinding(v), f.stack(),
		f.level(), f.ncclDefault(), iommuFinding(v), f.acsFinding(v),
	)
	return list
}

// fromState turns a fact into a status: what is not proven missing is unknown.
func fromState(s tri.State, otherwise Status) Status {
	switch s {
	case tri.True:
		return OK
	case tri.False:
		return otherwise
	case tri.Unknown:
	}
	return Undecidable
}

func (f *Facts) hardware(v Verdict) Finding {
	_, reason := f.capable()
	out := Finding{Check: "hardware", Status: fromState(v.Capable, Fail), Reason: reason, Sources: []string{pciDevices}}
	m := &f.Map
	switch reason {
	case "":
		out.Detail = fmt.Sprintf("%s and %s can do GPUDirect RDMA", count(m.EligibleGPUs, "GPU"), count(m.EligibleNICs, "adapter"))
	case NoGPU:
		out.Detail = "no NVIDIA GPU on the PCI bus"
	case GPUUnsupported:
		out.Detail = fmt.Sprintf("%s is not a product that NVIDIA supports GPUDirect RDMA on", gpuName(m.GPUs[0].Function))
		out.Fix = "use a data-center or professional GPU; GeForce, TITAN and GB10 are refused by the driver"
	case NoNIC:
		out.Detail = "no NVIDIA ConnectX or BlueField network function on the PCI bus"
		out.Fix = "install a ConnectX-4 or newer adapter; adapters of other vendors are not judged"
	case NICUnsupported:
		out.Detail = "the network functions of vendor 15b3 are older than ConnectX-3, manage an NVLink fabric, or have another class than Ethernet (0200) or InfiniBand (0207)"
		out.Fix = "install a ConnectX-4 or newer adapter"
	case PlatformForbidsP2P:
		out.Detail = "on this processor the NVIDIA driver maps GPU memory only for an adapter below a common PCIe bridge, and no pair has one"
		out.Fix = "move an adapter and a GPU below one PCIe switch"
	default:
		out.Detail = "PCI functions cannot be read"
		out.Fix = "see the problems listed below; mount the host's /sys"
	}
	return out
}

func (f *Facts) gpuDriver() Finding {
	out := Finding{Check: "gpu-driver", Sources: []string{pciDevices + "/*/driver", nvVersion}}
	if f.allPassthrough() == tri.True {
		out.Status, out.Reason = Fail, GPUPassthrough
		out.Detail = "every eligible GPU is bound to vfio-pci, for virtual machines"
		out.Fix = "GPUDirect RDMA is up to the virtual machines; for use on this host bind the GPUs to nvidia"
		return out
	}
	driven := f.gpuDriven()
	out.Status = fromState(driven, Fail)
	switch driven {
	case tri.True:
		out.Detail = "nvidia " + orUnknown(f.Kmod.Driver.Version) + ", " + flavour(f.Kmod.Driver.Open)
	case tri.False:
		out.Reason = GPUDriverNotLoaded
		out.Detail = "no eligible GPU is bound to the NVIDIA driver"
		out.Fix = "modprobe nvidia, or wait for the GPU Operator's driver container"
	case tri.Unknown:
		out.Reason, out.Detail = Unreadable, "the GPUs' drivers cannot be read"
	}
	return out
}

func flavour(open tri.State) string {
	switch open {
	case tri.True:
		return "open kernel modules"
	case tri.False:
		return "closed kernel modules"
	case tri.Unknown:
	}
	return "flavour unknown"
}

func (f *Facts) nicDriver() Finding {
	driven := f.nicDriven()
	out := Finding{Check: "nic-driver", Status: fromState(driven, Fail), Sources: []string{pciDevices + "/*/driver"}}
	switch driven {
	case tri.True:
		out.Detail = "an eligible adapter is bound to its driver"
	case tri.False:
		out.Reason = NICDriverNotLoaded
		out.Detail = "no eligible adapter is bound to mlx5_core or mlx4_core"
		out.Fix = "modprobe mlx5_core, or wait for the Network Operator's driver container"
	case tri.Unknown:
		out.Reason, out.Detail = Unreadable, "the adapters' drivers cannot be read"
	}
	return out
}

func (f *Facts) rdmaDevices() Finding {
	state := f.rdmaDevice()
	out := Finding{Check: "rdma-device", Status: fromState(state, Fail), Sources: []string{ibClass}}
	var names []string
	for i := range f.Map.NICs {
		if n := &f.Map.NICs[i]; n.Eligible && n.RDMA != nil {
			names = append(names, n.RDMA.Name)
		}
	}
	switch {
	case state == tri.True:
		out.Detail = strings.Join(names, " ")
	case state == tri.False:
		out.Reason = NoRDMADevice
		out.Detail = "no eligible adapter has an RDMA device"
		out.Fix = "modprobe mlx5_ib; on a function with RDMA switched off: devlink dev param set pci/ADDRESS name enable_rdma value true cmode driverinit"
	case f.RDMA.Exclusive:
		out.Reason = Unreadable
		out.Detail = "RDMA devices belong to network namespaces (netns_mode exclusive), so those of containers are not seen from here"
		out.Fix = "rdma system show; read from the host's network namespace"
		out.Sources = append(out.Sources, "/sys/module/ib_core/parameters/netns_mode")
	default:
		out.Reason, out.Detail = Unreadable, "the RDMA devices cannot be read"
	}
	return out
}

func (f *Facts) ports(v Verdict) Finding {
	state := f.activePort()
	out := Finding{Check: "port", Status: fromState(state, Fail), Sources: []string{ibClass + "/*/ports/*/state", ibClass + "/*/ports/*/link_layer"}}
	active, total := 0, 0
	for i := range f.Map.NICs {
		if n := &f.Map.NICs[i]; n.Eligible && n.RDMA != nil {
			for _, p := range n.RDMA.Ports {
				total++
				if p.Active() {
					active++
				}
			}
		}
	}
	out.Detail = fmt.Sprintf("%d of %s ACTIVE", active, count(total, "port"))
	switch state {
	case tri.True:
		if v.Link != "" {
			out.Detail += ", " + v.Link
		}
		if active < total {
			out.Status, out.Fix = Warn, "ibstat shows the ports that are down; check cables, transceivers and the subnet manager"
		}
	case tri.False:
		out.Reason = NoActivePort
		out.Fix = "ibstat; check cables, transceivers and, for InfiniBand, that a subnet manager runs"
		if f.rdmaDevice() != tri.True {
			out.Detail = "no RDMA device, no port"
		}
	case tri.Unknown:
		out.Reason, out.Detail = Unreadable, "the ports' state cannot be read"
	}
	return out
}

// either fails a way to GPU memory only when the other does not serve.
func either(way, other tri.State) Status {
	if way == tri.False && other == tri.True {
		return OK
	}
	return fromState(way, Fail)
}

func (f *Facts) peermem(v Verdict) Finding {
	out := Finding{
		Check: "peermem", Status: either(v.Peermem, v.DMABuf),
		Sources: []string{peermemDir + "/initstate", "/sys/module/nv_peer_mem/initstate", "/sys/kernel/mm/memory_peers"},
	}
	symbol := f.Kmod.Symbols.PeerMemory
	switch {
	case v.Peermem == tri.True:
		out.Detail = f.Kmod.PeermemBy + " is registered with the RDMA stack"
	case v.Peermem == tri.Unknown:
		out.Reason, out.Detail = Unreadable, "the state of the kernel's modules cannot be read"
	case v.DMABuf == tri.True:
		out.Detail = "not loaded, and not needed: DMA-BUF serves (NCCL 2.13 and newer)"
	case symbol == tri.True:
		out.Reason = PeermemNotLoaded
		out.Detail = "not loaded, though the RDMA stack has the interface for it"
		out.Fix = "modprobe nvidia-peermem (GPU Operator: driver.rdma.enabled=true); if that says Invalid argument, rebuild the GPU driver against the installed MOFED"
		out.Sources = append(out.Sources, kallsyms)
	default:
		out.Reason = NoPeerMemoryPath
		out.Detail = "not loaded, and the RDMA stack shows no interface for it (ib_register_peer_memory_client)"
		if symbol == tri.Unknown {
			out.Detail = "not loaded; whether the RDMA stack has an interface for it cannot be read"
		}
		out.Fix = "install MOFED / DOCA-OFED and rebuild the GPU driver against it, or use DMA-BUF"
		if symbol == tri.Unknown {
			out.Fix = "modprobe nvidia-peermem; it says Unknown symbol or Invalid argument where there is no interface"
		}
		out.Sources = append(out.Sources, kallsyms)
	}
	if f.Kmod.PeermemModule == kmod.Coming || f.Kmod.PeermemModule == kmod.Going {
		out.Detail += "; nvidia_peermem is " + string(f.Kmod.PeermemModule) + " just now"
	}
	return out
}

func (f *Facts) stack() Finding {
	out := Finding{Check: "rdma-stack", Status: OK, Sources: []string{"/sys/module/mlx_compat", "/sys/module/mlx5_core/version", kallsyms}}
	m := f.Kmod.Stack.MOFED
	switch m.Origin {
	case kmod.OriginMOFED:
		out.Detail = "MOFED " + orUnknown(m.Version)
	case kmod.OriginInbox:
		out.Detail = "the kernel's own drivers"
	case kmod.OriginNotLoaded:
		out.Detail = "neither mlx5_core nor mlx4_core is loaded"
	case kmod.OriginUnknown:
		out.Status, out.Detail = Undecidable, "the drivers' origin cannot be read"
	}
	if level := f.Kmod.Stack.PeerDirect; level != "" {
		out.Detail += ", PeerDirect " + string(level)
	}
	if f.Kmod.Stack.PeerDirect == kmod.PeerDirectLegacy {
		out.Status = Warn
		out.Fix = "with GPU drivers before 560 load nvidia-peermem with peerdirect_support=1; better, move to MOFED 5.1 or newer"
	}
	return out
}

func gpuName(f *pci.Function) string {
	if name := f.Name(); name != "" {
		return name
	}
	return fmt.Sprintf("the GPU %04x:%04x", f.Vendor, f.Device)
}

func orUnknown(s string) string {
	if s == "" {
		return "of unknown version"
	}
	return s
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
