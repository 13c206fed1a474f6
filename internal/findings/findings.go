// Package findings says what check found: one finding for each check, with what to
// do about it and the files it was read from. It is pure: facts and their verdict in,
// findings out.
package findings

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/expect"
	"gdr-features/internal/sanitize"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/tristate"
	"gdr-features/verdict"
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
	Reason verdict.Reason
	// Code names what was found; "" only where Status is OK.
	Code Code
	// Detail is what was found, in one sentence.
	Detail string
	// Fix is what to do about it, "" for nothing. A semicolon and a space stand
	// between alternatives and steps.
	Fix string
	// Sources are the files it was read from. Evidence is what those that matter
	// held, "file=value".
	Sources, Evidence []string
}

// Files that findings rest on.
const (
	pciDevices = "/sys/bus/pci/devices"
	ibClass    = "/sys/class/infiniband"
	nvVersion  = "/proc/driver/nvidia/version"
	kallsyms   = "/proc/kallsyms"
	peermemDir = "/sys/module/nvidia_peermem"
	verbsNodes = "/dev/infiniband/uverbs*"
	netnsMode  = "/sys/module/ib_core/parameters/netns_mode"
)

// Facts are what findings are made of.
type Facts struct {
	verdict.Facts
	Verdict verdict.Verdict
	// Expected is how the machine compares with what is expected of it; nil when
	// nobody asks.
	Expected *expect.Result
}

// All gives the findings: the checks in the order of the verdict, then those that
// advise, then what is expected.
func All(f *Facts) []Finding {
	return append(finished(f.checks()), expected(f.Expected)...)
}

func (f *Facts) checks() []Finding {
	v := f.Verdict
	list := []Finding{f.hardware(v)}
	if len(f.Matrix.GPUs) == 0 || v.Capable == tristate.False {
		return list // drivers do not matter
	}
	list = append(list,
		f.gpuDriver(), f.nicDriver(), f.rdmaDevices(), f.ports(v),
		f.peermem(v), f.dmabufFinding(v), f.stack(),
		f.level(), f.ncclDefault(), f.iommuFinding(v), f.acsFinding(v),
	)
	if f.Kmod.Advice != nil {
		list = append(list, f.advised(v)...)
	}
	return list
}

// advised are the checks that only advice is about. Each says something where
// there is something to say.
func (f *Facts) advised(v verdict.Verdict) []Finding {
	return slices.Concat(
		f.nearPorts(), f.sharedNearNIC(), f.operators(v), f.held(),
		f.dataDirect(), f.links(), f.numaBalancing(), f.storage(v),
	)
}

// finished gives every finding that has none its code, the verdict's reason, and
// makes what machines say in it fit to be shown.
func finished(list []Finding) []Finding {
	for i := range list {
		f := &list[i]
		f.Detail, f.Fix = sanitize.Terminal(f.Detail), sanitize.Terminal(f.Fix)
		for _, texts := range [...][]string{f.Sources, f.Evidence} {
			for j, text := range texts {
				texts[j] = sanitize.Terminal(text)
			}
		}
		switch {
		case f.Code != "":
		case f.Reason != "":
			f.Code = Code(f.Reason)
		case f.Status == Undecidable:
			f.Code = Code(verdict.Unreadable)
		}
	}
	return list
}

// fromState turns a fact into a status: what is not proven missing is unknown.
func fromState(s tristate.State, otherwise Status) Status {
	switch s {
	case tristate.True:
		return OK
	case tristate.False:
		return otherwise
	case tristate.Unknown:
	}
	return Undecidable
}

// notCapable is the reason of the verdict's first step.
func (f *Facts) notCapable() verdict.Reason { return f.Verdict.Steps[0].Reason }

