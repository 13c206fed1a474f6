package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// because reports whether the reason of the verdict's step about the hardware is this
// one; it is "" when the step is met.
func because(reason verdict.Reason) func(*judged) bool {
	return func(f *judged) bool { return f.stepReason("hardware") == reason }
}

// stepReason is the reason of the verdict's step that a check reports.
func (f *judged) stepReason(check string) verdict.Reason {
	for _, s := range f.Verdict.Steps {
		if s.Check == check {
			return s.Reason
		}
	}
	return ""
}

var hardware = check{name: "hardware", byReason: true, sources: []string{pci.Devices}, rows: []row{
	{
		status: OK,
		text:   "{gpus} and {nics} can do GPUDirect RDMA",
	},
	{
		status: Fail, reason: verdict.NoGPU, code: "TegraGPU", whom: tegra,
		text: "no NVIDIA GPU on the PCI bus: the integrated GPU of a Tegra is part of the SoC and is not judged",
	},
	{
		status: Fail, reason: verdict.NoGPU, whom: displays,
		text: "no GPU that GPUDirect RDMA works with; these are only displays: {about}",
		fix:  do("use {displayProduct}"),
	},
	{status: Fail, reason: verdict.NoGPU, text: "no {vendors} GPU on the PCI bus"},
	{
		status: Fail, reason: verdict.GPUUnsupported,
		text:     "{firstVendor} does not support GPUDirect RDMA on {firstGPU}",
		fix:      do("use {firstProduct}"),
		evidence: gpuIDs,
	},
	{
		status: Fail, reason: verdict.NoNIC,
		text: "no NIC on the PCI bus that GPUDirect RDMA works with",
		fix:  do("install one of these: {products}"),
	},
	{
		status: Undecidable, reason: verdict.NICNotJudged, when: func(f *judged) bool { return len(selectable(f)) == 0 },
		text:     "no table tells what the only NICs with RDMA can do, so they are not judged: {otherNICs}",
		fix:      do("make a file with gdr-features snapshot and send it to the maintainers, so that such NICs can be judged"),
		evidence: func(f *judged) []string { return f.of(isOtherNIC, sawID) },
	},
	{
		status: Undecidable, reason: verdict.NICNotJudged,
		text: "the only RDMA NICs are of families that are not judged: {otherNICs}",
		fix:  do("if you know that they reach GPU memory, judge by them too: --nic-families={withOthers}"), evidence: func(f *judged) []string { return f.of(isOtherNIC, sawID) },
	},
	{
		status: Fail, reason: verdict.NICUnsupported,
		text:     "every NIC is an unsupported model, manages an NVLink fabric, or has a class other than Ethernet (0200) and InfiniBand (0207)",
		fix:      do("install a {newerThanThese} NIC"),
		evidence: func(f *judged) []string { return f.of(isNIC, sawID) },
	},
	{
		status: Fail, reason: verdict.PlatformForbidsP2P, when: refuses(tristate.True),
		text: "a machine of type {machineType} cannot do GPUDirect RDMA with {nic}, whatever its GPUs can do",
		fix:  do("use {insteadOfMachine}"), evidence: machineNames,
	},
	{
		status: Fail, reason: verdict.PlatformForbidsP2P,
		text:     "on this CPU the {vendor} driver maps GPU memory only for a NIC that shares a PCIe bridge with the GPU, and no pair does",
		fix:      moveTogether,
		evidence: func(f *judged) []string { return slices.Concat(f.of(isGPU, sawPlace), topoOverride(f)) },
	},
	{
		status: Undecidable, reason: verdict.Unreadable, when: refuses(tristate.Unknown),
		text: "the firmware's names do not tell which type of machine this is, and on some types {nic} does not reach GPU memory",
		fix:  do("mount the host's /sys, with " + platform.DMIDir), evidence: machineNames,
	},
	{
		status: Undecidable, reason: verdict.Unreadable, whom: nicsOverC2C,
		text: "the only NICs are attached over NVLink-C2C, and their place on the PCI bus does not say how they reach GPU memory: {about}",
		fix:  do("measure with ib_write_bw --use_cuda"),
	},
	unreadCPU,
	{
		status: Undecidable, reason: verdict.Unreadable, when: func(f *judged) bool { return f.Matrix.Complete && f.PCI.Unplaced },
		text: "no known NIC is here, and the RDMA devices cannot be read, so an unknown one may be",
		fix:  do("see the problems listed below", "mount the host's /sys"),
	},
	{status: Undecidable, reason: verdict.Unreadable, text: "PCI functions cannot be read", fix: do("see the problems listed below", "mount the host's /sys")},
}}

func tegra(f *judged) (found finding.Subjects) {
	if name := f.Platform.Tegra; name != "" {
		found.Add(name, finding.Saw(platform.CompatibleFile, name))
	}
	return found
}

// display is the family of GPUs whose vendor's display a function is, nil for any other.
func display(f *judged, fn *pci.Function) *family.GPU { return families(f).Display(fn.IDs()) }

func isDisplay(f *judged) func(*pci.Function) bool {
	return func(fn *pci.Function) bool { return display(f, fn) != nil }
}

