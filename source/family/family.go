// Package family is the table of what is known about vendors: one row for each
// family of NICs and of GPUs. Rows are data. Vendor ids, and the names of drivers and
// of their symbols, are in a row and nowhere else, so that a family is added in one
// place.
package family

import (
	"fmt"
	"regexp"
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

// counted are the NICs that count by default, and others those that do not.
var (
	counted = [...]*NIC{&mlx5, &mlx4, &efa, &bnxtRE, &ionic}
	others  = [...]*NIC{&irdma, &mana, &erdma, &hns, &qedr, &hfi1, &cxgb4, &usnic, &ocrdma, &pvrdma, &qib}
	gpus    = [...]*GPU{&nvidia, &amd}
)

// Known returns the families of this package; the default NICs count.
func Known() Table {
	return Table{NICs: slices.Clone(counted[:]), Others: slices.Clone(others[:]), GPUs: slices.Clone(gpus[:])}
}

// Every returns the families of this package; all NICs count.
func Every() Table {
	return Table{NICs: slices.Concat(counted[:], others[:]), GPUs: slices.Clone(gpus[:])}
}

// OrKnown returns the table itself, or Known for the zero value.
func (t Table) OrKnown() Table {
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
	t := Table{GPUs: every.GPUs}
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
	// of NICs that can do GPUDirect RDMA. Unsupported are the device ids of those that
	// cannot.
	Classes     []uint16
	Supported   DeviceRanges
	Unsupported DeviceIDs
	// Virtual are the device ids that only virtual functions have.
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
	// NoGPUMemory are machines on which these NICs reach no GPU's memory, whatever their
	// places and drivers; nil for none.
	NoGPUMemory *Machines
	// DMABufOff are the device ids on which some releases of the NCCL plugin for these
	// NICs do not use DMA-BUF.
	DMABufOff DeviceIDs
	// PeerMemory is what proves that the driver takes GPU memory from a peer memory
	// client; the zero value for a family that has no such clients.
	PeerMemory PeerMemory
	// IBGDA: NVSHMEM has GPUs write to the doorbells of these NICs (NVIDIA/nvshmem 3.5.1,
	// src/modules/transport/ibgda/ibgda.cpp, which leaves out all others).
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
	// NCCLPlugin is the network plugin through which NCCL uses these NICs; nil for NCCL's
	// own IB transport.
	NCCLPlugin *NCCLPlugin
	// Uverbs is how its devices are asked through /dev/infiniband/uverbsN.
	Uverbs Uverbs
	// Help is what remedies name.
	Help Help
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

// GPU is a family of GPUs.
type GPU struct {
	// Name is short and in lower case, "nvidia".
	Name string
	// Vendor, and Classes (base class and subclass), are those of the family's
	// functions.
	Vendor  uint16
	Classes []uint16
	// Supported are the device ids, and SupportedClasses base class and subclass, of
	// those that can do GPUDirect RDMA. Without either, all others can.
	Supported        DeviceIDs
	SupportedClasses []uint16
	// DisplayElse: all other functions are displays and no GPUs: a server's BMC, or what
	// shows the desktop.
	DisplayElse bool
	// UnsupportedNames are parts of the product names, in any case, and Unsupported
	// the device ids, of those that cannot.
	UnsupportedNames []string
	Unsupported      DeviceIDs
	// Coherent are the device ids of those that share memory with their CPU over
	// NVLink-C2C.
	Coherent DeviceIDs
	// SwitchClass is the class of the vendor's functions that switch the links between
	// GPUs, 0x0680 of NVSwitches; 0 for none.
	SwitchClass uint16
	// Driver is the PCI driver and its kernel module, and Passthrough the drivers
	// beside VFIO's that hand a GPU to a virtual machine.
	Driver      string
	Passthrough []string
	// GPUOperator: NVIDIA's GPU Operator loads a peer memory client for these GPUs.
	GPUOperator bool
	// VersionFile has the loaded driver's version, as a path below the root.
	VersionFile string
	// Information is the directory with a file <address>/information for each GPU, which has
	// the number of its device node, and Nodes is what stands before that number, as paths
	// below the root. Both are "" where the node is the render node that sysfs names.
	Information, Nodes string
	// VirtualNames is a regular expression for the names that the driver gives to virtual
	// GPUs, parts of a GPU or whole ones that a hypervisor shares out; "" where there are
	// none.
	VirtualNames string
	// SlurmFlags are the flags of these GPUs in Slurm's gres.conf, "" for its default, which
	// is to set the variables of all vendors.
	SlurmFlags string
	// Client is how RDMA drivers are given GPU memory without DMA-BUF.
	Client Client
	// OpenFrom is the lowest device id that the open kernel modules drive. Only these
	// export DMA-BUF. 0 for a driver that comes in one variant; its version file then
	// holds nothing but the version.
	OpenFrom uint16
	// KernelOptions are the options that the GPU driver needs in the kernel to export
	// DMA-BUF to a NIC, "PCI_P2PDMA".
	KernelOptions []KernelOption
	// RCCL: these GPUs use RCCL, AMD's fork of NCCL. HyperVPairs are the device ids of
	// those that RCCL pairs with NICs by address under Hyper-V.
	RCCL        bool
	HyperVPairs DeviceIDs
	// CUDA: programs use the GPUs by CUDA, which numbers them by speed unless
	// CUDA_DEVICE_ORDER says otherwise. NVSHMEM is for such GPUs alone.
	CUDA bool
	// Mooncake is what stands before a GPU's number in the names of Mooncake, "cuda:" (the
	// GPU_PREFIX of mooncake-transfer-engine/include/gpu_vendor); "" where it has none.
	Mooncake string
	// MemoryFile is the file of the function that has the size of the GPU's memory in
	// bytes; "" for a driver that has none. MemoryBAR is the BAR that the memory is reached
	// through: 0 for BAR 0, 1 for the next one that has an address, and so on. Integrated
	// are the device ids of those that share memory with their CPU, for which neither means
	// anything; so do those of Coherent.
	MemoryFile string
	MemoryBAR  int
	Integrated DeviceIDs
	// CommonBridge are the host bridges and root ports, by their vendor, of CPUs on
	// which the driver maps GPU memory for another PCI device only where both are
	// below a common bridge.
	CommonBridge map[uint16]DeviceIDs
	// Help is what remedies name.
	Help GPUHelp
}

// KernelOption is an option of the kernel's configuration.
type KernelOption struct {
	// Name is without CONFIG_.
	Name string
	// Always, if not "", is another option. A kernel whose configuration has it and does
	// not mention Name always has the feature that Name stood for.
	Always string
}

// Virtual reports whether the driver's name for a GPU is that of a virtual one.
func (g *GPU) Virtual(name string) bool {
	if g.VirtualNames == "" || name == "" {
		return false
	}
	is, err := regexp.MatchString(g.VirtualNames, name)
	return is && err == nil
}

// Of reports whether a function is one of the family's GPUs, eligible or not.
func (g *GPU) Of(id IDs) bool { return g.shows(id) && (!g.DisplayElse || g.supports(id)) }

// Display reports whether a function is of the vendor, and like a GPU, but only a display.
func (g *GPU) Display(id IDs) bool { return g.shows(id) && !g.Of(id) }

func (g *GPU) shows(id IDs) bool {
	return id.Vendor == g.Vendor && slices.Contains(g.Classes, id.subclass())
}

func (g *GPU) supports(id IDs) bool {
	return g.Supported == nil && g.SupportedClasses == nil || g.Supported.Has(id.Device) || slices.Contains(g.SupportedClasses, id.subclass())
}

// Eligible reports whether a function is one of the family's GPUs that can do GPUDirect
// RDMA, judged by its ids and the name of the product. A product without a known name
// is judged by its ids.
func (g *GPU) Eligible(id IDs, name string) bool {
	name = strings.ToLower(name)
	unsupported := func(part string) bool { return strings.Contains(name, strings.ToLower(part)) }
	return g.Of(id) && g.supports(id) && !g.Unsupported.Has(id.Device) && !slices.ContainsFunc(g.UnsupportedNames, unsupported)
}

// SwitchOf reports whether a function switches the links between GPUs of the family.
func (g *GPU) SwitchOf(id IDs) bool {
	return g.SwitchClass != 0 && id.Vendor == g.Vendor && id.subclass() == g.SwitchClass
}

// NIC returns the family of a NIC that counts, nil for any other function.
func (t Table) NIC(id IDs) *NIC { return first(t.NICs, (*NIC).Of, id) }

// Other returns the family of a NIC that is only listed, nil for any other function.
func (t Table) Other(id IDs) *NIC { return first(t.Others, (*NIC).Of, id) }

// GPU returns the family of a GPU, nil for any other function.
func (t Table) GPU(id IDs) *GPU { return first(t.GPUs, (*GPU).Of, id) }

// Display returns the family of GPUs whose vendor's display a function is, nil for any other
// function.
func (t Table) Display(id IDs) *GPU { return first(t.GPUs, (*GPU).Display, id) }

// DataDirect returns the family of NICs that a data-direct function belongs to, nil
// for any other function.
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
