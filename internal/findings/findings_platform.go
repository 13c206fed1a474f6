package findings

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

func (f *Facts) level() Finding {
	out := Finding{Check: "level", Sources: []string{pciDevices, pciDevices + "/*/numa_node"}}
	l := f.Matrix.Level
	switch {
	case l == topology.Unknown:
		out.Status, out.Detail = Undecidable, "the place of a GPU or an adapter is not known"
		if out.Evidence = f.withoutNUMA(); len(out.Evidence) > 0 {
			out.Fix = "the firmware does not tell the NUMA node (_PXM): update it, or give a topology file"
		}
	case l == topology.PIX:
		out.Status, out.Detail = OK, "every GPU has an adapter at PIX"
	case l == topology.PXB:
		out.Status, out.Detail = OK, "every GPU has an adapter at PXB or nearer"
	case f.Matrix.NCCLDefault == tristate.True: // by C2C or a data-direct function
		out.Status = OK
		out.Detail = fmt.Sprintf("the PCI tree has a GPU's nearest adapter at %v; NCCL reaches it through the processor's C2C link or a data-direct function", l)
	default:
		out.Status, out.Code = Warn, GPUWithoutNearNIC
		far, evidence := f.farGPUs()
		out.Detail = fmt.Sprintf("a GPU's nearest adapter is at %v: %s", l, some(far))
		out.Fix = "put an adapter below the GPU's PCIe switch, or expect less bandwidth through the processor"
		out.Evidence = evidence
	}
	if f.Matrix.Origin == topology.Virtual && out.Status != OK && (l > topology.PXB || l == topology.Unknown) {
		out.Code = VirtualTopology
		out.Detail += "; this is a hypervisor's PCI tree, which may hide the real one"
		out.Fix = "give NCCL a topology file (NCCL_TOPO_FILE), and this program with --topology-file; or have the hypervisor show switches (QEMU: pxb-pcie and x3130 ports) like those of the hardware"
	}
	return out
}

// guest: this is a virtual machine, as the processor, the firmware or the PCI tree
// tells.
func (f *Facts) guest() bool {
	return f.Kmod.Virtual == tristate.True || f.Matrix.Origin == topology.Virtual
}

// withoutNUMA is evidence of GPUs and adapters that no node is known of, on a
// machine that has several.
func (f *Facts) withoutNUMA() []string {
	var all []string
	for i := range f.PCI.Functions {
		fn := &f.PCI.Functions[i]
		if (fn.GPUEligible() || fn.NICEligible()) && fn.NearNUMA == pci.None && f.PCI.NUMANodes > 1 {
			all = append(all, saw(device(fn.Address)+"/numa_node", "-1"))
		}
	}
	return all
}

// farGPUs lists the GPUs whose nearest adapter is beyond PXB, with it.
func (f *Facts) farGPUs() (far, evidence []string) {
	for _, gpu := range f.Matrix.GPUs {
		if !gpu.Eligible || gpu.Level <= topology.PXB {
			continue
		}
		pair := fmt.Sprintf("%v and %v", gpu.Address, gpu.Nearest[0].Address)
		if gpu.Level != f.Matrix.Level {
			pair += " at " + gpu.Level.String()
		}
		far = append(far, pair)
		for _, end := range [...]*pci.Function{gpu.Function, gpu.Nearest[0]} {
			if place := sawPlace(end); !slices.Contains(evidence, place) {
				evidence = append(evidence, place)
			}
		}
	}
	return far, evidence
}

// places is evidence of where GPUs and their nearest adapters stand.
func (f *Facts) places() []string {
	var all []string
	for _, gpu := range f.Matrix.GPUs {
		if !gpu.Eligible {
			continue
		}
		for _, end := range append([]*pci.Function{gpu.Function}, gpu.Nearest[:min(1, len(gpu.Nearest))]...) {
			if place := sawPlace(end); !slices.Contains(all, place) {
				all = append(all, place)
			}
		}
	}
	return all
}

func (f *Facts) ncclDefault() Finding {
	out := Finding{Check: "nccl-default", Status: fromState(f.Matrix.NCCLDefault, Warn), Sources: []string{pciDevices}}
	switch f.Matrix.NCCLDefault {
	case tristate.True:
		out.Detail = "NCCL uses GPUDirect RDMA for every GPU with its default settings"
	case tristate.False:
		out.Code = BeyondNCCLDefault
		out.Detail = "NCCL's default limit (PXB, P2C on Grace) leaves out at least one GPU"
		out.Fix = "set NCCL_NET_GDR_LEVEL=PHB or SYS and measure: it may be slower than without"
		if _, out.Evidence = f.farGPUs(); len(out.Evidence) == 0 { // near, and not in NCCL's eyes
			out.Evidence = f.places()
		}
	case tristate.Unknown:
		out.Detail = "the places of GPUs and adapters in NCCL's eyes are not known"
	}
	if why := f.Matrix.FileRefused; why != nil {
		out.Status, out.Code = Warn, TopologyFileRefused
		out.Detail = "NCCL refuses the topology file and does not start: " + why.Error()
		out.Evidence = []string{saw(f.Matrix.FileName, why.Error())}
		out.Fix = "correct the file; gdr-features topo -o nccl-xml writes one that NCCL takes"
	}
	return out
}

