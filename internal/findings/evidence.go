package findings

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// Files that findings rest on.
const (
	pciDevices = "/sys/bus/pci/devices"
	ibClass    = "/sys/class/infiniband"
	nvVersion  = "/proc/driver/nvidia/version"
	kallsyms   = "/proc/kallsyms"
	peermemDir = "/sys/module/nvidia_peermem"
	verbsNodes = "/dev/infiniband/uverbs*"
	netnsMode  = "/sys/module/ib_core/parameters/netns_mode"
	groupTypes = "/sys/kernel/iommu_groups/*/type"
)

// saw is one piece of evidence, "file=what it held".
func saw(file, value string) string {
	if value == "" {
		value = "?"
	}
	return file + "=" + value
}

// sawFile is evidence of a file that is there or is not.
func sawFile(file string, there tristate.State) string {
	switch there {
	case tristate.True:
		return saw(file, "present")
	case tristate.False:
		return saw(file, "absent")
	case tristate.Unknown:
	}
	return saw(file, "")
}

// sawSymbol is evidence of a symbol in the kernel's table.
func sawSymbol(symbol string, there tristate.State) string {
	switch there {
	case tristate.True:
		return saw(kallsyms, symbol)
	case tristate.False:
		return saw(kallsyms, "no "+symbol)
	case tristate.Unknown:
	}
	return saw(kallsyms, "")
}

// device is the directory of a PCI function.
func device(a pci.Address) string { return pciDevices + "/" + a.String() }

// sawPlace is evidence of where a function is in the PCI tree.
func sawPlace(f *pci.Function) string {
	if f.RootBus == "" {
		return saw(device(f.Address), "")
	}
	path := []string{f.RootBus}
	for _, bridge := range f.Bridges {
		path = append(path, bridge.String())
	}
	return saw(device(f.Address), strings.Join(append(path, f.Address.String()), "/"))
}

// of gives a piece of evidence for each function of a kind.
func (f *Facts) of(kind func(*pci.Function) bool, saw func(*pci.Function) string) []string {
	var all []string
	for i := range f.PCI.Functions {
		if fn := &f.PCI.Functions[i]; kind(fn) {
			all = append(all, saw(fn))
		}
	}
	return all
}

// Kinds of functions.

func isGPU(fn *pci.Function) bool       { return fn.GPU != nil }
func isNIC(fn *pci.Function) bool       { return fn.NIC != nil }
func eligibleGPU(fn *pci.Function) bool { return fn.GPUEligible() }
func eligibleNIC(fn *pci.Function) bool { return fn.NICEligible() }
func eligible(fn *pci.Function) bool    { return eligibleGPU(fn) || eligibleNIC(fn) }

// evidence is what files held, "file=value" each.
type evidence func(*Facts) []string

// join puts pieces of evidence together, each piece once.
func join(pieces ...evidence) evidence {
	return func(f *Facts) []string {
		var all []string
		for _, piece := range pieces {
			all = append(all, piece(f)...)
		}
		return unique(all)
	}
}

// unique keeps each text once.
func unique(texts []string) []string {
	var all []string
	for _, text := range texts {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// always is evidence that does not depend on the machine.
func always(texts ...string) evidence {
	return func(*Facts) []string { return slices.Clone(texts) }
}

func gpuDrivers(f *Facts) []string { return f.of(eligibleGPU, sawDriver) }
func nicDrivers(f *Facts) []string { return f.of(eligibleNIC, sawDriver) }
func gpuIDs(f *Facts) []string     { return f.of(isGPU, sawID) }
func nicIDs(f *Facts) []string     { return f.of(isNIC, sawID) }

// sawDriver is evidence of the driver that a function is bound to.
func sawDriver(fn *pci.Function) string {
	driver := fn.Driver
	if fn.DriverKnown && driver == "" {
		driver = "absent"
	}
	return saw(device(fn.Address)+"/driver", driver)
}

// sawID is evidence of what a function is.
func sawID(fn *pci.Function) string {
	return saw(device(fn.Address)+"/modalias", fmt.Sprintf("%04x:%04x class %06x", fn.Vendor, fn.Device, fn.Class))
}
