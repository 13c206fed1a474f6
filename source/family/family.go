// Package family is the table of what is known of vendors: one row for each
// family of NICs and of GPUs. Rows are data. A vendor id, a driver's name or the
// name of a driver's symbol that decides something is in a row and nowhere else, so
// that a family is added in one place.
package family

import (
	"slices"
	"strings"
)

// Table holds the families that a program knows. Names are unique, and no PCI
// function is of two families.
type Table struct {
	NICs []*NIC
	GPUs []*GPU
}

// Known returns the families of this package: GPUs of NVIDIA; NICs of mlx5 and mlx4.
func Known() Table {
	return Table{NICs: []*NIC{&mlx5, &mlx4}, GPUs: []*GPU{&nvidia}}
}

// IDs are what PCI configuration space says of a function.
type IDs struct {
	Vendor, Device, SubVendor, SubDevice uint16
	// Class has 24 bits: base class, subclass, programming interface.
	Class uint32
}

// subclass returns base class and subclass, 0x0302.
func (id IDs) subclass() uint16 { return uint16(id.Class >> 8) } //nolint:gosec // 16 bits are left

// Base classes of PCI functions (PCI Code and ID Assignment Specification, 1).
const (
	baseNetwork = 0x02
	baseDisplay = 0x03
	baseSystem  = 0x08
)

// DeviceIDs are PCI device ids of one vendor.
type DeviceIDs []uint16

// Has reports whether a device id is among them.
func (ids DeviceIDs) Has(device uint16) bool { return slices.Contains(ids, device) }

// DeviceRanges are ranges of PCI device ids of one vendor.
type DeviceRanges []struct{ First, Last uint16 }

// Has reports whether a device id is in one of them.
func (ranges DeviceRanges) Has(device uint16) bool {
	for _, r := range ranges {
		if r.First <= device && device <= r.Last {
			return true
		}
	}
	return false
}

// NIC is a family of NICs: those that one RDMA driver drives.
type NIC struct {
	// Name is short and of lower case, "mlx5".
	Name string
	// Vendor and Devices are the PCI ids of the family's functions, which have a
	// network class (02xx).
	Vendor  uint16
	Devices DeviceRanges
	// Classes are base class and subclass of those that can do GPUDirect RDMA, and
	// Unsupported the device ids of those that cannot.
	Classes     []uint16
	Unsupported DeviceIDs
	// Virtual are the device ids that virtual functions alone have.
	Virtual DeviceIDs
	// DataDirect are the device ids of functions of class 0801 that move a NIC's
	// data into GPU memory from a place beside the GPU, and WithDataDirect those of
	// the NICs that may have one (rdma-core, kernel-boot/rdma_topo).
	DataDirect, WithDataDirect DeviceIDs
	// OwnSwitch: some cards have a PCIe switch of this vendor between the slot and
	// the NIC.
	OwnSwitch bool
	// NVLinkManagement identifies the functions that manage the NVLink switches of a
	// GPU baseboard; nil where there are none.
	NVLinkManagement *NVLinkManagement

	// Drivers are the PCI drivers, and Module is the kernel module of the RDMA
	// driver.
	Drivers []string
	Module  string
	// MOFED: MLNX_OFED and DOCA-OFED bring these drivers too, with their version
	// in /sys/module/<driver>/version.
	MOFED bool
	// DMABuf is the function of the RDMA driver that registers DMA-BUF, as in
	// /proc/kallsyms; "" for a driver that has none.
	DMABuf string
	// PeerMemory is what proves that the RDMA stack takes GPU memory from a peer
	// memory client for this family; nil for a family that has no such clients.
	PeerMemory *PeerMemory
	// LinkLayers are those of a port that carries traffic, as in ports/<n>/link_layer.
	// None at all means InfiniBand and Ethernet, those of NCCL's IB transport
	// (NVIDIA/nccl src/transport/net_ib/init.cc).
	LinkLayers []string
	// Uverbs is how its devices are asked through /dev/infiniband/uverbsN.
	Uverbs Uverbs
	// Help names what remedies speak of.
	Help Help
}

// Of reports whether a function is one of the family's NICs, eligible or not.
func (n *NIC) Of(id IDs) bool {
	return id.Vendor == n.Vendor && id.Class>>16 == baseNetwork && n.Devices.Has(id.Device)
}

// Eligible reports whether one of the family's NICs can do GPUDirect RDMA as far as
// its ids go.
func (n *NIC) Eligible(id IDs) bool {
	return n.Of(id) && slices.Contains(n.Classes, id.subclass()) && !n.Unsupported.Has(id.Device)
}

// DataDirectOf reports whether a function is a data-direct function of the family.
func (n *NIC) DataDirectOf(id IDs) bool {
	return id.Vendor == n.Vendor && id.subclass() == 0x0801 && n.DataDirect.Has(id.Device)
}

// Drives reports whether a PCI driver is one of the family's.
func (n *NIC) Drives(driver string) bool { return slices.Contains(n.Drivers, driver) }

