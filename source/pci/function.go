// Package pci reads the PCI functions of a machine and the tree they form from
// /sys/bus/pci/devices, and notes which of them are GPUs and NICs of a table of
// families.
//
// It reads by itself instead of through a library because this is the hot path
// of every run: one link and one file tell a function's place and its ids.
package pci

import (
	"cmp"
	"slices"
	"strings"

	"gdr-features/source/family"
)

// Values in place of a number.
const (
	None   = -1 // sysfs says that there is none
	Unread = -2 // sysfs does not say, or cannot be read
)

// Function is one PCI function (kernel: struct pci_dev), with the file below
// /sys/bus/pci/devices/<address>/ that each field comes from.
type Function struct {
	Address Address
	// The ids and Class (24 bits: class, subclass, programming interface) are from
	// IDFile, ModaliasFile or else VendorFile and its like. All zero: not readable.
	Vendor, Device, SubVendor, SubDevice uint16
	Class                                uint32
	IDFile                               string
	// The family that the function is one of: of GPUs, of NICs that count or do not
	// (family.Table.Others, family.Unlisted), or of NICs whose data-direct function it is. At most
	// one is set.
	GPU                      *family.GPU
	NIC, Other, DataDirectOf *family.NIC
	// Eligible says whether it counts as a GPU or a NIC, and why not.
	Eligible Eligibility

	// RootBus is the root bus above the function, "pci0000:15"; "" when the
	// function's path could not be read. From the target of the entry's link.
	RootBus string
	// Top is the first directory of that path below /sys/devices: RootBus on most machines,
	// the outer root bus behind VMD, and "LNXSYSTM:00" or the like where a hypervisor's own
	// bus is above the root bus (VMBus). "" where that is not known.
	Top string
	// Bridges are the PCI functions above this one in that path, the root port first.
	Bridges []Address

	// NUMA is numa_node: None when the firmware gave none, Unread when the file
	// cannot be read, or is missing on a machine with several nodes.
	NUMA int
	// NearNUMA is NUMA, or that of the nearest bridge above that has one.
	NearNUMA int
	// RootNUMA is the numa_node of the topmost switch above the function, or of
	// the function itself where no switch is above: the CPU that NCCL attaches it to
	// (src/graph/xml.cc, ncclTopoGetXmlFromSys). None and Unread as in NUMA.
	RootNUMA int
	// Driver is the name of the bound driver ("" for none). DriverKnown is false when that
	// could not be read.
	Driver      string
	DriverKnown bool
	// PhysFn is the physical function of a virtual one, from the link physfn.
	PhysFn *Address
	// IOMMUGroup is from the link iommu_group, or None, or Unread.
	IOMMUGroup int

	// Excluded: the user takes this NIC out of what is judged (Inventory.Exclude).
	Excluded bool
	// NVLinkManagement marks the NIC on a GPU baseboard that manages the NVLink
	// switches and carries no traffic; see managementMarks.
	NVLinkManagement bool

	// DataDirect is the function that moves a NIC's data into GPU memory, known
	// where the VPD of both can be read.
	DataDirect *Address

	// SwitchLinks are the upstream ports of other partitions of the same switch that this one,
	// itself an upstream port, has a link to inside the switch (Inventory.switchLinks).
	SwitchLinks []Address

	// The rest is nil where it is not readable or was not asked for.

	VPD    *VPD    // also read for NICs on machines with data-direct functions
	Memory *Memory // of a GPU that does not share it with its CPU
	Link   *Link   // towards the root; of a card's port, without details, what it can do
	ACS    *ACS
}

// Link is the state of a PCI Express link, from current_link_speed,
// max_link_speed (GT/s, 0 for unknown), current_link_width and max_link_width
// (lanes).
type Link struct {
	Speed, MaxSpeed float64
	Width, MaxWidth int
}

// IDs returns the ids of the function.
func (f *Function) IDs() family.IDs {
	return family.IDs{Vendor: f.Vendor, Device: f.Device, SubVendor: f.SubVendor, SubDevice: f.SubDevice, Class: f.Class}
}

// Classify sets GPU, NIC, DataDirectOf, Other and Eligible from the function's ids and
// NVLinkManagement; what left open whether it is Eligible still does. Scan has done so.
func (f *Function) Classify(t family.Table) {
	ids := f.IDs()
	f.GPU, f.NIC, f.DataDirectOf, f.Other = t.GPU(ids), t.NIC(ids), t.DataDirect(ids), t.Other(ids)
	switch {
	case f.GPU == nil && f.NIC == nil:
		f.rule(Neither)
	case f.GPU != nil && f.GPU.Eligible(ids, f.Name()), f.NIC != nil && f.NIC.Eligible(ids) && !f.NVLinkManagement:
		f.rule(Counts)
	case f.NVLinkManagement:
		f.rule(NVLinkManager)
	default:
		f.rule(OtherProduct)
	}
}

func (f *Function) classified() bool {
	return f.GPU != nil || f.NIC != nil || f.DataDirectOf != nil || f.Other != nil
}

// Bridge reports whether the function is a bridge from PCI to PCI (class 0604).
func (f *Function) Bridge() bool { return f.Class>>8 == 0x0604 }

// KnownNIC returns the family of NICs that the function is one of, whether it counts or
// not; nil for none.
func (f *Function) KnownNIC() *family.NIC { return cmp.Or(f.NIC, f.Other) }

// InfiniBand reports whether this is a NIC with the class of InfiniBand (0207).
func (f *Function) InfiniBand() bool { return f.KnownNIC() != nil && f.Class>>8 == 0x0207 }

// Name is the product name that belongs to the function's ids, "" when the
// embedded table has none.
func (f *Function) Name() string { return productName(f.Vendor, f.Device) }

// Family is the name of the function's family of GPUs or NICs, also of one that does not
// count; "" for none.
func (f *Function) Family() string {
	if f.GPU != nil {
		return f.GPU.Name
	}
	if n := f.KnownNIC(); n != nil {
		return n.Name
	}
	return ""
}

// Counts reports whether this is a GPU or a NIC that counts.
func (f *Function) Counts() bool { return f.Eligible == Counts }

// GPUEligible reports whether it is a GPU that counts.
func (f *Function) GPUEligible() bool { return f.GPU != nil && f.Counts() }

// NICEligible reports whether it is a NIC that counts.
func (f *Function) NICEligible() bool { return f.NIC != nil && f.Counts() }

// PassedThrough reports whether the function is bound to a driver that hands it to a
// virtual machine: one of VFIO's (vfio-pci, mlx5_vfio_pci, nvgrace-gpu-vfio-pci) or, for
// a GPU, one of its family's.
func (f *Function) PassedThrough() bool {
	return strings.Contains(f.Driver, "vfio") || f.GPU != nil && slices.Contains(f.GPU.Passthrough, f.Driver)
}

// Coherent reports whether this is a GPU that shares memory with its CPU over
// NVLink-C2C (Grace, Vera).
func (f *Function) Coherent() bool { return f.GPU != nil && f.GPU.Coherent.Has(f.Device) }

// OverC2C reports whether this is a NIC that is attached over NVLink-C2C.
func (f *Function) OverC2C() bool { return f.KnownNIC() != nil && f.KnownNIC().OverC2C.Has(f.Device) }

// OpenModules reports whether this is a GPU that the open kernel modules drive.
func (f *Function) OpenModules() bool {
	return f.GPU != nil && f.GPU.OpenFrom != 0 && f.Device >= f.GPU.OpenFrom
}
