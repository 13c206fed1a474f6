package findings

import (
	"fmt"
	"slices"
	"strconv"

	"gdr-features/source/pci"
	"gdr-features/topology"
)

// dataDirect finds GPUs that share memory with their processor and stand below
// one switch with an adapter's data-direct function, but in another IOMMU group.
// The GPU driver then refuses to map their memory for it (open kernel modules:
// nv-pci.c, nv_pci_is_valid_topology_for_direct_pci). ACS makes the groups. In a
// guest they are the hypervisor's.
func (f *Facts) dataDirect() []Finding {
	if f.guest() {
		return nil
	}
	var apart, evidence []string
	for _, gpu := range f.Matrix.GPUs {
		if !gpu.Eligible || !gpu.Coherent() || gpu.IOMMUGroup == pci.None {
			continue
		}
		beside := f.beside(gpu)
		if beside == nil || beside.IOMMUGroup == pci.None || beside.IOMMUGroup == gpu.IOMMUGroup {
			continue
		}
		apart = append(apart, fmt.Sprintf("%v and %v", gpu.Address, beside.Address))
		for _, fn := range [...]*pci.Function{gpu.Function, beside} {
			evidence = append(evidence, saw(device(fn.Address)+"/iommu_group", strconv.Itoa(fn.IOMMUGroup)))
		}
	}
	if len(apart) == 0 {
		return nil
	}
	return []Finding{{
		Check: "data-direct", Status: Warn, Code: DataDirectApart,
		Detail:   "a GPU and the data-direct function beside it are in two IOMMU groups, so that DMA-BUF over it is refused: " + some(apart),
		Fix:      "rdma_topo check names the ACS bits that are wrong (rdma-core 61 or newer), rdma_topo write-grub-acs writes the right ones for this machine; they need a reboot",
		Sources:  []string{pciDevices + "/*/iommu_group", pciDevices},
		Evidence: evidence,
	}}
}

// beside gives the data-direct function that shares a switch with a GPU.
func (f *Facts) beside(gpu topology.GPU) *pci.Function {
	i := slices.IndexFunc(f.PCI.Functions, func(fn pci.Function) bool {
		return fn.Kind() == pci.DataDirect && fn.CommonBridges(gpu.Function) > 1 // more than the root port
	})
	if i < 0 {
		return nil
	}
	return &f.PCI.Functions[i]
}
