package expect

import (
	"cmp"
	"slices"
	"strings"

	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

func (f *facts) software(e *Expectations) []Check {
	var all []Check
	if e.Driver.text != "" {
		all = append(all, f.driver(f.gpuFamily(e), e.Driver))
	}
	if e.Modules != "" {
		all = append(all, f.modules(f.gpuFamily(e), e.Modules))
	}
	if e.MOFED.text != "" || e.Inbox {
		all = append(all, f.mofed(e.MOFED))
	}
	if e.Mechanism != "" {
		all = append(all, f.mechanism(e.Mechanism))
	}
	if len(e.IOMMU) > 0 {
		all = append(all, value("iommu", "IOMMU", e.IOMMU, f.Verdict.IOMMU,
			"the kernel's command line (iommu=, intel_iommu=, amd_iommu=) and the firmware's setting",
			[]string{pci.AnyFile(pci.IOMMUGroupFile)}, platform.FactIOMMU))
	}
	if len(e.ACS) > 0 {
		all = append(all, value("acs", "ACS", e.ACS, f.Verdict.ACS,
			"the firmware's setting of ACS, or setpci at boot; virtual machines and Grace need the redirection", []string{pci.AnyFile(pci.ConfigFile)}))
	}
	if e.Ready != "" {
		all = append(all, f.ready(e.Ready == "true"))
	}
	return all
}

// gpuFamily is the family of GPUs whose driver is expected: that of the models that are
// named, where they are of one family, and otherwise the one that the node is judged by.
func (f *facts) gpuFamily(e *Expectations) *family.GPU {
	var named *family.GPU
	for i := range e.GPUs {
		if len(e.GPUs[i].Model) == 0 {
			return f.Verdict.GPU
		}
		for _, fn := range f.members(&e.GPUs[i], (*pci.Function).GPUEligible) {
			if named != nil && fn.GPU != named {
				return f.Verdict.GPU
			}
			named = fn.GPU
		}
	}
	return cmp.Or(named, f.Verdict.GPU)
}

func (f *facts) driver(gpu *family.GPU, want Versions) Check {
	driver := f.Kmod.Drivers[gpu.Name]
	return ofDriver(driver, Check{
		Name: "driver", State: want.Holds(driver.Version), Expected: "GPU driver " + want.String(), Found: driver.Version,
		Fix: []string{"install that driver" + gpu.Help.Version + " and reload it, or correct the file"},
	})
}

// ofDriver completes an expectation about a GPU driver, which is not met without one.
func ofDriver(driver kmod.Driver, c Check) Check {
	c.Facts = []kmod.Fact{kmod.FactDriver}
	if driver.Loaded == tristate.False {
		c.State, c.Found = tristate.False, "none loaded"
	}
	return c
}

func (f *facts) modules(gpu *family.GPU, want string) Check {
	driver := f.Kmod.Drivers[gpu.Name]
	c := Check{
		Name: "modules", State: driver.Open, Expected: "open GPU kernel modules", Found: "proprietary ones",
		Fix: []string{"install the other kernel module type of the driver (GPU Operator: driver.kernelModuleType)"},
	}
	if want == "closed" {
		c.State, c.Expected, c.Found = tristate.Not(driver.Open), "proprietary GPU kernel modules", "open ones"
	}
	return ofDriver(driver, c)
}

// mofed compares the version of MOFED; the zero value stands for the kernel's own drivers.
func (f *facts) mofed(want Versions) Check {
	found := f.Kmod.MOFED
	c := Check{
		Name: "mofed", Expected: "the kernel's own RDMA drivers", Found: "MOFED " + found.Version,
		Fix:   []string{"remove MOFED and reboot, or correct the file"},
		Facts: []kmod.Fact{kmod.FactStack},
	}
	if want.text != "" {
		c.Expected, c.Found = "MOFED "+want.String(), found.Version
		c.Fix = []string{"install that version (Network Operator: ofedDriver.version), rebuild what is built against it, restart openibd"}
	}
	switch {
	case found.Origin == kmod.OriginUnknown:
	case found.Origin == kmod.OriginNotLoaded:
		c.State, c.Found = tristate.False, "no driver that MOFED provides is loaded"
	case want.text == "":
		c.State = tristate.Of(found.Origin == kmod.OriginInbox)
	case found.Origin == kmod.OriginInbox:
		c.State, c.Found = tristate.False, "the kernel's own drivers"
	default:
		c.State = want.Holds(found.Version)
	}
	return c
}

func (f *facts) mechanism(want string) Check {
	peermem, dmabuf := f.Verdict.Peermem, f.Verdict.DMABuf
	expected := map[string]struct {
		words string
		state tristate.State
	}{
		"peermem": {"peermem", peermem},
		"dmabuf":  {"DMA-BUF", dmabuf},
		"either":  {"peermem or DMA-BUF", tristate.Or(peermem, dmabuf)},
		"both":    {"peermem and DMA-BUF", tristate.And(peermem, dmabuf)},
	}[want]
	c := Check{
		Name: "mechanism", State: expected.state, Expected: expected.words, Found: "no DMA-BUF",
		Fix: []string{"see the findings peermem and dmabuf"}, Facts: []kmod.Fact{verdict.FactPeermem, kmod.FactDriver, kmod.FactSymbols},
	}
	switch {
	case peermem == tristate.True:
		c.Found = "peermem only"
	case dmabuf == tristate.True:
		c.Found = "DMA-BUF only"
	case peermem == tristate.False && dmabuf == tristate.False:
		c.Found = "neither"
	case peermem == tristate.False:
		c.Found = "no peermem"
	}
	return c
}

// value compares a label's value, "" for unknown.
func value(name, what string, want []string, found, fix string, sources []string, facts ...kmod.Fact) Check {
	c := Check{Name: name, Expected: what + " " + strings.Join(want, " or "), Found: found, Fix: []string{fix}, Sources: sources, Facts: facts}
	if found != "" {
		c.State = tristate.Of(slices.Contains(want, found))
	}
	return c
}

func (f *facts) ready(want bool) Check {
	c := Check{
		Name: "ready", State: f.Verdict.Ready, Expected: "ready", Found: "not ready (" + string(f.Verdict.Reason) + ")",
		Fix: []string{"see the findings above"}, Sources: []string{pci.Devices, rdma.Class}, Facts: []kmod.Fact{kmod.FactDriver, verdict.FactPeermem, kmod.FactSymbols},
	}
	if !want {
		c.State, c.Expected, c.Found, c.Fix = tristate.Not(c.State), "not ready", "ready", []string{"correct the file if this machine is in use"}
	}
	return c
}
