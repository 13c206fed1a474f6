package findings

import (
	"fmt"
	"strings"

	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// because reports whether the reason of the verdict's step about the hardware is this
// one; it is "" when the step is met.
func because(reason verdict.Reason) func(*Facts) bool {
	return func(f *Facts) bool { return f.stepReason("hardware") == reason }
}

// stepReason is the reason of the verdict's step that a check reports.
func (f *Facts) stepReason(check string) verdict.Reason {
	for _, s := range f.Verdict.Steps {
		if s.Check == check {
			return s.Reason
		}
	}
	return ""
}

var hardware = check{name: "hardware", sources: []string{pci.Devices}, rows: []row{
	{
		status: OK, when: because(""),
		text: say("%s and %s can do GPUDirect RDMA",
			func(f *Facts) string { return count(f.Matrix.EligibleGPUs, "GPU") },
			func(f *Facts) string { return count(f.Matrix.EligibleNICs, "NIC") }),
	},
	{
		status: Fail, reason: verdict.NoGPU, code: "TegraGPU", which: tegra,
		text: say("no NVIDIA GPU on the PCI bus: the integrated GPU of a Tegra is part of the SoC and is not judged"),
	},
	{status: Fail, reason: verdict.NoGPU, when: because(verdict.NoGPU), text: say("no NVIDIA GPU on the PCI bus")},
	{
		status: Fail, reason: verdict.GPUUnsupported, when: because(verdict.GPUUnsupported),
		text:     say("NVIDIA does not support GPUDirect RDMA on %s", firstGPU),
		fix:      say("use a data-center or professional GPU (the driver refuses GeForce, TITAN and GB10)"),
		evidence: gpuIDs,
	},
	{
		status: Fail, reason: verdict.NoNIC, when: because(verdict.NoNIC),
		text: say("no NVIDIA ConnectX or BlueField network function on the PCI bus"),
		fix:  say("install a %s NIC (NICs of other vendors are not judged)", newerNIC),
	},
	{
		status: Fail, reason: verdict.NICUnsupported, when: because(verdict.NICUnsupported),
		text:     say("every NIC is an unsupported model, manages an NVLink fabric, or has a class other than Ethernet (0200) and InfiniBand (0207)"),
		fix:      say("install a %s NIC", newerNIC),
		evidence: nicIDs,
	},
	{
		status: Fail, reason: verdict.PlatformForbidsP2P, when: because(verdict.PlatformForbidsP2P),
		text:     say("on this CPU the NVIDIA driver maps GPU memory only for a NIC that shares a PCIe bridge with the GPU, and no pair does"),
		fix:      say("move a NIC and a GPU below one PCIe switch (NVreg_GrdmaPciTopoCheckOverride=1 makes the driver try anyway; for tests only)"),
		evidence: join(gpuPlaces, topoOverride),
	},
	{status: Undecidable, reason: verdict.Unreadable, text: say("PCI functions cannot be read"), fix: say("see the problems listed below; mount the host's /sys")},
}}

func tegra(f *Facts) (names, evidence []string) {
	name := f.advised().Tegra
	if name == "" || !because(verdict.NoGPU)(f) {
		return nil, nil
	}
	return []string{name}, f.saw(kmod.FactTegra, "", name)
}

func firstGPU(f *Facts) string {
	gpu := f.Matrix.GPUs[0].Function
	if name := gpu.Name(); name != "" {
		return name
	}
	return fmt.Sprintf("the GPU %04x:%04x", gpu.Vendor, gpu.Device)
}

func gpuPlaces(f *Facts) []string { return f.of(isGPU, sawPlace) }

func topoOverride(f *Facts) []string {
	if value := f.advised().TopoOverride; value != "" {
		return f.saw(kmod.FactTopoOverride, "", "GrdmaPciTopoCheckOverride: "+value)
	}
	return nil
}

var gpuDriver = check{name: "gpu-driver", sources: []string{pci.AnyFile(pci.DriverFile)}, facts: []kmod.Fact{kmod.FactDriver}, rows: []row{
	{
		status: Fail, reason: verdict.GPUPassthrough, when: passthrough,
		text:     say("every eligible GPU is bound to vfio-pci, for virtual machines"),
		fix:      say("GPUDirect RDMA is then up to the virtual machines; to use the GPUs on this host, bind them to nvidia"),
		evidence: gpuDrivers,
	},
	{status: OK, when: is((*Facts).GPUDriven, tristate.True), text: say("nvidia %s, %s", gpuDriverVersion, moduleType)},
	{
		status: Fail, reason: verdict.GPUDriverNotLoaded, when: is((*Facts).GPUDriven, tristate.False),
		text: say("no eligible GPU is bound to the NVIDIA driver"), fix: bindGPU,
		evidence: gpuDrivers,
	},
	{status: Undecidable, reason: verdict.Unreadable, text: say("the drivers of the GPUs cannot be read"), evidence: gpuDrivers},
}}

func passthrough(f *Facts) bool        { return f.AllPassthrough() == tristate.True }
func gpuDriverVersion(f *Facts) string { return orUnknown(gpuDriverState(f).Version) }

func orUnknown(version string) string {
	if version == "" {
		return "of unknown version"
	}
	return version
}

func moduleType(f *Facts) string {
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
	{status: OK, when: is((*Facts).NICDriven, tristate.True), text: say("an eligible NIC is bound to its driver")},
	{
		status: Fail, reason: verdict.NICDriverNotLoaded, when: is((*Facts).NICDriven, tristate.False),
		text: say("no eligible NIC is bound to its driver (%s)", nicDriverName), fix: bindNIC,
		evidence: nicDrivers,
	},
	{status: Undecidable, reason: verdict.Unreadable, text: say("the drivers of the NICs cannot be read"), evidence: nicDrivers},
}}

var rdmaDevice = check{name: "rdma-device", sources: []string{rdma.Class}, rows: []row{
	{status: OK, when: is((*Facts).RDMADevice, tristate.True), text: rdmaNames},
	{
		status: Fail, reason: verdict.NoRDMADevice, when: is((*Facts).RDMADevice, tristate.False),
		text: say("no eligible NIC has an RDMA device"), fix: loadRDMA,
		evidence: withoutRDMA,
	},
	{
		status: Undecidable, reason: verdict.Unreadable, code: "RDMANamespaces",
		when:     func(f *Facts) bool { return f.RDMA.Exclusive },
		text:     say("each RDMA device belongs to one network namespace (netns_mode exclusive), so devices given to containers are not visible from here"),
		fix:      say("rdma system show; run this program in the host's network namespace"),
		evidence: func(*Facts) []string { return []string{saw(rdma.NetnsMode, "N")} },
	},
	{status: Undecidable, reason: verdict.Unreadable, text: say("the RDMA devices cannot be read")},
}}

// rdmaNames lists the RDMA devices of eligible NICs.
func rdmaNames(f *Facts) string {
	var names []string
	for i := range f.Matrix.NICs {
		if n := &f.Matrix.NICs[i]; n.Eligible && n.RDMA != nil {
			names = append(names, n.RDMA.Name)
		}
	}
	return strings.Join(names, " ")
}

func withoutRDMA(f *Facts) []string {
	var all []string
	for i := range f.Matrix.NICs {
		if n := &f.Matrix.NICs[i]; n.Eligible && n.RDMA == nil {
			all = append(all, sawNoRDMA(n.Function.Address))
		}
	}
	return all
}

func sawNoRDMA(a pci.Address) string { return saw(a.File(rdma.FunctionFile), "absent") }
