package verdict

import (
	"slices"

	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// connectX judges the hardware as Capable does, but only by GPUs and NICs for which NVIDIA's
// GPU Operator loads a peer memory client. The answer is unknown if there is no such GPU, or
// if such NICs are not judged. open tells that the answer may come when more can be read.
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
