// Package pci reads the PCI functions of a machine and the tree they stand in
// from /sys/bus/pci/devices, and decides from PCI ids alone which of them are
// GPUs and adapters that GPUDirect RDMA is about.
//
// It reads by itself instead of through a library because this is the hot path
// of every run: one link and one file tell a function's place and its ids.
package pci

import (
	"slices"
	"strings"
)

// Vendor ids.
const (
	VendorNVIDIA   = 0x10de
	VendorMellanox = 0x15b3
	VendorBroadcom = 0x1000
)

// Values of a number that is none.
const (
	None   = -1 // sysfs says that there is none
	Unread = -2 // sysfs does not say, or cannot be read
)

// Function is one PCI function (kernel: struct pci_dev), with the file below
// /sys/bus/pci/devices/<address>/ that each field comes from.
type Function struct {
	Address Address
	// Vendor, Device, SubVendor, SubDevice and Class (24 bits: class, subclass,
	// programming interface) are from modalias, or from the files of these
	// names where there is no modalias. All zero: not readable.
	Vendor, Device, SubVendor, SubDevice uint16
	Class                                uint32
	// Unidentified: ids could not be read, and what could be leaves it open
	// that this is a GPU or a NIC.
	Unidentified bool

	// RootBus is the root bus above the function, "pci0000:15"; "" when the
	// function's path could not be read. From the target of the entry's link.
	RootBus string
	// Bridges are the PCI functions above this one, the root port first, the
	// direct parent last. From the same link.
	Bridges []Address

	// NUMA is numa_node: None when the firmware told none, Unread when the file
	// cannot be read, or is missing on a machine with several nodes.
	NUMA int
	// NearNUMA is NUMA, or that of the nearest bridge above that has one.
	NearNUMA int
	// RootNUMA is the numa_node of the topmost switch above the function, or of
	// the function itself where no switch is above: the CPU that NCCL hangs it
	// on (src/graph/xml.cc, ncclTopoGetXmlFromSys). None and Unread as in NUMA.
	RootNUMA int
	// Driver is the name of the bound driver ("" for none), from the link
	// driver. DriverKnown is false when that could not be read.
	Driver      string
	DriverKnown bool
	// PhysFn is the physical function of a virtual one, from the link physfn.
	PhysFn *Address
	// IOMMUGroup is from the link iommu_group; None for no group.
	IOMMUGroup int
	// IOMMUKnown is false when the group could not be read.
	IOMMUKnown bool

	// NVLinkManagement marks the adapter on a GPU baseboard that manages the
	// NVLink switches and carries no traffic; see managementMarks.
	NVLinkManagement bool

	// DataDirect is the function that moves an adapter's data into GPU memory,
	// known where the VPD of both can be read.
	DataDirect *Address
	// VPD are the vital product data; nil when not readable. Read for adapters
	// on machines with data-direct functions, and by Everything.
	VPD *VPD

	// Link is the PCI Express link towards the root; nil where there is none.
	// Read by Advised for GPU and NIC cards and the ports above them, by
	// Everything for all.
	Link *Link

	// The rest is read by Everything only.

	// ACS are the access control services; nil when not readable.
	ACS *ACS
}

// Link is the state of a PCI Express link, from current_link_speed,
// max_link_speed (GT/s, 0 for unknown), current_link_width and max_link_width
// (lanes).
type Link struct {
	Speed, MaxSpeed float64
	Width, MaxWidth int
}

// Kind is what a function is to this program.
type Kind uint8

// Kinds of functions.
const (
	Other Kind = iota
	GPU
	NIC
	DataDirect
	Bridge
)

