package findings

import (
	"fmt"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
)

// sawSymbol is evidence of a symbol in the kernel's table.
func (f *judged) sawSymbol(symbol string) []string {
	return f.saw(kmod.FactSymbols, finding.Choose(f.Kmod.Symbols[symbol].Found, symbol, "no "+symbol, ""))
}

// file returns the file that a fact was read from, the first of several; "" where none was.
func (f *judged) file(fact kmod.Fact) string {
	if files := f.Kmod.Files[fact]; len(files) > 0 {
		return files[0]
	}
	return ""
}

// saw is what that file held; nothing where it was not read.
func (f *judged) saw(fact kmod.Fact, value string) []string {
	if file := f.file(fact); file != "" {
		return []string{finding.Saw(file, value)}
	}
	return nil
}

// sawPlace is evidence of where a function is in the PCI tree.
func sawPlace(f *pci.Function) string {
	if f.RootBus == "" {
		return finding.Saw(f.Address.File(""), "")
	}
	path := []string{f.RootBus}
	for _, bridge := range f.Bridges {
		path = append(path, bridge.String())
	}
	return finding.Saw(f.Address.File(""), strings.Join(append(path, f.Address.String()), "/"))
}

// functions returns the functions of a kind.
func (f *judged) functions(kind func(*pci.Function) bool) []*pci.Function {
	var all []*pci.Function
	for fn := range f.PCI.All() {
		if kind(fn) {
			all = append(all, fn)
		}
	}
	return all
}

// of returns a text for each function of a kind.
func (f *judged) of(kind func(*pci.Function) bool, text func(*pci.Function) string) []string {
	return finding.Map(f.functions(kind), text)
}

// Kinds of functions.

func isGPU(fn *pci.Function) bool       { return fn.GPU != nil }
func isNIC(fn *pci.Function) bool       { return fn.NIC != nil }
func eligibleGPU(fn *pci.Function) bool { return fn.GPUEligible() }
func eligibleNIC(fn *pci.Function) bool { return fn.NICEligible() }
func eligible(fn *pci.Function) bool    { return eligibleGPU(fn) || eligibleNIC(fn) }

func gpuDrivers(f *judged) []string { return f.of(eligibleGPU, sawDriver) }
func nicDrivers(f *judged) []string { return f.of(eligibleNIC, sawDriver) }
func gpuIDs(f *judged) []string     { return f.of(isGPU, sawID) }

// sawDriver is evidence of the driver that a function is bound to.
func sawDriver(fn *pci.Function) string {
	driver := fn.Driver
	if fn.DriverKnown && driver == "" {
		driver = "absent"
	}
	return finding.Saw(fn.Address.File(pci.DriverFile), driver)
}

// sawID is evidence of what a function is.
func sawID(fn *pci.Function) string {
	return finding.Saw(fn.Address.File(fn.IDFile), fmt.Sprintf("%04x:%04x class %06x", fn.Vendor, fn.Device, fn.Class))
}
