package verdict

import (
	"math"
	"slices"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// boundTo reports whether a function is bound to one of some drivers.
func boundTo(f *pci.Function, drivers ...string) tristate.State {
	if !f.DriverKnown {
		return tristate.Unknown
	}
	return tristate.Of(slices.Contains(drivers, f.Driver))
}

// unlessUnidentified makes False unknown where a function that could not be
// identified may be what is missing.
func (f *Node) unlessUnidentified(no tristate.State) tristate.State {
	if no == tristate.False && !f.Matrix.Complete {
		return tristate.Unknown
	}
	return no
}

// iommu judges by the groups of the eligible GPUs and NICs, not by the command line: one
// translated device is enough to slow a pair down. Devices without a group prove that the IOMMU
// is off only where the kernel's list of groups was read.
func (f *Node) iommu() (mode string, open bool) {
	var seen, grouped, translated bool
	for i := range f.PCI.Functions {
		fn := &f.PCI.Functions[i]
		if !fn.GPUEligible() && !fn.NICEligible() {
			continue
		}
		seen = true
		grouped = grouped || fn.IOMMUGroup >= 0
		switch of := f.Platform.IOMMU.Types[fn.IOMMUGroup]; {
		case fn.IOMMUGroup == pci.None, of == "identity":
		case of == "DMA", of == "DMA-FQ":
			translated = true
		default:
			open = true
		}
	}
	switch {
	case translated:
		return "translated", false
	case open, !seen, !f.Matrix.Complete:
		return "", open || !f.Matrix.Complete
	case grouped:
		return "passthrough", false
	case f.Platform.IOMMU.Groups == tristate.Unknown: // they are in no group, but it is not known whether there are groups
		return "", true
	}
	return "off", false
}

// acs judges the bridges between every eligible GPU and its nearest NIC. It is open when reading
// took too long or failed for some; this process may read none where it failed for all.
func (f *Node) acs() (state string, open bool) {
	if !f.Matrix.Complete {
		return "", true
	}
	missing := f.Matrix.EligibleGPUs == 0
	var denied, read, emulated bool
	for _, gpu := range f.Matrix.GPUs {
		if !gpu.Eligible {
			continue
		}
		between := gpu.Between()
		missing = missing || len(between) == 0 // nothing is known of what is between them
		for _, bridge := range between {
			switch acs := f.ACS[bridge]; {
			case f.Emulated(bridge): // what it shows says nothing of the hardware behind it
				emulated = true
			case acs == nil:
				denied = true
			case acs.Redirect():
				return "redirect", false
			default:
				read = true
			}
		}
	}
	switch {
	case missing, denied:
		return "", f.ACSUnread || denied && read
	case emulated:
		return "", false
	}
	return "clear", false
}

// link names the link layer of the active ports of eligible NICs. A port that could
// not be read leaves it open, unless there are several layers already.
func (f *Node) link() (layer string, open bool) {
	layers := map[string]bool{}
	open = !f.RDMA.Complete || !f.Matrix.Complete
	for _, n := range f.Matrix.NICs {
		if !n.Eligible || n.RDMA == nil {
			continue
		}
		open = open || !n.RDMA.PortsRead
		for _, p := range n.RDMA.Ports {
			open = open || p.Usable() == tristate.Unknown
			if p.Usable() == tristate.True {
				layers[p.LinkLayer] = true
			}
		}
	}
	switch {
	case len(layers) > 1:
		return "mixed", false
	case open:
		return "", true
	}
	for layer := range layers {
		return strings.ToLower(layer), false
	}
	return "", false
}

// connectX judges the hardware as Capable does, by GPUs and NICs for which NVIDIA's GPU Operator
// loads a peer memory client. Unknown without such a GPU, or if such NICs are not judged.
func (f *Node) connectX() (capable tristate.State, open bool) {
	if !f.PCIRead {
		return tristate.Unknown, true
	}
	m, found := &f.Matrix, false
	capable = tristate.False
	for i, gpu := range m.GPUs {
		if !gpu.GPU.GPUOperator {
			continue
		}
		found = true
		for _, p := range m.PairsOf(i) {
			if nic := m.NICs[p.NIC].Function; gpu.Eligible && nic != nil && nic.NICEligible() && nic.NIC.GPUOperator {
				capable = tristate.Or(capable, p.Allowed)
			}
		}
	}
	if !found {
		return tristate.Unknown, !m.Complete
	}
	notJudged := func(fn pci.Function) bool { return fn.Other != nil && fn.Other.GPUOperator }
	if slices.ContainsFunc(f.PCI.Functions, notJudged) {
		capable = tristate.Or(capable, tristate.Unknown)
	}
	capable = f.unlessUnidentified(capable)
	return capable, capable == tristate.Unknown
}

// rate returns Verdict.Rate. open: it is unknown.
func (f *Node) rate() (gbps *int, open bool) {
	switch {
	case !f.Matrix.Complete: // what could not be identified may be a GPU, or a nearer NIC
		return nil, true
	case f.Matrix.EligibleNICs == 0:
		return nil, false
	}
	worst := math.Inf(1)
	for i := range f.Matrix.GPUs {
		gpu := &f.Matrix.GPUs[i]
		if !gpu.Eligible {
			continue
		}
		// That a GPU may get more matters only if no other is known to get as little.
		if best, more := f.fastest(gpu); best < worst || best == worst && !more {
			worst, open = best, more
		}
	}
	if open || math.IsInf(worst, 1) {
		return nil, open
	}
	return new(int(worst)), false
}

// fastest returns the highest rate in Gbit/s of the active ports of a GPU's nearest NICs and their
// virtual functions, 0 for none. more: something that could not be read may have a higher one.
func (f *Node) fastest(gpu *topology.GPU) (gbps float64, more bool) {
	ports, all := f.RDMA.PortsOf(f.PCI.WithVirtual(gpu.Nearest), true)
	more = gpu.Level == topology.Unknown || !all
	for _, p := range ports {
		usable := p.Usable()
		more = more || usable == tristate.Unknown || usable == tristate.True && p.RateGbps == 0
		if usable == tristate.True {
			gbps = max(gbps, p.RateGbps)
		}
	}
	return gbps, more
}
