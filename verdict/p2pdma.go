package verdict

import (
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// zen is the first family of AMD CPUs, by CPUID, whose host bridges all pass requests between
// PCI devices on.
const zen = 0x17

// peerToPeer matters where the GPU's driver asks the kernel. With drivers/pci/p2pdma.c a NIC reaches
// a GPU below a common bridge and on AMD's CPUs since Zen. Of Intel's host bridges each release of
// the kernel knows some: unknown. Where it refuses, amdgpu keeps the DMA-BUF in host memory
// (drivers/gpu/drm/amd/amdgpu/amdgpu_dma_buf.c, amdgpu_dma_buf_attach).
func (j *judge) peerToPeer() tristate.State {
	if !j.GPU.PCIP2PDMA || j.Platform.CPU.Vendor == "AuthenticAMD" && j.Platform.CPU.Family >= zen {
		return tristate.True
	}
	return j.ofSomeInUse(func(gpu, nic *pci.Function) tristate.State {
		if j.commonBridge(gpu, nic) == tristate.True {
			return tristate.True
		}
		return tristate.Unknown
	})
}
