package nccl

import (
	"slices"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/source/platform"
)

// RCCL, AMD's fork of NCCL, rates as NCCL does, with the exceptions in this file
// (ROCm/rccl src/graph/paths.cc, 6.0 to 7).

// pathOverride is rcclPathOverride and what ncclTopoComputePaths does with it: it rates as PXB the
// pairs that RCCL makes by address under Hyper-V, whose guests see no bridges. RCCL tries three
// distances between domain and bus numbers, and takes the first at which every GPU has a NIC. It
// does so in jobs of more than one machine.
func (r *Ratings) pathOverride(m *Machine, nics []NIC) {
	paired := func(gpu *pci.Function) bool { return gpu.GPU.HyperVPairs.Has(gpu.Device) }
	intel, hyperV := m.CPU.Vendor == "GenuineIntel", strings.HasPrefix(m.BIOS, "Hyper-V UEFI Release")
	if !slices.ContainsFunc(m.GPUs, paired) || !intel && m.CPU.Vendor != "" || !hyperV && (m.BIOS != "" || !m.Virtual) {
		return
	}
	path := PXB
	if !intel || !hyperV { // one of the two cannot be read
		path = Unknown
	}
	for _, distance := range [...]int64{1 << 20, 1 << 12, 0xff << 20} {
		partner := func(gpu *pci.Function, nic NIC) bool {
			d := busIDToInt64(gpu.Address.String()) - busIDToInt64(nic.Address.String())
			return d == distance || d == -distance
		}
		if slices.ContainsFunc(m.GPUs, func(gpu *pci.Function) bool {
			return !slices.ContainsFunc(nics, func(nic NIC) bool { return partner(gpu, nic) })
		}) {
			continue
		}
		for j, gpu := range m.GPUs {
			for _, nic := range nics {
				switch i, ok := r.nics[nic.At]; {
				case !ok || !partner(gpu, nic):
				case nic.At.Net != "": // RCCL's address is that of another function then
					r.paths[i][j] = Unknown
				default:
					r.paths[i][j] = path
				}
			}
		}
		return
	}
}

// RaisedByRCCL reports whether some version of RCCL uses GPUDirect RDMA for a GPU and a NIC at
// PHB (ncclTopoCheckGdr). That is on EPYC of the second to the fourth generation, if the NIC
// is right below a root port, the GPU is too or is behind the switch of its own card, and
// both bus numbers have the same upper four bits. Versions differ in which GPUs these are.
func RaisedByRCCL(cpu platform.CPU, gpu, nic *pci.Function) bool {
	epyc := cpu.Vendor == "AuthenticAMD" && (cpu.Family == 143 && cpu.Model >= 0x31 || cpu.Family == 175)
	return gpu.GPU.RCCL && (epyc || cpu.Arch == "") &&
		len(nic.Switches()) == 0 && len(gpu.Switches()) <= 1 && gpu.Address.Bus>>4 == nic.Address.Bus>>4
}
