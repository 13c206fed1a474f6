// Package family is the table of what is known about vendors: one row for each
// family of NICs and of GPUs. Rows are data. Vendor ids, and the names of drivers and
// of their symbols, are in a row and nowhere else, so that a family is added in one
// place.
package family

import (
	"fmt"
	"slices"
	"strings"
)

// Table holds the families that a program knows. Names are unique, and no PCI
// function is of two families.
type Table struct {
	// NICs count: a node is judged by them. Others are listed, and count only if they
	// are selected (Select).
	NICs, Others []*NIC
	GPUs         []*GPU
}

// Known returns the families of this package; the default NICs count.
func Known() Table {
	return Table{
		NICs:   []*NIC{&mlx5, &mlx4, &efa, &bnxtRE, &ionic},
		Others: []*NIC{&irdma, &mana, &erdma, &hns, &qedr, &hfi1, &cxgb4, &usnic, &ocrdma, &pvrdma, &qib, &cxi, &cxi2},
		GPUs:   []*GPU{&nvidia, &amd},
	}
}

// Every returns the families of this package; all NICs count that can.
func Every() Table {
	t := Known()
	var listed []*NIC
	for _, n := range t.Others {
		if n.Verbs() {
			t.NICs = append(t.NICs, n)
		} else {
			listed = append(listed, n)
		}
	}
	t.Others = listed
	return t
}

// OrDefault returns the table itself, or Known for the zero value.
func (t Table) OrDefault() Table {
	if len(t.NICs) == 0 && len(t.GPUs) == 0 {
		return Known()
	}
	return t
}

// Select returns the families of this package; only the NICs named count. An unknown
// name is an error, which lists the known ones.
func Select(names []string) (Table, error) {
	every := Every()
	all := Names(every.NICs)
	for _, name := range names {
		if !slices.Contains(all, name) {
			return Table{}, fmt.Errorf("no family of NICs is named %q; there are %s", name, strings.Join(all, ", "))
		}
	}
	t := Table{GPUs: every.GPUs, Others: every.Others}
	for _, n := range every.NICs {
		if slices.Contains(names, n.Name) {
			t.NICs = append(t.NICs, n)
		} else {
			t.Others = append(t.Others, n)
		}
	}
	if len(t.NICs) == 0 {
		return Table{}, fmt.Errorf("no family of NICs is named; there are %s", strings.Join(all, ", "))
	}
	return t, nil
}

// Names returns the names of some families of NICs, in their order.
func Names(nics []*NIC) []string {
	names := make([]string, len(nics))
	for i, n := range nics {
		names[i] = n.Name
	}
	return names
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
	return slices.ContainsFunc(ranges, func(r struct{ First, Last uint16 }) bool { return r.First <= device && device <= r.Last })
}

// NIC is a family of NICs: those that one RDMA driver drives.
type NIC struct {
	// Name is short and in lower case, "mlx5".
	Name string
	// Vendor and Devices are the PCI ids of the family's functions, which have a
	// network class (02xx).
	Vendor  uint16
	Devices DeviceRanges
	// Classes (base class and subclass) and Supported (device ids, nil for all) are those
	// of NICs that can do GPUDirect RDMA, but for Unsupported.
	Classes     []uint16
	Supported   DeviceRanges
	Unsupported DeviceIDs
	// Virtual are the device ids that only virtual functions have.
	Virtual DeviceIDs
	// ForHost are the device ids of NICs that are for the traffic of the host and its
	// storage, and DPU those of data processing units, which are that on a machine with
	// more NICs of other kinds (NVIDIA/k8s-launch-kit, presets).
	ForHost, DPU DeviceIDs
	// DataDirect are the device ids of functions of class 0801 that move a NIC's
	// data into GPU memory from a place beside the GPU, and WithDataDirect those of
	// the NICs that may have one (rdma-core, kernel-boot/rdma_topo).
	DataDirect, WithDataDirect DeviceIDs
	// OverC2C are the device ids of NICs that are attached over NVLink-C2C: their place in the
	// PCI tree is not the way that their data takes.
	OverC2C DeviceIDs
	// OwnSwitch: some cards have a PCIe switch of this vendor between the slot and
	// the NIC.
	OwnSwitch bool
	// NVLinkManagement identifies the functions that manage the NVLink switches of a GPU
	// baseboard; nil for none.
	NVLinkManagement *NVLinkManagement

	// Drivers are the PCI drivers, and Module is the RDMA driver's kernel module; "" for NICs that
	// can only be listed (Verbs).
	Drivers []string
	Module  string
	// MOFED: MLNX_OFED and DOCA-OFED bring these drivers too, with their version
	// in /sys/module/<driver>/version.
	MOFED bool
	// DMABuf is the function of the RDMA driver that registers DMA-BUF, as in
	// /proc/kallsyms; "" for a driver that has none.
	DMABuf string
	// NoGPUMemory are machines on which these NICs reach no GPU's memory, whatever their
	// places and drivers; nil for none. No other vendor's machines have such NICs.
	NoGPUMemory *Machines
	// DMABufOff are the device ids on which some releases of the NCCL plugin for these
	// NICs do not use DMA-BUF.
	DMABufOff DeviceIDs
	// PeerMemory is what proves that the driver takes GPU memory from a peer memory client; the
	// zero value for a family without.
	PeerMemory PeerMemory
	// IBGDA: NVSHMEM has GPUs write to the doorbells of these NICs (NVIDIA/nvshmem 3.5.1,
	// src/modules/transport/ibgda/ibgda.cpp, which leaves out all others), and so has NCCL's
	// GIN of type GDAKI (NVIDIA/nccl src/transport/net_ib/gin.cc, IB_PROVIDER_MLX5).
	IBGDA bool
	// PCIeMapping: what uses these NICs asks NVIDIA's driver for a DMA-BUF that is mapped
	// over PCIe, also where GPU and CPU share memory over C2C.
	PCIeMapping bool
	// GPUOperator: NVIDIA's GPU Operator loads a peer memory client for these NICs. On a
	// node with other NICs only, its container for that waits forever.
	GPUOperator bool
	// LinkLayers are those of a port that carries traffic, as in ports/<n>/link_layer.
	// None at all means InfiniBand and Ethernet, those of NCCL's IB transport
	// (NVIDIA/nccl src/transport/net_ib/init.cc).
	LinkLayers []string
	// NCCLPlugin is the network plugin through which NCCL uses these NICs; nil for its own IB
	// transport.
	NCCLPlugin *NCCLPlugin
	// NetDevMTU: the active MTU of a RoCE port is what iboe_get_mtu makes of the mtu of its
	// network device (kernel: include/rdma/ib_addr.h, and query_port of the driver).
	NetDevMTU bool
	// NoIBGDA: firmware with which GPUs cannot start transfers of the NIC themselves; nil where none
	// is published.
	NoIBGDA  *Firmware
	Uverbs   Uverbs
	Provider Provider
	Help     Help
}