func (f *Facts) hardware(v verdict.Verdict) Finding {
	reason := f.notCapable()
	out := Finding{Check: "hardware", Status: fromState(v.Capable, Fail), Reason: reason, Sources: []string{pciDevices}}
	m := &f.Matrix
	switch reason {
	case "":
		out.Detail = fmt.Sprintf("%s and %s can do GPUDirect RDMA", count(m.EligibleGPUs, "GPU"), count(m.EligibleNICs, "adapter"))
	case verdict.NoGPU:
		out.Detail = "no NVIDIA GPU on the PCI bus"
		if tegra := f.advice().Tegra; tegra != "" {
			out.Code = TegraGPU
			out.Detail += ": that of a Tegra is part of the processor, and is not judged"
			out.Evidence = append(out.Evidence, saw("/proc/device-tree/compatible", tegra))
		}
	case verdict.GPUUnsupported:
		out.Detail = fmt.Sprintf("%s is not a product that NVIDIA supports GPUDirect RDMA on", gpuName(m.GPUs[0].Function))
		out.Fix = "use a data-center or professional GPU (GeForce, TITAN and GB10 are refused by the driver)"
		out.Evidence = f.ids(pci.GPU)
	case verdict.NoNIC:
		out.Detail = "no NVIDIA ConnectX or BlueField network function on the PCI bus"
		out.Fix = "install a ConnectX-4 or newer adapter (those of other vendors are not judged)"
	case verdict.NICUnsupported:
		out.Detail = "the network functions of vendor 15b3 are older than ConnectX-3, manage an NVLink fabric, or have another class than Ethernet (0200) or InfiniBand (0207)"
		out.Fix = "install a ConnectX-4 or newer adapter"
		out.Evidence = f.ids(pci.NIC)
	case verdict.PlatformForbidsP2P:
		out.Detail = "on this processor the NVIDIA driver maps GPU memory only for an adapter below a common PCIe bridge, and no pair has one"
		out.Fix = "move an adapter and a GPU below one PCIe switch (NVreg_GrdmaPciTopoCheckOverride=1 makes the driver try all the same, and is for tests)"
		for _, gpu := range m.GPUs {
			out.Evidence = append(out.Evidence, sawPlace(gpu.Function))
		}
		if override := f.advice().TopoOverride; override != "" {
			out.Evidence = append(out.Evidence, saw("/proc/driver/nvidia/params", "GrdmaPciTopoCheckOverride: "+override))
		}
	default:
		out.Detail = "PCI functions cannot be read"
		out.Fix = "see the problems listed below; mount the host's /sys"
	}
	return out
}

func (f *Facts) gpuDriver() Finding {
	out := Finding{Check: "gpu-driver", Sources: []string{pciDevices + "/*/driver", nvVersion}}
	if f.AllPassthrough() == tristate.True {
		out.Status, out.Reason = Fail, verdict.GPUPassthrough
		out.Detail = "every eligible GPU is bound to vfio-pci, for virtual machines"
		out.Fix = "GPUDirect RDMA is up to the virtual machines; for use on this host bind the GPUs to nvidia"
		out.Evidence = f.drivers((*pci.Function).GPUEligible)
		return out
	}
	driven := f.GPUDriven()
	out.Status = fromState(driven, Fail)
	if driven != tristate.True {
		out.Evidence = f.drivers((*pci.Function).GPUEligible)
	}
	switch driven {
	case tristate.True:
		out.Detail = "nvidia " + orUnknown(f.Kmod.Driver.Version) + ", " + flavour(f.Kmod.Driver.Open)
	case tristate.False:
		out.Reason = verdict.GPUDriverNotLoaded
		out.Detail = "no eligible GPU is bound to the NVIDIA driver"
		out.Fix = f.gpuDriverFix()
	case tristate.Unknown:
		out.Reason, out.Detail = verdict.Unreadable, "the GPUs' drivers cannot be read"
	}
	return out
}

func flavour(open tristate.State) string {
	switch open {
	case tristate.True:
		return "open kernel modules"
	case tristate.False:
		return "closed kernel modules"
	case tristate.Unknown:
	}
	return "flavour unknown"
}