// displays lists the displays of vendors of GPUs.
func displays(f *judged) (found finding.Subjects) {
	for _, fn := range f.functions(isDisplay(f)) {
		found.Add(strings.TrimSpace(fn.Address.String()+" "+cmp.Or(fn.Name(), display(f, fn).Help.Vendor)), sawID(fn))
	}
	return found
}

// vendors names the vendors of the GPUs that are judged, "NVIDIA or AMD".
func vendors(f *judged) string {
	return strings.Join(finding.Map(families(f).GPUs, func(g *family.GPU) string { return g.Help.Vendor }), " or ")
}

// products names the NICs that count.
func products(f *judged) string {
	return strings.Join(finding.Unique(finding.Map(families(f).NICs, func(n *family.NIC) string { return n.Help.Product })), ", ")
}

// newerThanThese names the NICs to use instead of the machine's.
func newerThanThese(f *judged) string {
	return strings.Join(finding.Unique(f.of(isNIC, func(fn *pci.Function) string { return fn.NIC.Help.Product })), " or ")
}

func isOtherNIC(fn *pci.Function) bool { return fn.Other != nil }

// otherNICs lists the NICs that are not judged, with their family.
func otherNICs(f *judged) string {
	return finding.FirstFew(f.of(isOtherNIC, func(fn *pci.Function) string {
		return fmt.Sprintf("%s %v %s", fn.Other.Name, fn.Address, cmp.Or(fn.Name(), fmt.Sprintf("%04x:%04x", fn.Vendor, fn.Device)))
	}))
}

// selectable are the families of those that the user may choose to judge by.
func selectable(f *judged) []string {
	return finding.Unique(f.of(func(fn *pci.Function) bool { return isOtherNIC(fn) && fn.Other.Verbs() }, func(fn *pci.Function) string { return fn.Other.Name }))
}

// withOthers lists the families that count, and those of the NICs that are not judged.
func withOthers(f *judged) string {
	return strings.Join(append(family.Names(families(f).NICs), selectable(f)...), ",")
}

func firstGPU(f *judged) string {
	gpu := f.Matrix.GPUs[0].Function
	return cmp.Or(gpu.Name(), fmt.Sprintf("the GPU %04x:%04x", gpu.Vendor, gpu.Device))
}

// refuses: the judged NICs reach no GPU's memory on a machine of this type.
func refuses(state tristate.State) func(*judged) bool {
	return func(f *judged) bool { return f.Matrix.Refuses(f.NIC) == state }
}

// nicsOverC2C lists the eligible NICs, if all of them are attached over NVLink-C2C.
func nicsOverC2C(f *judged) (nics finding.Subjects) {
	for _, fn := range f.functions(eligibleNIC) {
		if !fn.OverC2C() {
			return finding.Subjects{}
		}
		nics.Add(fn.Address.String()+" "+fn.Name(), sawID(fn))
	}
	return nics
}

func machineNames(f *judged) []string {
	names := f.Matrix.Machine
	return []string{finding.Saw(platform.DMIDir+"/sys_vendor", names.Vendor.Value), finding.Saw(platform.DMIDir+"/product_name", names.Product.Value)}
}

// moveTogether names the parameter that allows every pair where the driver may have it.
func moveTogether(f *judged) []string {
	const move = "move a NIC and a GPU below one PCIe switch"
	if overridable(f) {
		return finding.Steps(move + " (NVreg_" + kmod.TopoOverride + "=1 makes the driver try anyway; for tests only)")
	}
	return finding.Steps(move)
}

func topoOverride(f *judged) []string {
	if value := f.Kmod.Params[kmod.TopoOverride]; value != "" {
		return f.saw(kmod.FactParams, kmod.TopoOverride+": "+value)
	}
	return nil
}

var gpuDriver = check{name: "gpu-driver", sources: []string{pci.AnyFile(pci.DriverFile)}, facts: []kmod.Fact{kmod.FactDriver}, rows: []row{
	apartGPUs,
	{
		status: Fail, reason: verdict.GPUPassthrough, when: func(f *judged) bool { return f.AllPassthrough() == tristate.True },
		text:     "every eligible GPU is bound to {passthroughDrivers}, for virtual machines",
		fix:      do("GPUDirect RDMA is then up to the virtual machines", "to use the GPUs on this host, bind them to {gpuDriver}"),
		evidence: gpuDrivers,
	},
	{status: OK, when: func(f *judged) bool { return f.GPUDriven() == tristate.True }, text: "{loadedDriver}"},
	{
		status: Fail, reason: verdict.GPUDriverNotLoaded, when: func(f *judged) bool { return f.GPUDriven() == tristate.False }, whom: excluded(tristate.True),
		text: excludes,
		fix:  do("take the UUIDs of these GPUs out of the driver's parameter NVreg_ExcludedGpus (old releases: NVreg_GpuBlacklist) and load the driver again"),
	},
	{
		status: Fail, reason: verdict.GPUDriverNotLoaded, when: func(f *judged) bool { return f.GPUDriven() == tristate.False },
		text: notBound, fix: bindGPU,
		evidence: gpuDrivers,
	},
	perhapsExcluded,
	{status: Undecidable, reason: verdict.Unreadable, text: "the drivers of the GPUs cannot be read", evidence: gpuDrivers},
}}

