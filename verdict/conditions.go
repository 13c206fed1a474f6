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
func (node *Node) unlessUnidentified(no tristate.State) tristate.State {
	if no == tristate.False && !node.Matrix.Complete {
		return tristate.Unknown
	}
	return no
}

// iommu judges by the groups of the eligible GPUs and NICs, not by the command line: one
// translated device is enough to slow a pair down. Devices without a group prove that the IOMMU
// is off only where the kernel's list of groups was read.
func (node *Node) iommu() (mode string, open bool) {
	var seen, grouped, translated bool
	for fn := range node.PCI.All() {
		if !fn.GPUEligible() && !fn.NICEligible() {
			continue
		}
		seen = true
		grouped = grouped || fn.IOMMUGroup >= 0
		switch of := node.Platform.IOMMU.Types[fn.IOMMUGroup]; {
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
	case open, !seen, !node.Matrix.Complete:
		return "", open || !node.Matrix.Complete
	case grouped:
		return "passthrough", false
	case node.Platform.IOMMU.Groups == tristate.Unknown: // they are in no group, but it is not known whether there are groups
		return "", true
	}
	return "off", false
}

// acs judges the bridges between every eligible GPU and its nearest NIC. It is open when reading
// took too long or failed for some; this process may read none where it failed for all.
func (node *Node) acs() (state string, open bool) {
	if !node.Matrix.Complete {
		return "", true
	}
	missing := node.Matrix.EligibleGPUs == 0
	var denied, read, emulated bool
	for _, gpu := range node.Matrix.GPUs {
		if !gpu.Counts() {
			continue
		}
		between := gpu.Between()
		missing = missing || len(between) == 0 // nothing is known of what is between them
		for _, bridge := range between {
			switch acs := node.ACS[bridge]; {
			case node.Emulated(bridge): // what it shows says nothing of the hardware behind it
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
		return "", node.ACSUnread || denied && read
	case emulated:
		return "", false
	}
	return "clear", false
}

// link names the link layer of the active ports of eligible NICs. A port that could
// not be read leaves it open, unless there are several layers already.
func (node *Node) link() (layer string, open bool) {
	layers := map[string]bool{}
	open = !node.RDMA.Complete || !node.Matrix.Complete
	for _, n := range node.Matrix.NICs {
		if !n.Counts() || n.RDMA == nil {
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
func (node *Node) connectX() (capable tristate.State, open bool) {
	if !node.PCIRead {
		return tristate.Unknown, true
	}
	m, found := &node.Matrix, false
	capable = tristate.False
	for i, gpu := range m.GPUs {
		if !gpu.GPU.GPUOperator {
			continue
		}
		found = true
		for _, p := range m.PairsOf(i) {
			if nic := m.NICs[p.NIC].Function; gpu.Counts() && nic != nil && nic.NICEligible() && nic.NIC.GPUOperator {
				capable = tristate.Or(capable, p.Allowed)
			}
		}
	}
	if !found {
		return tristate.Unknown, !m.Complete
	}
	notJudged := func(fn pci.Function) bool { return fn.Other != nil && fn.Other.GPUOperator }
	if slices.ContainsFunc(node.PCI.Functions, notJudged) {
		capable = tristate.Or(capable, tristate.Unknown)
	}
	capable = node.unlessUnidentified(capable)
	return capable, capable == tristate.Unknown
}

// rate returns Verdict.Rate. open: it is unknown.
func (node *Node) rate() (gbps *int, open bool) {
	switch {
	case !node.Matrix.Complete: // what could not be identified may be a GPU, or a nearer NIC
		return nil, true
	case node.Matrix.EligibleNICs == 0:
		return nil, false
	}
	worst := math.Inf(1)
	for _, gpu := range node.Matrix.GPUs {
		if !gpu.Counts() {
			continue
		}
		// That a GPU may get more matters only if no other is known to get as little.
		if best, more := node.fastest(gpu); best < worst || best == worst && !more {
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
func (node *Node) fastest(gpu topology.GPU) (gbps float64, more bool) {
	near := gpu.Near(topology.Hardware)
	ports, all := node.RDMA.PortsOf(node.PCI.WithVirtual(near.Functions), true)
	more = near.Level == topology.Unknown || !all
	for _, p := range ports {
		usable := p.Usable()
		more = more || usable == tristate.Unknown || usable == tristate.True && p.RateGbps == 0
		if usable == tristate.True {
			gbps = max(gbps, p.RateGbps)
		}
	}
	return gbps, more
}