// Of reports whether a function is one of the family's NICs, eligible or not.
func (n *NIC) Of(id IDs) bool {
	return id.Vendor == n.Vendor && id.Class>>16 == baseNetwork && n.Devices.Has(id.Device)
}

// Eligible reports whether a function is one of the family's NICs that can do GPUDirect
// RDMA, judged by its ids.
func (n *NIC) Eligible(id IDs) bool {
	return n.Of(id) && slices.Contains(n.Classes, id.subclass()) &&
		(n.Supported == nil || n.Supported.Has(id.Device)) && !n.Unsupported.Has(id.Device)
}

// Verbs reports whether an RDMA driver is known for the NICs of the family. A family without one
// cannot be judged, and its NICs are listed without an RDMA device too.
func (n *NIC) Verbs() bool { return n.Module != "" }

// DataDirectOf reports whether a function is one of the family's in DataDirect.
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

// NCCLPlugin is a network plugin of NCCL. It tells NCCL the place of each NIC, while NCCL's
// IB transport takes all functions of a bus for one NIC.
type NCCLPlugin struct {
	// Name is the plugin's, "aws-ofi-nccl".
	Name string
	// TopologyFiles are NCCL topology files that it is installed with and gives to NCCL:
	// the name of each by the product name of the machines that it is for, as in
	// /sys/class/dmi/id/product_name.
	TopologyFiles map[string]string
	// Directories are where these files may be, as paths below the root. The first that
	// has the machine's file counts.
	Directories []string
	// GPUStarts are the machines on which GPUs start the plugin's transfers themselves, in NCCL's
	// GIN. Nil: none.
	GPUStarts *Machines
}

// Uverbs is how the family's devices are asked through the uverbs interface.
type Uverbs struct {
	// Driver is the driver's number, enum rdma_driver_id in the kernel's
	// include/uapi/rdma/ib_user_ioctl_verbs.h; 0 where devices are not asked.
	Driver uint32
	// ABI is the version of the driver's interface that rdma-core supports, as in
	// /sys/class/infiniband_verbs/<node>/abi_version; 0 where it is not compared.
	ABI int
	// VendorABIs are the versions of the vendor's own driver, which the vendor's own library
	// supports and rdma-core does not; nil where they are not known.
	VendorABIs []int
	// Context is the driver's part of the request for a context, in words of 32 bits,
	// the lower half of a longer field first; nil for none. A structure of one or two
	// words is followed by zeros up to four, as the kernel reads up to eight bytes from
	// another place (uverbs_attr_ptr_is_inline) and takes zeros behind a structure.
	Context []uint32
}

// Provider is the part of libibverbs that opens the devices of a family: the library
// lib<Name>-rdmav<N>.so, of rdma-core or of the vendor.
type Provider struct {
	// Name is that of its file, and of the line in /etc/libibverbs.d; "" where it is the
	// family's.
	Name string
	// Since is the first release of rdma-core that has it; "" for all that are in use.
	Since string
	// DataDirect are the functions, "name@version", by which programs use data-direct
	// functions; nil for a family that has none.
	DataDirect []string
}

// NIC returns the family of a NIC that counts. It and the others return nil for any other
// function.
func (t Table) NIC(id IDs) *NIC { return first(t.NICs, (*NIC).Of, id) }

// Other returns the family of a NIC that is only listed.
func (t Table) Other(id IDs) *NIC { return first(t.Others, (*NIC).Of, id) }

// GPU returns the family of a GPU.
func (t Table) GPU(id IDs) *GPU { return first(t.GPUs, (*GPU).Of, id) }

// Display returns the family of GPUs whose vendor's display a function is.
func (t Table) Display(id IDs) *GPU { return first(t.GPUs, (*GPU).Display, id) }

// DataDirect returns the family of NICs that a data-direct function belongs to.
func (t Table) DataDirect(id IDs) *NIC { return first(t.NICs, (*NIC).DataDirectOf, id) }

// first returns the first family that a function is of, nil for none.
func first[F any](families []*F, of func(*F, IDs) bool, id IDs) *F {
	for _, f := range families {
		if of(f, id) {
			return f
		}
	}
	return nil
}

// MayHold reports whether a function may be a GPU or a NIC that counts. Ids that are 0
// are unknown.
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
