package findings

import (
	"cmp"
	"fmt"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/show"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// stepReason is the reason of the verdict's step that a check reports.
func (f *judged) stepReason(check string) verdict.Reason {
	for _, s := range f.Verdict.Steps {
		if s.Check == check {
			return s.Reason
		}
	}
	return ""
}

var hardware = check{
	Name: "hardware", Sources: []string{pci.Devices},
	Codes: []finding.Code{
		"TegraGPU", "NoGPU", "GPUUnsupported", "NoNIC", "NICNotJudged", "NICUnsupported",
		"PlatformForbidsP2P", finding.Unreadable,
	},
	Judge: judgeHardware,
}

func judgeHardware(f *judged) finding.Said {
	switch f.stepReason("hardware") {
	case "":
		return finding.OK("%s and %s can do GPUDirect RDMA", show.Count(f.Matrix.EligibleGPUs, "GPU"),
			show.Count(f.Matrix.EligibleNICs, "NIC"))
	case verdict.NoGPU:
		return noGPU(f)
	case verdict.GPUUnsupported:
		help := &f.Matrix.GPUs[0].GPU.Help
		return finding.Unmet(verdict.GPUUnsupported, "%s does not support GPUDirect RDMA on %s", help.Vendor,
			firstGPU(f)).
			Saw(gpuIDs(f)...).Do("use " + help.Product)
	case verdict.NoNIC:
		return finding.Unmet(verdict.NoNIC, "no NIC on the PCI bus that GPUDirect RDMA works with").
			Do("install one of these: " + products(f))
	case verdict.NICNotJudged:
		return notJudged(f)
	case verdict.NICUnsupported:
		return finding.Unmet(verdict.NICUnsupported, "every NIC is an unsupported model, manages an NVLink fabric, "+
			"or has a class other than Ethernet (0200) and InfiniBand (0207)").
			Saw(f.of(isNIC, sawID)...).Do("install a " + newerThanThese(f) + " NIC")
	case verdict.PlatformForbidsP2P:
		return forbidden(f)
	default:
		return unreadHardware(f)
	}
}

// What to do where something cannot be read.
const (
	seeProblems = "see the problems listed below"
	mountSys    = "mount the host's /sys"
)

// noGPU says what is there instead.
func noGPU(f *judged) finding.Said {
	if model := f.Platform.Tegra; model != "" {
		return finding.Unmet(verdict.NoGPU, "no NVIDIA GPU on the PCI bus: the integrated GPU of a Tegra is part "+
			"of the SoC and is not judged").
			As("TegraGPU").Saw(finding.Saw(platform.CompatibleFile, model))
	}
	if found := displays(f); found.Any() {
		first := display(f, f.functions(isDisplay(f))[0])
		return finding.Unmet(verdict.NoGPU, "no GPU that GPUDirect RDMA works with; these are only displays: %s",
			found).
			Of(found).
			Do("use " + first.Help.Product)
	}
	return finding.Unmet(verdict.NoGPU, "no %s GPU on the PCI bus", vendors(f))
}

// notJudged is about NICs of families that are only listed.
func notJudged(f *judged) finding.Said {
	seen := f.of(isOtherNIC, sawID)
	if len(selectable(f)) == 0 {
		return finding.Unknown("no table tells what the only NICs with RDMA can do, so they are not judged: %s",
			otherNICs(f)).
			Because(verdict.NICNotJudged).
			Saw(seen...).
			Do("make a file with `gdr-features snapshot` and send it to the maintainers, so that such NICs can be judged")
	}
	return finding.Unknown("the only RDMA NICs are of families that are not judged: %s", otherNICs(f)).
		Because(verdict.NICNotJudged).
		Saw(seen...).Do("if you know that they reach GPU memory, judge by them too: --nic-families=" + withOthers(f))
}

// forbidden says what forbids every pair: the type of the machine, or the places on this CPU.
func forbidden(f *judged) finding.Said {
	if f.Matrix.Refuses(f.NIC) == tristate.True {
		return finding.Unmet(verdict.PlatformForbidsP2P, "a machine of type %s cannot do GPUDirect RDMA with %s, "+
			"whatever its GPUs can do",
			f.Matrix.Machine.Product.Value, f.NIC.Name).
			Saw(SawMachine(f.Node)...).Do("use " + f.NIC.NoGPUMemory.Instead)
	}
	move := "move a NIC and a GPU below one PCIe switch"
	if overridable(f) {
		move += " (NVreg_" + kmod.TopoOverride + "=1 makes the driver try anyway; for tests only)"
	}
	return finding.Unmet(verdict.PlatformForbidsP2P, "on this CPU the %s driver maps GPU memory only for a NIC "+
		"that shares a PCIe bridge with the GPU, and no pair does",
		f.GPU.Help.Vendor).
		Saw(f.of(isGPU, sawPlace)...).Saw(topoOverride(f)...).Do(move)
}

// unreadHardware says what would tell whether the hardware can.
func unreadHardware(f *judged) finding.Said {
	overC2C := nicsOverC2C(f)
	switch {
	case f.Matrix.Refuses(f.NIC) == tristate.Unknown:
		return finding.Unread("the firmware's names do not tell which type of machine this is, and on some types "+
			"%s does not reach GPU memory", f.NIC.Name).
			Saw(SawMachine(f.Node)...).Do("mount the host's /sys, with " + platform.DMIDir)
	case overC2C.Any():
		return finding.Unread("the only NICs are attached over NVLink-C2C, and their place on the PCI bus does "+
			"not say how they reach GPU memory: %s", overC2C).
			Of(overC2C).Do("measure with `ib_write_bw --use_cuda`")
	case f.Matrix.EligibleGPUs > 0 && f.Matrix.EligibleNICs > 0 &&
		f.PCI.NeedsCommonBridge(f.GPU) == tristate.Unknown: // and no pair is known to be allowed
		return finding.Unread("the host bridges and root ports cannot all be read, and on some CPUs the %s driver "+
			"maps GPU memory only "+
			"for a NIC that shares a PCIe bridge with the GPU", f.GPU.Help.Vendor).
			Saw(f.of(eligibleGPU, sawPlace)...).Saw(f.of(eligibleNIC, sawPlace)...).Do(seeProblems, mountSys)
	case f.Matrix.Complete && f.PCI.Unplaced:
		return finding.Unread("no known NIC is here, and the RDMA devices cannot be read, so an unknown one may be").
			Do(seeProblems, mountSys)
	}
	return finding.Unread("PCI functions cannot be read").Do(seeProblems, mountSys)
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
	return strings.Join(finding.Unique(finding.Map(families(f).NICs,
		func(n *family.NIC) string { return n.Help.Product })), ", ")
}

// newerThanThese names the NICs to use instead of the machine's.
func newerThanThese(f *judged) string {
	return strings.Join(finding.Unique(f.of(isNIC,
		func(fn *pci.Function) string { return fn.NIC.Help.Product })), " or ")
}

func isOtherNIC(fn *pci.Function) bool { return fn.Other != nil }

// otherNICs lists the NICs that are not judged, with their family.
func otherNICs(f *judged) string {
	return finding.FirstFew(f.of(isOtherNIC, func(fn *pci.Function) string {
		return fmt.Sprintf("%s %v %s", fn.Other.Name, fn.Address, cmp.Or(fn.Name(), fmt.Sprintf("%04x:%04x",
			fn.Vendor, fn.Device)))
	}))
}

// selectable are the families of those that the user may choose to judge by.
func selectable(f *judged) []string {
	return finding.Unique(f.of(func(fn *pci.Function) bool { return isOtherNIC(fn) && fn.Other.Verbs() },
		func(fn *pci.Function) string { return fn.Other.Name }))
}

// withOthers lists the families that count, and those of the NICs that are not judged.
func withOthers(f *judged) string {
	return strings.Join(append(family.Names(families(f).NICs), selectable(f)...), ",")
}

func firstGPU(f *judged) string {
	gpu := f.Matrix.GPUs[0].Function
	return cmp.Or(gpu.Name(), fmt.Sprintf("the GPU %04x:%04x", gpu.Vendor, gpu.Device))
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

// SawMachine is evidence of the names of the machine.
func SawMachine(node *verdict.Node) []string {
	names := node.Matrix.Machine
	return []string{
		finding.Saw(platform.DMIDir+"/sys_vendor", names.Vendor.Value),
		finding.Saw(platform.DMIDir+"/product_name", names.Product.Value),
	}
}

func topoOverride(f *judged) []string {
	if value := f.Kmod.Params[kmod.TopoOverride]; value != "" {
		return f.saw(kmod.FactParams, kmod.TopoOverride+": "+value)
	}
	return nil
}

var gpuDriver = check{
	Name: "gpu-driver", Sources: []string{pci.AnyFile(pci.DriverFile)}, Facts: []kmod.Fact{kmod.FactDriver},
	Codes: []finding.Code{"GPUDriverNotLoaded", "GPUPassthrough", finding.Unreadable},
	Judge: judgeGPUDriver,
}

func judgeGPUDriver(f *judged) finding.Said {
	driver, driven := f.GPU.Driver, f.Verdict.GPUDriven
	if lack := apart(f, verdict.GPUDriverNotLoaded, driven, "a GPU that "+driver+" drives"); lack.Found() {
		return lack.Saw(gpuDrivers(f)...).Do("bind such a GPU to "+driver+", which must not exclude it", orMoveOther)
	}
	excluded, perhaps := f.excluded(tristate.True), perhapsExcluded(f)
	switch {
	case f.Verdict.AllPassthrough == tristate.True:
		return finding.Unmet(verdict.GPUPassthrough, "every eligible GPU is bound to %s, for virtual machines",
			passthroughDrivers(f)).
			Saw(gpuDrivers(f)...).
			Do("GPUDirect RDMA is then up to the virtual machines", "to use the GPUs on this host, bind them to "+driver)
	case driven == tristate.True:
		return finding.OK("%s", loadedDriver(f))
	case driven == tristate.False && excluded.Any():
		return finding.Unmet(verdict.GPUDriverNotLoaded, "%s", excludes(f, excluded)).Of(excluded).
			Do("take the UUIDs of these GPUs out of the driver's parameter NVreg_ExcludedGpus (old releases: " +
				"NVreg_GpuBlacklist) and load the driver again")
	case driven == tristate.False:
		return finding.Unmet(verdict.GPUDriverNotLoaded, "%s", notBound(f)).Saw(gpuDrivers(f)...).Do(bindGPU(f)...)
	case perhaps.Found():
		return perhaps
	}
	return finding.Unread("the drivers of the GPUs cannot be read").Saw(gpuDrivers(f)...)
}

func notBound(f *judged) string {
	return "no eligible GPU is bound to the " + f.GPU.Help.Vendor + " driver"
}

func excludes(f *judged, gpus finding.Subjects) string {
	return fmt.Sprintf("the %s driver excludes these GPUs, and drives no other eligible one: %s",
		f.GPU.Help.Vendor, gpus)
}

func gpuDriverVersion(f *judged) string { return orUnknown(gpuDriverState(f).Version) }

func orUnknown(version string) string { return cmp.Or(version, "of unknown version") }

// passthroughDrivers are the drivers that hand the GPUs to virtual machines.
func passthroughDrivers(f *judged) string {
	passed := func(fn *pci.Function) bool { return eligibleGPU(fn) && fn.GPU == f.GPU && fn.PassedThrough() }
	return strings.Join(finding.Unique(f.of(passed, func(fn *pci.Function) string { return fn.Driver })), ", ")
}

// loadedDriver names the GPU driver and its variant. One that comes in one variant is the
// kernel's own if it has no version and is not a peer memory client.
func loadedDriver(f *judged) string {
	switch driver := gpuDriverState(f); {
	case f.GPU.OpenFrom != 0:
		return f.GPU.Driver + " " + gpuDriverVersion(f) + ", " + moduleType(f)
	case driver.Version == "" && f.Verdict.Client.Registered != tristate.True: // the kernel's own is not a client
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

var nicDriver = check{
	Name: "nic-driver", Sources: []string{pci.AnyFile(pci.DriverFile)},
	Codes: []finding.Code{"NICDriverNotLoaded", "NICUnbound", finding.Unreadable},
	Judge: judgeNICDriver,
}

func judgeNICDriver(f *judged) finding.Said {
	driver, driven := f.NIC.Drivers[0], f.Verdict.NICDriven
	if lack := apart(f, verdict.NICDriverNotLoaded, driven, "a NIC that is bound to "+driver); lack.Found() {
		return lack.Saw(nicDrivers(f)...).Do("bind such a NIC to "+driver, orMoveOther)
	}
	var unbound finding.Subjects
	for _, n := range f.Verdict.Unbound {
		unbound.Add(nicName(n), sawDriver(n.Function))
	}
	switch {
	case driven == tristate.True && unbound.Any():
		return finding.Warn("NICUnbound", "bound to no driver, beside others that are: %s", unbound).Of(unbound).
			Do("dmesg, searched for its address, says why "+driver+" does not drive it (its firmware, or a fault of "+
				"the card)",
				"write its address to /sys/bus/pci/drivers/"+driver+"/bind, or reboot; if that fails again, have the "+
					"card looked at")
	case driven == tristate.True:
		return finding.OK("an eligible NIC is bound to its driver")
	case driven == tristate.False:
		return finding.Unmet(verdict.NICDriverNotLoaded, "no eligible NIC is bound to its driver (%s)", driver).
			Saw(nicDrivers(f)...).Do(bindNIC(f)...)
	}
	return finding.Unread("the drivers of the NICs cannot be read").Saw(nicDrivers(f)...)
}

var rdmaDevice = check{
	Name: "rdma-device", Sources: []string{rdma.Class},
	Codes: []finding.Code{"NoRDMADevice", "NICWithoutRDMA", "RDMANamespaces", finding.Unreadable},
	Judge: judgeRDMADevice,
}

func judgeRDMADevice(f *judged) finding.Said {
	has := f.Verdict.RDMADevice
	if lack := apart(f, verdict.NoRDMADevice, has, "an RDMA device"); lack.Found() {
		return lack.Saw(withoutRDMA(f)...).Do(loadRDMA(f)...).Do(orMoveOther)
	}
	var without finding.Subjects
	for _, n := range f.Verdict.WithoutRDMA {
		without.Add(nicName(n), sawNoRDMA(n.Function.Address))
	}
	switch {
	case has == tristate.True && without.Any():
		return finding.Warn("NICWithoutRDMA", "without an RDMA device, beside others that have one: %s", without).
			Of(without).
			Do("dmesg says why "+f.NIC.Module+" made none", enableRDMA(f))
	case has == tristate.True:
		names := finding.Map(f.devices(), func(d *rdma.Device) string { return d.Name })
		return finding.OK("%s", strings.Join(names, " "))
	case has == tristate.False:
		return finding.Unmet(verdict.NoRDMADevice, "no eligible NIC has an RDMA device").Saw(withoutRDMA(f)...).
			Do(loadRDMA(f)...)
	}
	return hiddenDevices(f)
}

// hiddenDevices says why it is not known which RDMA devices there are.
func hiddenDevices(f *judged) finding.Said {
	if !f.RDMA.Exclusive {
		return finding.Unread("the RDMA devices cannot be read")
	}
	return finding.Unread("each RDMA device belongs to one network namespace (netns_mode exclusive), so "+
		"devices given to containers are not visible from here").
		As("RDMANamespaces").Saw(finding.Saw(rdma.NetnsMode, "N")).
		Do("`rdma system show`", "run this program in the host's network namespace")
}

// devices are the RDMA devices of eligible NICs.
func (f *judged) devices() []*rdma.Device {
	var all []*rdma.Device
	for _, n := range f.Matrix.NICs {
		if n.Counts() && n.RDMA != nil {
			all = append(all, n.RDMA)
		}
	}
	return all
}

func withoutRDMA(f *judged) []string {
	var all []string
	for _, n := range f.Matrix.NICs {
		if n.Counts() && n.RDMA == nil {
			all = append(all, sawNoRDMA(n.Function.Address))
		}
	}
	return all
}

func sawNoRDMA(a pci.Address) string { return finding.Saw(a.File(rdma.FunctionFile), "absent") }