// NVLinkManagement identifies the NICs on GPU baseboards that manage NVLink switches
// and carry no traffic. They have the class of InfiniBand.
type NVLinkManagement struct {
	// Narrow are device ids whose functions with at most two PCIe lanes are such NICs:
	// no card with so few lanes is sold.
	Narrow DeviceIDs
	// Boards are their PSIDs, as in board_id of the RDMA device.
	Boards []string
}

// PeerMemory is what proves that a peer memory client for GPU memory is registered
// with the RDMA stack: one of these is enough.
type PeerMemory struct {
	// Modules are clients that cannot stay loaded without being registered: one
	// whose /sys/module/<name>/initstate is "live". The first is the one to load.
	Modules []string
	// Clients are names of directories below memory_peers, where PeerDirect stacks
	// list them.
	Clients []string
}

// Uverbs is how the family's devices are asked through the uverbs interface.
type Uverbs struct {
	// Driver is the driver's number, enum rdma_driver_id in the kernel's
	// include/uapi/rdma/ib_user_ioctl_verbs.h; 0 where devices are not asked.
	Driver uint32
	// Context is the driver's part of the request for a context, in words of 32 bits,
	// the lower half of a longer field first; nil for none.
	Context []uint32
}

// Help is what remedies name.
type Help struct {
	// Product is what to install, "ConnectX-4 or newer".
	Product string
	// DMABufStack is the software from which on the RDMA driver registers DMA-BUF.
	DMABufStack string
	// Operator is what loads the drivers on Kubernetes, and EnableRDMA the commands
	// that switch RDMA on where a function has it off; "" for nothing known.
	Operator, EnableRDMA string
}

// GPU is a family of GPUs.
type GPU struct {
	// Name is short and of lower case, "nvidia".
	Name string
	// Vendor, and Classes (base class and subclass), are those of the family's
	// functions.
	Vendor  uint16
	Classes []uint16
	// UnsupportedNames are parts of the product names, in any case, and Unsupported
	// the device ids, of those that cannot do GPUDirect RDMA.
	UnsupportedNames []string
	Unsupported      DeviceIDs
	// Coherent are the device ids of those that share memory with their CPU over
	// NVLink-C2C.
	Coherent DeviceIDs
	// SwitchClass is the class of the vendor's functions that switch the links between
	// GPUs, 0x0680 of NVSwitches; 0 for none.
	SwitchClass uint16
	// Driver is the PCI driver and its kernel module, and Passthrough the drivers
	// that hand a GPU to a virtual machine.
	Driver      string
	Passthrough []string
	// VersionFile has the loaded driver's version and kind, as a path below the root.
	VersionFile string
	// OpenFrom is the lowest device id that the open kernel modules drive.
	OpenFrom uint16
	// CommonBridge are the host bridges and root ports, by their vendor, of CPUs on
	// which the driver maps GPU memory for another PCI device only where both are
	// below a common bridge.
	CommonBridge map[uint16]DeviceIDs
}

// Of reports whether a function is one of the family's GPUs, eligible or not.
func (g *GPU) Of(id IDs) bool {
	return id.Vendor == g.Vendor && slices.Contains(g.Classes, id.subclass())
}

// Eligible reports whether one of the family's GPUs can do GPUDirect RDMA as far as
// its ids and the product's name go. An id without a name counts as eligible.
func (g *GPU) Eligible(id IDs, name string) bool {
	name = strings.ToLower(name)
	unsupported := func(part string) bool { return strings.Contains(name, strings.ToLower(part)) }
	return g.Of(id) && !g.Unsupported.Has(id.Device) && !slices.ContainsFunc(g.UnsupportedNames, unsupported)
}

// SwitchOf reports whether a function switches the links between GPUs of the family.
func (g *GPU) SwitchOf(id IDs) bool {
	return g.SwitchClass != 0 && id.Vendor == g.Vendor && id.subclass() == g.SwitchClass
}

// NIC returns the family of a NIC, nil where it is none.
func (t Table) NIC(id IDs) *NIC {
	for _, n := range t.NICs {
		if n.Of(id) {
			return n
		}
	}
	return nil
}

// GPU returns the family of a GPU, nil where it is none.
func (t Table) GPU(id IDs) *GPU {
	for _, g := range t.GPUs {
		if g.Of(id) {
			return g
		}
	}
	return nil
}

// DataDirect returns the family of NICs that a data-direct function belongs to, nil
// where it is none.
func (t Table) DataDirect(id IDs) *NIC {
	for _, n := range t.NICs {
		if n.DataDirectOf(id) {
			return n
		}
	}
	return nil
}

// MayHold reports whether a function of which only some ids are known, the others
// being 0, may be one of the table's.
func (t Table) MayHold(id IDs) bool {
	may := func(vendor uint16, bases ...uint32) bool {
		return (id.Vendor == 0 || id.Vendor == vendor) && (id.Class == 0 || slices.Contains(bases, id.Class>>16))
	}
	return slices.ContainsFunc(t.NICs, func(n *NIC) bool {
		return may(n.Vendor, baseNetwork) || len(n.DataDirect) > 0 && may(n.Vendor, baseSystem)
	}) || slices.ContainsFunc(t.GPUs, func(g *GPU) bool {
		return slices.ContainsFunc(g.Classes, func(class uint16) bool { return may(g.Vendor, uint32(class>>8)) })
	})
}
