package pci

import (
	"slices"

	"gdr-features/source/family"
)

// Switches are the PCIe switches above a function as NCCL counts them, the
// nearest first, each named by its upstream port: from the function up, every
// second bridge, until what is above is no function (NVIDIA/nccl
// src/graph/xml.cc, ncclTopoGetXmlFromSys). A root port never counts. NCCL takes
// a name with a domain of more than 16 bits for the root complex.
func (f *Function) Switches() []Address {
	var switches []Address
	for i := len(f.Bridges) - 1; i >= 1; i -= 2 {
		if f.Bridges[i].Domain > 0xffff || f.Bridges[i-1].Domain > 0xffff {
			break
		}
		switches = append(switches, f.Bridges[i-1])
	}
	return switches
}

// CommonBridges counts the bridges above both functions, from the root down; 0 also
// when their paths are unknown or lead to different root buses.
func (f *Function) CommonBridges(g *Function) int {
	if f.RootBus == "" || f.RootBus != g.RootBus {
		return 0
	}
	n := 0
	for n < len(f.Bridges) && n < len(g.Bridges) && f.Bridges[n] == g.Bridges[n] {
		n++
	}
	return n
}

// CommonBridge returns the deepest bridge above both functions, nil where there is
// none and where their paths are unknown.
func (f *Function) CommonBridge(g *Function) *Address {
	n := f.CommonBridges(g)
	if n == 0 {
		return nil
	}
	return &f.Bridges[n-1]
}

// Physical returns the physical function of a virtual one; nil for any other, and where it is
// not listed, as in a virtual machine.
func (inv *Inventory) Physical(f *Function) *Function {
	if f.PhysFn == nil {
		return nil
	}
	return inv.Find(*f.PhysFn)
}

// Place returns the function whose place in the tree counts for f: the physical
// function of a virtual one where it is listed with its place, else f itself.
func (inv *Inventory) Place(f *Function) *Function {
	if pf := inv.Physical(f); pf != nil && pf.RootBus != "" {
		return pf
	}
	return f
}

// WithVirtual returns functions and the eligible virtual ones that stand at their places.
func (inv *Inventory) WithVirtual(functions []*Function) []*Function {
	all := slices.Clone(functions)
	for f := range inv.All() {
		if place := inv.Place(f); f.Counts() && place != f && slices.Contains(functions, place) {
			all = append(all, f)
		}
	}
	return all
}

// Families returns the families of a table that eligible functions are of; all of its
// GPUs or NICs where there are none, or where a function that could not be identified
// may be one.
func (inv *Inventory) Families(t family.Table) family.Table {
	if inv.Unidentified() {
		return t
	}
	gpus, nics := map[*family.GPU]bool{}, map[*family.NIC]bool{}
	for f := range inv.All() {
		if f.Counts() {
			gpus[f.GPU], nics[f.NIC] = true, true
		}
	}
	return family.Table{NICs: present(t.NICs, nics), Others: t.Others, GPUs: present(t.GPUs, gpus)}
}

// present returns the families that are on the machine; all of them where none is.
func present[F any](families []*F, here map[*F]bool) []*F {
	found := slices.DeleteFunc(slices.Clone(families), func(f *F) bool { return !here[f] })
	if len(found) == 0 {
		return families
	}
	return found
}

// Unidentified reports whether some function could be a GPU or a NIC for all that
// could be read of it.
func (inv *Inventory) Unidentified() bool {
	return slices.ContainsFunc(inv.Functions, func(f Function) bool { return f.Unidentified() })
}