// Kind tells what the function is, by vendor and class:
//   - GPU: NVIDIA, display controller, VGA or 3D (0300, 0302);
//   - NIC: Mellanox, any network controller (02xx) but a data-direct function;
//   - DataDirect: the DMA function of a ConnectX-8 or newer (15b3:2100, 0801xx)
//     that stands in the GPU's PCIe tree (rdma-core kernel-boot/rdma_topo);
//   - Bridge: PCI to PCI (0604).
func (f *Function) Kind() Kind {
	switch class := f.Class >> 8; {
	case f.Vendor == VendorNVIDIA && (class == 0x0300 || class == 0x0302):
		return GPU
	case f.Vendor == VendorMellanox && class>>8 == 0x02:
		return NIC
	case f.Vendor == VendorMellanox && f.Device == 0x2100 && class == 0x0801:
		return DataDirect
	case class == 0x0604:
		return Bridge
	}
	return Other
}

// Name is the product name that belongs to the function's ids, "" when the
// embedded table has none.
func (f *Function) Name() string { return productName(f.Vendor, f.Device) }

// GPUEligible tells whether a GPU may do GPUDirect RDMA as far as its product
// goes: NVIDIA supports it on data-center and professional products, not on
// GeForce and TITAN, and not on the GB10 of DGX Spark. An id that names no
// product counts as eligible.
func (f *Function) GPUEligible() bool {
	if f.Kind() != GPU {
		return false
	}
	name := f.Name()
	consumer := strings.Contains(name, "GeForce") || strings.Contains(strings.ToUpper(name), "TITAN")
	return !consumer && name != "GB10"
}

// Turing tells whether a GPU is of the Turing generation or newer, the ones the
// open kernel modules drive: their lowest device id is 1e02, the highest of the
// generation before is 1df6 (id table of the open kernel modules).
func (f *Function) Turing() bool { return f.Kind() == GPU && f.Device >= 0x1e00 }

// Coherent tells whether a GPU hangs on its CPU by NVLink-C2C (Grace).
func (f *Function) Coherent() bool {
	return f.Kind() == GPU && slices.Contains(coherentGPUs[:], f.Device)
}

// coherentGPUs are the device ids of GPUs that share memory with a Grace CPU:
// GH200, GB200, GB300 (kernel: drivers/vfio/pci/nvgrace-gpu/main.c, 6.18).
var coherentGPUs = [...]uint16{0x2342, 0x2345, 0x2348, 0x2941, 0x31c2}

// notConnectX are ids of vendor 15b3 whose functions have a network class and
// are no ConnectX-3 or newer: InfiniHost, ConnectX and ConnectX-2, then network
// processors and the switch chips Spectrum and Quantum (pci.ids). Every other
// id, an unknown one too, counts as newer.
var notConnectX = [...]uint16{
	0x1002, 0x5274, 0x5a44, 0x5a45, 0x5a46, 0x5e8c, 0x5e8d, 0x6274, 0x6278, 0x6279, 0x6282,
	0x6340, 0x634a, 0x6354, 0x6368, 0x6372, 0x6732, 0x673c, 0x6746, 0x6750, 0x675a, 0x6764,
	0x676e, 0x6778,
	0x7101, 0x7102, 0x7103, 0x7121, 0x7122, 0x7123, 0x8200,
	0xc738, 0xc739, 0xc838, 0xc839, 0xcb84, 0xcf08, 0xcf6c, 0xcf70, 0xcf80, 0xcf82, 0xcf84,
	0xcf86, 0xd2f0, 0xd2f2, 0xd2f4, 0xd2f6, 0xd2f8, 0xd2fa, 0xd2fc,
}

// MLX4 tells a ConnectX-3, whose driver is mlx4 (kernel: drivers/net/ethernet/
// mellanox/mlx4/main.c, id table).
func (f *Function) MLX4() bool {
	return f.Kind() == NIC && f.Device >= 0x1003 && f.Device <= 0x1010
}

// NICEligible tells whether an adapter may do GPUDirect RDMA as far as its
// product goes: Ethernet (0200) or InfiniBand (0207) class, ConnectX-3 or newer
// or BlueField, and not a management function of an NVLink fabric.
func (f *Function) NICEligible() bool {
	if class := f.Class >> 8; f.Kind() != NIC || class != 0x0200 && class != 0x0207 {
		return false
	}
	return !slices.Contains(notConnectX[:], f.Device) && !f.NVLinkManagement
}