func (f *Facts) nicDriver() Finding {
	driven := f.NICDriven()
	out := Finding{Check: "nic-driver", Status: fromState(driven, Fail), Sources: []string{pciDevices + "/*/driver"}}
	switch driven {
	case tristate.True:
		out.Detail = "an eligible adapter is bound to its driver"
	case tristate.False:
		out.Reason = verdict.NICDriverNotLoaded
		out.Detail = "no eligible adapter is bound to mlx5_core or mlx4_core"
		out.Fix = f.nicDriverFix()
	case tristate.Unknown:
		out.Reason, out.Detail = verdict.Unreadable, "the adapters' drivers cannot be read"
	}
	if driven != tristate.True {
		out.Evidence = f.drivers((*pci.Function).NICEligible)
	}
	return out
}

func (f *Facts) rdmaDevices() Finding {
	state := f.RDMADevice()
	out := Finding{Check: "rdma-device", Status: fromState(state, Fail), Sources: []string{ibClass}}
	var names, without []string
	for i := range f.Matrix.NICs {
		switch n := &f.Matrix.NICs[i]; {
		case !n.Eligible:
		case n.RDMA != nil:
			names = append(names, n.RDMA.Name)
		default:
			without = append(without, saw(device(n.Function.Address)+"/infiniband", "absent"))
		}
	}
	switch {
	case state == tristate.True:
		out.Detail = strings.Join(names, " ")
	case state == tristate.False:
		out.Reason = verdict.NoRDMADevice
		out.Detail = "no eligible adapter has an RDMA device"
		out.Fix = f.rdmaDeviceFix()
		out.Evidence = without
	case f.RDMA.Exclusive:
		out.Reason, out.Code = verdict.Unreadable, RDMANamespaces
		out.Detail = "RDMA devices belong to network namespaces (netns_mode exclusive), so those of containers are not seen from here"
		out.Fix = "rdma system show; read from the host's network namespace"
		out.Sources = append(out.Sources, netnsMode)
		out.Evidence = []string{saw(netnsMode, "N")}
	default:
		out.Reason, out.Detail = verdict.Unreadable, "the RDMA devices cannot be read"
	}
	return out
}

// either fails a way to GPU memory only when the other does not serve.
func either(way, other tristate.State) Status {
	if way == tristate.False && other == tristate.True {
		return OK
	}
	return fromState(way, Fail)
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
		f.legacy(&out)
	}
	return out
}

// legacy: on a MOFED before 5.1 nvidia-peermem works with peerdirect_support=1
// only, unless the driver is of 560 or newer, whose persistent API does without.
func (f *Facts) legacy(out *Finding) {
	p := &f.advice().Peermem
	persistent := p.PersistentAPI == "1" || p.PersistentAPI == "" && f.persistentByDefault()
	switch {
	case persistent, p.LegacyAPI == "1", f.Kmod.PeermemBy == "nv_peer_mem":
		out.Detail += ", as the peer memory module is set to use it"
		return
	}
	const file = peermemDir + "/parameters/peerdirect_support"
	parameter := saw(file, p.LegacyAPI)
	if f.Kmod.PeermemModule == kmod.Absent {
		parameter = sawFile(file, tristate.False)
	}
	out.Status, out.Code = Warn, LegacyPeerDirect
	out.Detail += ", which nvidia-peermem of a driver before 560 must be told of"
	out.Fix = "options nvidia-peermem peerdirect_support=1 in /etc/modprobe.d/nvidia-peermem.conf (GPU Operator: the line peerdirect_support=1 alone, key nvidia-peermem.conf of the ConfigMap that driver.kernelModuleConfig.name names), and load it anew; better, move to MOFED 5.1 or newer"
	out.Sources = append(out.Sources, file)
	out.Evidence = []string{saw("/sys/module/mlx5_core/version", f.Kmod.Stack.MOFED.Version), parameter, saw(nvVersion, f.Kmod.Driver.Version)}
}

// ids is evidence of what the functions of a kind are.
func (f *Facts) ids(kind pci.Kind) []string {
	var all []string
	for i := range f.PCI.Functions {
		if fn := &f.PCI.Functions[i]; fn.Kind() == kind {
			all = append(all, saw(device(fn.Address)+"/modalias", fmt.Sprintf("%04x:%04x class %06x", fn.Vendor, fn.Device, fn.Class)))
		}
	}
	return all
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
