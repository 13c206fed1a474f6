package findings

import (
	"strings"

	"gdr-features/source/pci"
	"gdr-features/tristate"
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

// sawPlace is evidence of where a function stands.
func sawPlace(f *pci.Function) string {
	path := []string{f.RootBus}
	for _, bridge := range f.Bridges {
		path = append(path, bridge.String())
	}
	if f.RootBus == "" {
		return saw(device(f.Address), "")
	}
	return saw(device(f.Address), strings.Join(append(path, f.Address.String()), "/"))
}

func sawDriver(f *pci.Function) string {
	driver := f.Driver
	if f.DriverKnown && driver == "" {
		driver = "absent"
	}
	return saw(device(f.Address)+"/driver", driver)
}

// device is the directory of a PCI function.
func device(a pci.Address) string { return pciDevices + "/" + a.String() }

// drivers is evidence of what the functions of a kind are bound to.
func (f *Facts) drivers(eligible func(*pci.Function) bool) []string {
	var all []string
	for i := range f.PCI.Functions {
		if fn := &f.PCI.Functions[i]; eligible(fn) {
			all = append(all, sawDriver(fn))
		}
	}
	return all
}