// sharedNearNIC finds two GPUs that one adapter is nearest to, while another of
// the same model is nearest to none and there is one for each GPU: a PCI tree
// that may not be the board's, as some Gen4 switches show with virtual bridges.
func (f *Facts) sharedNearNIC() []Finding {
	if f.Matrix.Origin != topology.Physical || !f.Matrix.Counted {
		return nil
	}
	served := map[*pci.Function][]string{} // by an adapter that alone is nearest
	nearest := map[*pci.Function]bool{}
	for _, gpu := range f.Matrix.GPUs {
		for _, nic := range gpu.Nearest {
			nearest[nic] = true
		}
		if gpu.Eligible && len(gpu.Nearest) == 1 && gpu.Level <= topology.PXB {
			served[gpu.Nearest[0]] = append(served[gpu.Nearest[0]], gpu.Address.String())
		}
	}
	for i := range f.PCI.Functions {
		nic := &f.PCI.Functions[i]
		gpus := served[nic]
		if len(gpus) < 2 {
			continue
		}
		idle := f.idleTwin(nic, nearest)
		if idle == nil {
			continue
		}
		return []Finding{{
			Check: "shared-nic", Status: Warn, Code: SharedNearNIC,
			Detail:   fmt.Sprintf("adapter %v is the nearest of the GPUs %s, and %v, of the same model, is near none", nic.Address, some(gpus), idle.Address),
			Fix:      "compare with the board's manual and with nodes of the same model: if it has one adapter for each GPU, ask the vendor for firmware of the PCIe switch (virtual bridges of Gen4 switches are known for it)",
			Sources:  []string{pciDevices},
			Evidence: []string{sawPlace(nic), sawPlace(idle)},
		}}
	}
	return nil
}

// idleTwin gives an adapter of the same model that is nearest to no GPU, where
// there are as many of the model as there are GPUs.
func (f *Facts) idleTwin(nic *pci.Function, nearest map[*pci.Function]bool) *pci.Function {
	var idle *pci.Function
	twins := 0
	for i := range f.PCI.Functions {
		g := &f.PCI.Functions[i]
		if !g.NICEligible() || g.PhysFn != nil || g.Device != nic.Device || g.Class != nic.Class || g.Address.Function != 0 {
			continue
		}
		twins++
		if !nearest[g] && idle == nil {
			idle = g
		}
	}
	if twins < f.Matrix.EligibleGPUs {
		return nil
	}
	return idle
}

func (f *Facts) iommuFinding(v verdict.Verdict) Finding {
	out := Finding{Check: "iommu", Status: OK, Detail: v.IOMMU, Sources: []string{pciDevices + "/*/iommu_group", "/sys/kernel/iommu_groups/*/type"}}
	switch v.IOMMU {
	case "off":
		out.Sources[1] = "/sys/kernel/iommu_groups"
	case "":
		out.Status, out.Detail = Undecidable, "the IOMMU groups' types cannot be read"
		if f.Kmod.IOMMU == tristate.Unknown {
			out.Detail = "whether the kernel has IOMMU groups cannot be read"
			out.Sources[1] = "/sys/kernel/iommu_groups"
		}
	case "translated":
		out.Status, out.Code = Warn, IOMMUTranslated
		devices, evidence := f.translated()
		out.Detail = fmt.Sprintf("translated for %s: traffic between GPU and NIC goes through the root complex", some(devices))
		out.Fix = f.passthroughFix()
		out.Evidence = evidence
		if words := f.advice().CommandLine; len(words) > 0 {
			out.Evidence = append(out.Evidence, saw("/proc/cmdline", strings.Join(words, " ")))
		}
	}
	return out
}

// translated lists the GPUs and adapters whose addresses the IOMMU translates.
func (f *Facts) translated() (devices, evidence []string) {
	seen := map[int]bool{}
	for i := range f.PCI.Functions {
		fn := &f.PCI.Functions[i]
		if !fn.GPUEligible() && !fn.NICEligible() || fn.IOMMUGroup == pci.None {
			continue
		}
		if kind := f.Kmod.GroupTypes[fn.IOMMUGroup]; kind == "DMA" || kind == "DMA-FQ" {
			devices = append(devices, fn.Address.String())
			if !seen[fn.IOMMUGroup] {
				evidence = append(evidence, saw(fmt.Sprintf("/sys/kernel/iommu_groups/%d/type", fn.IOMMUGroup), kind))
			}
			seen[fn.IOMMUGroup] = true
		}
	}
	return devices, evidence
}

// passthroughFix says how this machine boots with an IOMMU that passes through.
// Devices of virtual machines stay translated and apart.
func (f *Facts) passthroughFix() string {
	word := "iommu=pt"
	if f.Kmod.Arm {
		word = "iommu.passthrough=1"
	}
	if slices.Contains(f.advice().CommandLine, word) {
		return "the kernel was told " + word + ", and these groups are not: a later word of its command line, an untrusted port or a driver's own choice set them otherwise (dmesg, Default domain type)"
	}
	fix := "boot with " + word + ", as NVIDIA recommends for GPUDirect RDMA (devices handed to virtual machines stay isolated)"
	if f.guest() {
		fix = "in this virtual machine: boot with " + word + ", or have the hypervisor leave its virtual IOMMU out"
	}
	return fix
}
