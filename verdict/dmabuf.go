package verdict

import (
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// Need is one thing that DMA-BUF needs of the machine.
type Need string

// What DMA-BUF needs. The devices' own answer takes the place of the two symbols
// where they were asked (Facts.Asked).
const (
	GPUDriverLoaded Need = "gpu-driver-loaded" // the kernel module nvidia
	GPUBound        Need = "gpu-bound"         // to it, an eligible GPU
	TuringGPU       Need = "turing-gpu"        // one of those is of Turing or newer
	OpenModules     Need = "open-modules"      // the kernel modules are the open ones
	MLX5Device      Need = "mlx5-device"       // an eligible NIC has an RDMA device of mlx5
	DevicesAccept   Need = "devices-accept"    // such a device says that it registers DMA-BUF
	CoreSymbol      Need = "core-symbol"       // ib_umem_dmabuf_get
	DriverSymbol    Need = "driver-symbol"     // mlx5_ib_reg_user_mr_dmabuf
)

// Prerequisite is one need of DMA-BUF, and whether it is met.
type Prerequisite struct {
	Need Need
	Met  tristate.State
}

// DMABufNeeds lists what DMA-BUF needs, in the order in which the first that is
// missing is to be named.
func (f *Facts) DMABufNeeds() []Prerequisite {
	needs := []Prerequisite{
		{GPUDriverLoaded, f.Kmod.Driver.Loaded},
		{GPUBound, f.GPUDriven()},
		{TuringGPU, f.Turing()},
		{OpenModules, f.Kmod.Driver.Open},
		{MLX5Device, f.mlx5Device()},
	}
	if f.NICFamily() == "mlx4" { // hardware before drivers
		needs[3], needs[4] = needs[4], needs[3]
	}
	if accept := f.DevicesSay(); accept != tristate.Unknown {
		return append(needs, Prerequisite{DevicesAccept, accept})
	}
	return append(needs, Prerequisite{CoreSymbol, f.Kmod.Symbols[kmod.UmemDMABuf].Found}, Prerequisite{DriverSymbol, f.Kmod.Symbols["mlx5_ib_reg_user_mr_dmabuf"].Found})
}

// dmabuf: the GPU driver can export memory as DMA-BUF and the RDMA stack can
// register it, as far as both show.
func (f *Facts) dmabuf() tristate.State {
	all := tristate.True
	for _, p := range f.DMABufNeeds() {
		all = tristate.And(all, p.Met)
	}
	return all
}

// Turing tells whether some eligible GPU that the driver drives is of the Turing
// generation or newer.
func (f *Facts) Turing() tristate.State {
	return f.anyGPU(func(gpu *pci.Function) tristate.State {
		return tristate.And(boundTo(gpu, "nvidia"), tristate.Of(gpu.OpenModules()))
	})
}

// mlx5Device: some eligible NIC has an RDMA device of mlx5.
func (f *Facts) mlx5Device() tristate.State {
	return f.anyDevice(func(n *topology.NIC) tristate.State { return boundTo(n.Function, "mlx5_core") })
}

// NICFamily names the drivers of this machine's eligible NICs: "mlx4" where all are
// ConnectX-3, which have no DMA-BUF, else "mlx5".
func (f *Facts) NICFamily() string {
	name := "mlx5"
	for i := range f.PCI.Functions {
		fn := &f.PCI.Functions[i]
		switch {
		case !fn.NICEligible():
		case fn.NIC.Name == "mlx4":
			name = "mlx4"
		default:
			return "mlx5"
		}
	}
	return name
}
