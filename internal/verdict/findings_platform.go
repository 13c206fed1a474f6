package verdict

import (
	"fmt"
	"slices"

	"gdr-features/internal/topology"
	"gdr-features/internal/tri"
)

func (f *Facts) level() Finding {
	out := Finding{Check: "level", Sources: []string{pciDevices, pciDevices + "/*/numa_node"}}
	l := f.Map.Level
	switch l {
	case topology.Unknown:
		out.Status, out.Detail = Undecidable, "the place of a GPU or an adapter is not known"
	case topology.PIX:
		out.Status, out.Detail = OK, "every GPU has an adapter at PIX"
	case topology.PXB:
		out.Status, out.Detail = OK, "every GPU has an adapter at PXB or nearer"
	default:
		out.Status = Warn
		out.Detail = fmt.Sprintf("a GPU's nearest adapter is at %v: %s", l, f.farGPU())
		out.Fix = "put an adapter below the GPU's PCIe switch; expect less bandwidth through the processor"
	}
	if f.Map.Source == topology.Virtual && l > topology.PXB {
		out.Detail += "; this is a hypervisor's PCI tree, which may hide the real one"
		out.Fix = "give NCCL a topology file (NCCL_TOPO_FILE), and this program with --topology-file"
	}
	return out
}

// farGPU names the first GPU whose nearest adapter is at the machine's level.
func (f *Facts) farGPU() string {
	for _, link := range f.Map.Nearest {
		if link.Level == f.Map.Level && link.NIC != nil {
			return fmt.Sprintf("%v and %v", link.GPU.Address, link.NIC.Address)
		}
	}
	return ""
}

func (f *Facts) ncclDefault() Finding {
	out := Finding{Check: "nccl-default", Status: fromState(f.Map.NCCLDefault, Warn), Sources: []string{pciDevices}}
	switch f.Map.NCCLDefault {
	case tri.True:
		out.Detail = "NCCL uses GPUDirect RDMA for every GPU with its default settings"
	case tri.False:
		out.Detail = "NCCL's default limit (PXB, P2C on Grace) leaves out at least one GPU"
		out.Fix = "set NCCL_NET_GDR_LEVEL=PHB or SYS and measure: it may be slower than without"
	case tri.Unknown:
		out.Detail = "the places of GPUs and adapters in NCCL's eyes are not known"
	}
	return out
}

func iommuFinding(v Verdict) Finding {
	out := Finding{Check: "iommu", Status: OK, Detail: v.IOMMU, Sources: []string{pciDevices + "/*/iommu_group", "/sys/kernel/iommu_groups/*/type"}}
	switch v.IOMMU {
	case "":
		out.Status, out.Detail = Undecidable, "the IOMMU groups' types cannot be read"
	case "translated":
		out.Status = Warn
		out.Detail = "translated: traffic between GPU and NIC goes through the root complex"
		out.Fix = "boot with iommu=pt where devices need no isolation, as NVIDIA recommends for GPUDirect RDMA"
	}
	return out
}

func (f *Facts) acsFinding(v Verdict) Finding {
	out := Finding{Check: "acs", Status: OK, Detail: v.ACS, Sources: []string{pciDevices + "/*/config"}}
	switch v.ACS {
	case "":
		out.Status, out.Detail = Undecidable, "the ACS registers of the bridges between GPUs and NICs cannot be read"
		out.Fix = "read as root (CAP_SYS_ADMIN)"
		if !slices.ContainsFunc(f.Map.Nearest, func(l topology.Link) bool { return len(l.Between()) > 0 }) {
			out.Detail, out.Fix = "no bridge between the GPUs and their nearest NICs shows on this machine", ""
		}
	case "redirect":
		out.Status = Warn
		out.Detail = "a bridge between a GPU and its nearest NIC redirects peer to peer traffic to the root complex"
		out.Fix = "on bare metal see the NCCL troubleshooting guide on ACS; leave it on where virtual machines or the platform (GB200, GB300: rdma_topo check) need it"
	}
	return out
}
