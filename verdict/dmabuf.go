package verdict

import (
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// Need is one thing that DMA-BUF needs of the machine.
type Need string

// What DMA-BUF needs. The devices' own answer takes the place of the two symbols
// where they were asked (Facts.Asked).
const (
	GPUDriverLoaded Need = "gpu-driver-loaded" // its kernel module
	GPUBound        Need = "gpu-bound"         // an eligible GPU is bound to it
	TuringGPU       Need = "turing-gpu"        // one of those is of Turing or newer
	OpenModules     Need = "open-modules"      // the kernel modules are the open ones
	MLX5Device      Need = "mlx5-device"       // an eligible NIC has an RDMA device whose driver may register it
	DevicesAccept   Need = "devices-accept"    // such a device says that it registers DMA-BUF
	CoreSymbol      Need = "core-symbol"       // ib_umem_dmabuf_get
	DriverSymbol    Need = "driver-symbol"     // the function of that driver, mlx5_ib_reg_user_mr_dmabuf
)

// Prerequisite is one need of DMA-BUF, and whether it is met.
type Prerequisite struct {
	Need Need
	Met  tristate.State
}

// Turing reports whether some eligible GPU that the driver drives is of the Turing
// generation or newer.
func (f *Facts) Turing() tristate.State {
	return f.anyGPU(func(gpu *pci.Function) tristate.State {
		return tristate.And(boundTo(gpu, gpu.GPU.Driver), tristate.Of(gpu.OpenModules()))
	})
}
