package verdict

import (
	"gdr-features/topology"
	"gdr-features/tristate"
)

// zen is the first family of AMD CPUs, as CPUID counts them, whose host bridges all pass on
// requests between PCI devices.
const zen = 0x17

// PeerToPeer reports whether the kernel lets some NIC of the one family with an RDMA device reach
// a GPU of the other that is driven, where the GPU's driver asks it. With drivers/pci/p2pdma.c
// that is so below a common bridge and on AMD's CPUs since Zen. Of Intel's host bridges each
// release of the kernel knows some: unknown. Where the kernel refuses, amdgpu keeps the DMA-BUF in
// host memory (drivers/gpu/drm/amd/amdgpu/amdgpu_dma_buf.c, amdgpu_dma_buf_attach).
func (p Pair) PeerToPeer() tristate.State {
	if !p.GPU.PCIP2PDMA || p.Platform.CPU.Vendor == "AuthenticAMD" && p.Platform.CPU.Family >= zen {
		return tristate.True
	}
	answer, found := tristate.Unknown, false
	p.each(func(of *topology.Pair) {
		gpu, nic := p.Matrix.GPUs[of.GPU].Function, &p.Matrix.NICs[of.NIC]
		if nic.RDMA == nil || boundTo(gpu, p.GPU.Driver) == tristate.False {
			return
		}
		found = true
		if p.sameRootPort(gpu, nic.Function) == tristate.True {
			answer = tristate.True
		}
	})
	if !found { // what lacks is named by another need
		return tristate.True
	}
	return answer
}
