package verdict

import "gdr-features/tristate"

// Need is one thing that DMA-BUF needs of the machine.
type Need string

// What DMA-BUF needs. The devices' own answer takes the place of the two symbols
// where they were asked (Node.Asked).
const (
	GPUDriverLoaded Need = "gpu-driver-loaded" // its kernel module
	GPUBound        Need = "gpu-bound"         // an eligible GPU is bound to it
	TuringGPU       Need = "turing-gpu"        // one of those is of Turing or newer
	OpenModules     Need = "open-modules"      // the kernel modules are the open ones
	NICDevice       Need = "nic-device"        // an eligible NIC has an RDMA device whose driver may register it
	OwnMemory       Need = "own-memory"        // the driver gives NICs that GPU's memory (Pair.OwnMemory)
	PCIeMapping     Need = "pcie-mapping"      // the driver maps it at their places (Pair.MapsOverPCIe)
	KernelOption    Need = "kernel-option"     // the kernel was built with an option (family.GPU.KernelOptions)
	DevicesAccept   Need = "devices-accept"    // such a device says that it registers DMA-BUF
	CoreSymbol      Need = "core-symbol"       // ib_umem_dmabuf_get
	DriverSymbol    Need = "driver-symbol"     // the function of that driver (family.NIC.DMABuf)
)

// Prerequisite is one need of DMA-BUF, and whether it is met.
type Prerequisite struct {
	Need Need
	Met  tristate.State
}