func gpuDriverVersion(f *judged) string { return orUnknown(gpuDriverState(f).Version) }

func orUnknown(version string) string { return cmp.Or(version, "of unknown version") }

// passthroughDrivers are the drivers that hand the GPUs to virtual machines.
func passthroughDrivers(f *judged) string {
	passed := func(fn *pci.Function) bool { return eligibleGPU(fn) && fn.GPU == f.GPU && fn.PassedThrough() }
	return strings.Join(finding.Unique(f.of(passed, func(fn *pci.Function) string { return fn.Driver })), ", ")
}

// loadedDriver names the GPU driver and its variant: open or proprietary kernel modules. A
// driver that comes in one variant is the kernel's own if it has no version and is not a
// peer memory client.
func loadedDriver(f *judged) string {
	switch driver := gpuDriverState(f); {
	case f.GPU.OpenFrom != 0:
		return f.GPU.Driver + " " + gpuDriverVersion(f) + ", " + moduleType(f)
	case driver.Version == "" && f.Client().Registered != tristate.True: // the kernel's own is not a client
		return "the kernel's own " + f.GPU.Driver
	}
	return f.GPU.Driver + " " + gpuDriverVersion(f)
}

func moduleType(f *judged) string {
	switch gpuDriverState(f).Open {
	case tristate.True:
		return "open kernel modules"
	case tristate.False:
		return "proprietary kernel modules"
	case tristate.Unknown:
	}
	return "kernel module type unknown"
}

var nicDriver = check{name: "nic-driver", sources: []string{pci.AnyFile(pci.DriverFile)}, rows: []row{
	apartNICs,
	{
		status: Warn, code: "NICUnbound", when: func(f *judged) bool { return f.NICDriven() == tristate.True }, whom: unboundNICs,
		text: "bound to no driver, beside others that are: {about}",
		fix: do("dmesg, searched for its address, says why {nicDriver} does not drive it (its firmware, or a fault of the card)",
			"write its address to /sys/bus/pci/drivers/{nicDriver}/bind, or reboot; if that fails again, have the card looked at"),
	},
	{status: OK, when: func(f *judged) bool { return f.NICDriven() == tristate.True }, text: "an eligible NIC is bound to its driver"},
	{
		status: Fail, reason: verdict.NICDriverNotLoaded, when: func(f *judged) bool { return f.NICDriven() == tristate.False },
		text: "no eligible NIC is bound to its driver ({nicDriver})", fix: bindNIC,
		evidence: nicDrivers,
	},
	{status: Undecidable, reason: verdict.Unreadable, text: "the drivers of the NICs cannot be read", evidence: nicDrivers},
}}

var rdmaDevice = check{name: "rdma-device", sources: []string{rdma.Class}, rows: []row{
	apartDevices,
	{
		status: Warn, code: "NICWithoutRDMA", when: func(f *judged) bool { return f.RDMADevice() == tristate.True }, whom: nicsWithoutRDMA,
		text: "without an RDMA device, beside others that have one: {about}",
		fix:  do("dmesg says why {module} made none", "{enableRDMA}"),
	},
	{status: OK, when: func(f *judged) bool { return f.RDMADevice() == tristate.True }, text: "{rdmaNames}"},
	{
		status: Fail, reason: verdict.NoRDMADevice, when: func(f *judged) bool { return f.RDMADevice() == tristate.False },
		text: "no eligible NIC has an RDMA device", fix: loadRDMA,
		evidence: withoutRDMA,
	},
	{
		status: Undecidable, reason: verdict.Unreadable, code: "RDMANamespaces",
		when:     func(f *judged) bool { return f.RDMA.Exclusive },
		text:     "each RDMA device belongs to one network namespace (netns_mode exclusive), so devices given to containers are not visible from here",
		fix:      do("rdma system show", "run this program in the host's network namespace"),
		evidence: func(*judged) []string { return []string{finding.Saw(rdma.NetnsMode, "N")} },
	},
	{status: Undecidable, reason: verdict.Unreadable, text: "the RDMA devices cannot be read"},
}}

// devices are the RDMA devices of eligible NICs.
func (f *judged) devices() []*rdma.Device {
	var all []*rdma.Device
	for _, n := range f.Matrix.NICs {
		if n.Eligible && n.RDMA != nil {
			all = append(all, n.RDMA)
		}
	}
	return all
}

// rdmaNames lists the RDMA devices of eligible NICs.
func rdmaNames(f *judged) string {
	return strings.Join(finding.Map(f.devices(), func(d *rdma.Device) string { return d.Name }), " ")
}

func withoutRDMA(f *judged) []string {
	var all []string
	for _, n := range f.Matrix.NICs {
		if n.Eligible && n.RDMA == nil {
			all = append(all, sawNoRDMA(n.Function.Address))
		}
	}
	return all
}

func sawNoRDMA(a pci.Address) string { return finding.Saw(a.File(rdma.FunctionFile), "absent") }
