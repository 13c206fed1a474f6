package kmod

import (
	"slices"

	"gdr-features/source/family"
	"gdr-features/source/pci"
)

// complete returns the request with its families named.
func (want Request) complete() Request {
	want.Families = want.Families.OrDefault()
	if want.Everything || len(want.Present.GPUs) == 0 && len(want.Present.NICs) == 0 {
		want.Present = want.Families
	}
	return want
}

// For returns the request for the machine with these functions: the drivers, symbols and
// clients of the families that are there, and the IOMMU groups of its GPUs and NICs.
func For(functions *pci.Inventory, table family.Table) Request {
	want := Request{
		Families: table, Present: functions.Families(table),
		DriverBound: map[string]bool{}, Models: map[string][]pci.Address{}, PeerFiles: map[string][]pci.Address{}, PeerFilesOpen: functions.Unidentified(),
	}
	for i := range functions.Functions {
		f := &functions.Functions[i]
		if f.GPU == nil && f.NIC == nil {
			continue
		}
		want.IOMMU = true
		if f.IOMMUGroup >= 0 {
			want.Groups = append(want.Groups, f.IOMMUGroup)
		}
		switch {
		case f.GPU != nil && f.Driver == f.GPU.Driver:
			want.DriverBound[f.GPU.Name] = true
			if f.Eligible && f.GPU.Information != "" {
				want.Models[f.GPU.Name] = append(want.Models[f.GPU.Name], f.Address)
			}
		case f.NIC != nil && f.Eligible && len(f.NIC.PeerMemory.Files) > 0 && (f.NIC.Drives(f.Driver) || !f.DriverKnown):
			want.PeerFiles[f.NIC.Name] = append(want.PeerFiles[f.NIC.Name], f.Address)
			want.PeerFilesOpen = want.PeerFilesOpen || !f.DriverKnown
		}
	}
	for _, g := range want.Present.GPUs {
		if slices.ContainsFunc(functions.Functions, func(f pci.Function) bool { return f.GPU == g && f.Eligible }) {
			want.KernelOptions = append(want.KernelOptions, g.KernelOptions...)
			want.BIOS = want.BIOS || len(g.HyperVPairs) > 0
		}
	}
	return want
}
