package verdict

import (
	"fmt"
	"slices"
	"strconv"

	"gdr-features/internal/tri"
	"gdr-features/source/pci"
)

// links compares the PCI Express link of each eligible GPU and adapter with what
// it and the port above it can do.
func (f *Facts) links() []Finding {
	var degraded, evidence []string
	var seen []*pci.Function
	for i := range f.PCI.Functions {
		fn := &f.PCI.Functions[i]
		card := f.PCI.Card(fn)
		if !fn.GPUEligible() && !fn.NICEligible() || fn.PhysFn != nil || slices.Contains(seen, card) {
			continue
		}
		known, lacks, saw := f.degraded(fn, card)
		if known {
			seen = append(seen, card)
		}
		degraded, evidence = append(degraded, lacks...), append(evidence, saw...)
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

// degraded tells what the link of a card lacks, with the evidence. The speed of a
// GPU is left out: an idle one slows its link down to save power.
func (f *Facts) degraded(fn, card *pci.Function) (known bool, lacks, evidence []string) {
	link := card.Link
	if link == nil {
		return false, nil, nil
	}
	width, speed := link.MaxWidth, link.MaxSpeed
	if port := f.PCI.Port(card); port != nil && port.Link != nil {
		width, speed = least(width, port.Link.MaxWidth), least(speed, port.Link.MaxSpeed)
	}
	if link.Width == 0 || width == 0 {
		return false, nil, nil
	}
	dir, kind := device(card.Address), "adapter"
	if fn.Kind() == pci.GPU {
		kind = "GPU"
	}
	if link.Width < width {
		lacks = append(lacks, fmt.Sprintf("%s %v runs at x%d of x%d", kind, fn.Address, link.Width, width))
		evidence = append(evidence, saw(dir+"/current_link_width", strconv.Itoa(link.Width)), saw(dir+"/max_link_width", strconv.Itoa(link.MaxWidth)))
	}
	if fn.Kind() == pci.NIC && link.Speed > 0 && link.Speed < speed {
		lacks = append(lacks, fmt.Sprintf("%s %v runs at %g of %g GT/s", kind, fn.Address, link.Speed, speed))
		evidence = append(evidence, saw(dir+"/current_link_speed", fmt.Sprintf("%g GT/s", link.Speed)), saw(dir+"/max_link_speed", fmt.Sprintf("%g GT/s", link.MaxSpeed)))
	}
	return true, lacks, evidence
}

// least is the smaller of two limits, of which 0 is not known.
func least[T int | float64](a, b T) T {
	if b != 0 && (a == 0 || b < a) {
		return b
	}
	return a
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
func (f *Facts) storage(v Verdict) []Finding {
	if f.Kmod.Storage != tri.True || v.IOMMU != "translated" {
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
