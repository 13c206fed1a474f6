package kmod

import (
	"gdr-features/source/family"
	"gdr-features/source/pci"
)

// For returns the request for the machine with these functions: the drivers, symbols and
// clients of the families that are there, and the IOMMU groups of its GPUs and NICs.
func For(functions *pci.Inventory, table family.Table) Request {
	want := Request{Families: table, Present: functions.Families(table)}
	for i := range functions.Functions {
		f := &functions.Functions[i]
		if f.GPU == nil && f.NIC == nil {
			continue
		}
		want.IOMMU = true
		if f.IOMMUGroup != pci.None {
			want.Groups = append(want.Groups, f.IOMMUGroup)
		}
		want.DriverBound = want.DriverBound || f.GPU != nil && f.Driver == f.GPU.Driver
	}
	return want
}
