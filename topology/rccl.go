package topology

import (
	"slices"
	"strings"

	"gdr-features/source/pci"
)

// RCCL, AMD's fork of NCCL, rates as NCCL does, with the exceptions in this file
// (ROCm/rccl src/graph/paths.cc, 6.0 to 7).

// pairByAddress rates as PXB the pairs that RCCL makes by address under Hyper-V, whose guests
// see no bridges. RCCL tries three distances between domain and bus numbers, and takes the
// first at which every GPU has a NIC (ncclTopoComputePaths, rcclPathOverride). It does so in
// jobs of more than one machine.
func (b *builder) pairByAddress(r *ncclRatings, gpus []*pci.Function, nics []placedNIC) {
	paired := func(gpu *pci.Function) bool { return gpu.GPU.HyperVPairs.Has(gpu.Device) }
	intel, hyperV := b.Processor.Vendor == "GenuineIntel", strings.HasPrefix(b.BIOS, "Hyper-V UEFI Release")
	if r.levels == nil || !slices.ContainsFunc(gpus, paired) || !intel && b.Processor.Vendor != "" || !hyperV && (b.BIOS != "" || !b.virtual) {
		return
	}
	level := PXB
	if !intel || !hyperV { // one of the two cannot be read
		level = Unknown
	}
	for _, distance := range [...]int64{1 << 20, 1 << 12, 0xff << 20} {
		partner := func(gpu *pci.Function, nic placedNIC) bool {
			d := busNumber(gpu.Address.String()) - busNumber(nic.Address.String())
			return d == distance || d == -distance
		}
		if slices.ContainsFunc(gpus, func(gpu *pci.Function) bool {
			return !slices.ContainsFunc(nics, func(nic placedNIC) bool { return partner(gpu, nic) })
		}) {
			continue
		}
		for _, gpu := range gpus {
			for _, nic := range nics {
				switch i, ok := r.nics[nic.at]; {
				case !ok || !partner(gpu, nic):
				case nic.at.net != "": // RCCL's address is that of another function then
					r.levels[i][r.gpus[gpu.Address]] = Unknown
				default:
					r.levels[i][r.gpus[gpu.Address]] = level
				}
			}
		}
		return
	}
}

// mayRaise reports whether some version of RCCL uses GPUDirect RDMA for a GPU and a NIC at
// PHB (ncclTopoCheckGdr). That is on EPYC of the second to the fourth generation, if the NIC
// is right below a root port, the GPU is too or is behind the switch of its own card, and
// both bus numbers have the same upper four bits. Versions differ in which GPUs these are.
func (b *builder) mayRaise(gpu, nic *pci.Function) bool {
	cpu := b.Processor
	epyc := cpu.Vendor == "AuthenticAMD" && (cpu.Family == 143 && cpu.Model >= 0x31 || cpu.Family == 175)
	return gpu.GPU.RCCL && (epyc || cpu.Arch == "") &&
		len(nic.Switches()) == 0 && len(gpu.Switches()) <= 1 && gpu.Address.Bus>>4 == nic.Address.Bus>>4
}
