package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// saw is one piece of evidence, "file=what it held".
func saw(file, value string) string { return file + "=" + cmp.Or(value, "?") }

// sawFile is evidence of a file that exists or is missing.
func sawFile(file string, there tristate.State) string {
	return saw(file, choose(there, "present", "absent", ""))
}

func sawMissing(file string) string { return sawFile(file, tristate.False) }

// sawSymbol is evidence of a symbol in the kernel's table.
func (f *judged) sawSymbol(symbol string) []string {
	return f.saw(kmod.FactSymbols, choose(f.Kmod.Symbols[symbol].Found, symbol, "no "+symbol, ""))
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
		return []string{saw(file, value)}
	}
	return nil
}

// sawPlace is evidence of where a function is in the PCI tree.
func sawPlace(f *pci.Function) string {
	if f.RootBus == "" {
		return saw(f.Address.File(""), "")
	}
	path := []string{f.RootBus}
	for _, bridge := range f.Bridges {
		path = append(path, bridge.String())
	}
	return saw(f.Address.File(""), strings.Join(append(path, f.Address.String()), "/"))
}

// functions returns the functions of a kind.
func (f *judged) functions(kind func(*pci.Function) bool) []*pci.Function {
	var all []*pci.Function
	for i := range f.PCI.Functions {
		if fn := &f.PCI.Functions[i]; kind(fn) {
			all = append(all, fn)
		}
	}
	return all
}

// of returns a text for each function of a kind.
func (f *judged) of(kind func(*pci.Function) bool, text func(*pci.Function) string) []string {
	return texts(f.functions(kind), text)
}

// Kinds of functions.

func isGPU(fn *pci.Function) bool       { return fn.GPU != nil }
func isNIC(fn *pci.Function) bool       { return fn.NIC != nil }
func eligibleGPU(fn *pci.Function) bool { return fn.GPUEligible() }
func eligibleNIC(fn *pci.Function) bool { return fn.NICEligible() }
func eligible(fn *pci.Function) bool    { return eligibleGPU(fn) || eligibleNIC(fn) }

// subjects are what a row is about, with the evidence for it.
type subjects struct{ names, evidence []string }

func (s *subjects) add(name string, evidence ...string) {
	s.names, s.evidence = append(s.names, name), append(s.evidence, evidence...)
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

func gpuDrivers(f *judged) []string { return f.of(eligibleGPU, sawDriver) }
func nicDrivers(f *judged) []string { return f.of(eligibleNIC, sawDriver) }
func gpuIDs(f *judged) []string     { return f.of(isGPU, sawID) }

// sawDriver is evidence of the driver that a function is bound to.
func sawDriver(fn *pci.Function) string {
	driver := fn.Driver
	if fn.DriverKnown && driver == "" {
		driver = "absent"
	}
	return saw(fn.Address.File(pci.DriverFile), driver)
}

// sawID is evidence of what a function is.
func sawID(fn *pci.Function) string {
	return saw(fn.Address.File(fn.IDFile), fmt.Sprintf("%04x:%04x class %06x", fn.Vendor, fn.Device, fn.Class))
}
