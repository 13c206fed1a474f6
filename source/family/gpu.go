package family

import (
	"regexp"
	"slices"
	"strings"
)

// GPU is a family of GPUs.
type GPU struct {
	// Name is short and in lower case, "nvidia".
	Name string
	// Vendor, and Classes (base class and subclass), are those of the family's
	// functions.
	Vendor  uint16
	Classes []uint16
	// Supported are the device ids, and SupportedClasses base class and subclass, of those
	// that can do GPUDirect RDMA; others are displays and no GPUs: a server's BMC, or what
	// shows the desktop. Without either, all can.
	Supported        DeviceIDs
	SupportedClasses []uint16
	// UnsupportedNames are parts of the product names, in any case, and Unsupported
	// the device ids, of those that cannot.
	UnsupportedNames []string
	Unsupported      DeviceIDs
	// Coherent are the device ids of those that share memory with their CPU over
	// NVLink-C2C.
	Coherent DeviceRanges
	// SwitchClass is the class of the vendor's functions that switch the links between
	// GPUs, 0x0680 of NVSwitches; 0 for none.
	SwitchClass uint16
	// Driver is the PCI driver and its kernel module, and Passthrough are those beside
	// VFIO's that hand a GPU to a virtual machine.
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
	Client       Client
	// OpenFrom is the lowest device id that the open kernel modules drive. Only these
	// export DMA-BUF. 0 for a driver that comes in one variant; its version file then
	// holds nothing but the version.
	OpenFrom uint16
	// ManagersFrom is the lowest device id of GPUs that may be on a baseboard with NICs that
	// manage its NVLink switches (NVLinkManagement); 0 for none.
	ManagersFrom uint16
	// KernelOptions are the options that the GPU driver needs in the kernel to export
	// DMA-BUF to a NIC, "PCI_P2PDMA".
	KernelOptions []KernelOption
	// PCIP2PDMA: the GPU driver gives a NIC a DMA-BUF in GPU memory only where the kernel lets
	// the two reach each other (pci_p2pdma_distance).
	PCIP2PDMA bool
	// RCCL: these GPUs use RCCL, AMD's fork of NCCL. HyperVPairs are the device ids of
	// those that RCCL pairs with NICs by address under Hyper-V.
	RCCL        bool
	HyperVPairs DeviceIDs
	// CUDA: programs use the GPUs by CUDA, which numbers them by speed unless
	// CUDA_DEVICE_ORDER says otherwise. NVSHMEM is for such GPUs alone.
	CUDA bool
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
	Help         GPUHelp
}

// KernelOption is an option of the kernel's configuration.
type KernelOption struct {
	Name string // without CONFIG_
	// Always is another option or "". From Linux Gone on (major, minor) there is no option Name:
	// a kernel with Always always has the feature that Name stood for.
	Always string
	Gone   [2]int
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
func (g *GPU) Of(id IDs) bool {
	all := g.Supported == nil && g.SupportedClasses == nil
	return g.shows(id) && (all || g.Supported.Has(id.Device) || slices.Contains(g.SupportedClasses, id.subclass()))
}

// Display reports whether a function is of the vendor, and like a GPU, but only a display.
func (g *GPU) Display(id IDs) bool { return g.shows(id) && !g.Of(id) }

func (g *GPU) shows(id IDs) bool {
	return id.Vendor == g.Vendor && slices.Contains(g.Classes, id.subclass())
}

// Eligible reports whether a function is one of the family's GPUs that can do GPUDirect
// RDMA, judged by its ids and the name of the product. A product without a known name
// is judged by its ids.
func (g *GPU) Eligible(id IDs, name string) bool {
	unsupported := func(part string) bool { return strings.Contains(strings.ToLower(name), strings.ToLower(part)) }
	return g.Of(id) && !g.Unsupported.Has(id.Device) && !slices.ContainsFunc(g.UnsupportedNames, unsupported)
}

// SwitchOf reports whether a function switches the links between GPUs of the family.
func (g *GPU) SwitchOf(id IDs) bool {
	return g.SwitchClass != 0 && id.Vendor == g.Vendor && id.subclass() == g.SwitchClass
}
