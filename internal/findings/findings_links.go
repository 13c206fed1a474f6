package findings

import (
	"fmt"
	"slices"
	"strconv"

	"gdr-features/source/pci"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// links judges the PCI Express link of the card of each eligible GPU and adapter.
func (f *Facts) links() []Finding {
	var degraded, evidence []string
	var seen []*pci.Function
	for i := range f.PCI.Functions {
		fn := &f.PCI.Functions[i]
		card, port := f.PCI.Slot(fn)
		if !fn.GPUEligible() && !fn.NICEligible() || fn.PhysFn != nil || slices.Contains(seen, card) {
			continue
		}
		ends := pci.LinkEnds{Lower: card.Link}
		if port != nil {
			ends.Upper = port.Link
		}
		full, lacks := ends.Full(fn.Kind())
		if full == tristate.Unknown && len(lacks) == 0 {
			continue
		}
		seen = append(seen, card)
		for _, l := range lacks {
			degraded = append(degraded, fmt.Sprintf("%s %v runs at %v", kindName(fn), fn.Address, l))
			file := func(which string) string { return device(card.Address) + "/" + which + "_link_" + l.Property }
			evidence = append(evidence, saw(file("current"), l.Value(l.Now)), saw(file("max"), l.Value(l.Own)))
		}
	}
	if len(seen) == 0 {
		return nil
	}
	out := Finding{
		Check: "link", Status: OK, Detail: fmt.Sprintf("%s of GPUs and adapters at full width, adapters at full speed", count(len(seen), "PCIe link")),
		Sources: []string{pciDevices + "/*/current_link_width", pciDevices + "/*/max_link_width", pciDevices + "/*/current_link_speed", pciDevices + "/*/max_link_speed"},
	}
	if len(degraded) > 0 {
		out.Status, out.Code, out.Evidence = Warn, LinkDegraded, evidence
		out.Detail = some(degraded)
		out.Fix = "reseat the card or its riser, look for AER errors in dmesg and at the slot's settings in the firmware; a cold boot trains the link anew"
		if f.guest() {
			out.Fix = "look on the hypervisor, which shows the real link: there, " + out.Fix
		}
	}
	return []Finding{out}
}

func kindName(f *pci.Function) string {
	if f.Kind() == pci.GPU {
		return "GPU"
	}
	return "adapter"
}

// numaBalancing: moving pages between NUMA nodes unmaps them, which costs those
// who registered them (recommended off by NCCL's and RCCL's guides).
func (f *Facts) numaBalancing() []Finding {
	const file = "/proc/sys/kernel/numa_balancing"
	value := f.advice().NUMABalancing
	n, err := strconv.Atoi(value)
	if err != nil || f.PCI.NUMANodes < 2 {
		return nil
	}
	out := Finding{Check: "numa", Status: OK, Detail: "automatic NUMA balancing is off", Sources: []string{file}}
	if n&1 != 0 { // 2 is memory tiering alone
		out.Status, out.Code = Warn, NUMABalancing
		out.Detail = "automatic NUMA balancing moves pages between nodes, which makes communication slow and uneven"
		out.Fix = "sysctl -w kernel.numa_balancing=0 and measure; into /etc/sysctl.d to keep it, if nothing else on this node needs it"
		out.Evidence = []string{saw(file, value)}
	}
	return []Finding{out}
}

// storage: GPUDirect Storage through a translating IOMMU is not supported.
func (f *Facts) storage(v verdict.Verdict) []Finding {
	if f.Kmod.Storage != tristate.True || v.IOMMU != "translated" {
		return nil
	}
	_, evidence := f.translated()
	return []Finding{{
		Check: "storage", Status: Warn, Code: StorageIOMMU,
		Detail:   "nvidia-fs is loaded, and GPUDirect Storage needs an IOMMU that is off or passes through",
		Fix:      f.passthroughFix() + "; gdscheck -p shows what GPUDirect Storage makes of it",
		Sources:  []string{"/sys/module/nvidia_fs/initstate", "/sys/kernel/iommu_groups/*/type"},
		Evidence: append([]string{saw("/sys/module/nvidia_fs/initstate", "live")}, evidence...),
	}}
}
