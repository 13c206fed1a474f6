package findings

import (
	"gdr-features/internal/finding"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// On some CPUs the driver maps GPU memory for some pairs alone (verdict.Judged.Apart).
const orMoveOther = "or move a NIC and a GPU that have what it takes below one PCIe switch"

// apart says what these pairs lack, if another GPU or NIC has it or may have it: anyHas.
func apart(f *judged, reason verdict.Reason, anyHas tristate.State, lack string) finding.Said {
	pairs := f.apartPairs(tristate.False, reason)
	if anyHas == tristate.False || !pairs.Any() {
		return finding.Said{}
	}
	return finding.Unmet(reason, "on this CPU the %s driver maps GPU memory only for a NIC that shares a PCIe "+
		"bridge with the GPU, and such pairs lack %s: %s",
		f.GPU.Help.Vendor, lack, pairs).Of(pairs)
}

// apartPairs lists the pairs that come furthest, if this is what they lack, or may lack.
func (f *judged) apartPairs(met tristate.State, reason verdict.Reason) (found finding.Subjects) {
	lack, pairs := f.Verdict.Lack, f.Verdict.Apart
	if lack.Met != met || lack.Reason != reason {
		return found
	}
	for _, of := range pairs {
		gpu, nic := f.Matrix.GPUs[of.GPU].Function, &f.Matrix.NICs[of.NIC]
		found.Add(f.named(gpu)+" and "+nicName(nic), sawPlace(gpu), sawPlace(nic.Function))
	}
	return found
}
