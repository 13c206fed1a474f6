// Package verdict judges whether a node can do GPUDirect RDMA, and does it now, and says why. It
// is pure: facts in, a verdict out. What no fact proves is unknown.
package verdict

import (
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/source/verbs"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// Reason is why a node is not ready, as one word.
type Reason string

// Reasons, in the order in which they are looked for.
const (
	NoGPU              Reason = "NoGPU"
	GPUUnsupported     Reason = "GPUUnsupported"
	NoNIC              Reason = "NoNIC"
	NICNotJudged       Reason = "NICNotJudged"
	NICUnsupported     Reason = "NICUnsupported"
	PlatformForbidsP2P Reason = "PlatformForbidsP2P"
	GPUPassthrough     Reason = "GPUPassthrough"
	GPUDriverNotLoaded Reason = "GPUDriverNotLoaded"
	NICDriverNotLoaded Reason = "NICDriverNotLoaded"
	NoRDMADevice       Reason = "NoRDMADevice"
	NoActivePort       Reason = "NoActivePort"
	PeermemNotLoaded   Reason = "PeermemNotLoaded"
	NoPeerMemoryPath   Reason = "NoPeerMemoryPath"
	Unreadable         Reason = "Unreadable"
	// States in which everything is in place, and transfers are published to fail.
	ConfidentialGuest Reason = "ConfidentialGuest"
	SMMUPassthrough   Reason = "SMMUPassthrough"
	EmulatedSwitch    Reason = "EmulatedSwitch"
)

// Node is a machine at one time: what was read of it, how far its GPUs are from its NICs,
// and the verdict on it. It is what everything that judges or shows a machine is made from.
type Node struct {
	// Families are those that the facts were read for; the zero value: family.Known.
	Families family.Table
	// PCIRead is false when the PCI bus could not be read at all.
	PCIRead  bool
	PCI      pci.Inventory
	RDMA     rdma.Inventory
	Kmod     kmod.State
	Platform platform.State
	// Matrix is built from the facts above, see topology.Build.
	Matrix topology.Matrix
	// ACS of the bridges between GPUs and their nearest NICs, nil for those not readable.
	ACS map[pci.Address]*pci.ACS
	// ACSUnread: reading them took too long.
	ACSUnread bool
	// ATS says whether NICs translate addresses by themselves (pci.ReadATS): those of
	// EmulatedPairs. Unknown for others.
	ATS map[pci.Address]tristate.State
	// Asked are RDMA devices that were asked whether they register DMA-BUF.
	Asked []verbs.Answer
	// Verdict is what Judge returned of these facts.
	Verdict Verdict
}

// Verdict is the judgement.
type Verdict struct {
	// Capable: the hardware can. Ready: every prerequisite is in place now.
	Capable, Ready tristate.State
	// ConnectX: Capable with a GPU and a NIC for which NVIDIA's GPU Operator loads a
	// peer memory client. Unknown also without such a GPU.
	ConnectX tristate.State
	// Reason is why Ready is not true; "" when it is.
	Reason Reason
	// Peermem and DMABuf are the two ways to GPU memory, of the families of Judged. Both are
	// unknown where no GPU and NIC are judged: there is no way to judge.
	Peermem, DMABuf tristate.State
	// Link is the link layer of the active ports of eligible NICs:
	// "infiniband", "ethernet", "unspecified", "mixed"; "" for none or unknown.
	Link string
	// Rate is the rate in Gbit/s, rounded down, that every eligible GPU gets on one active
	// port of its nearest NICs. 0 when a GPU's nearest NICs have no active port; nil when
	// it is unknown, and without an eligible GPU or NIC.
	Rate *int
	// IOMMU is "off", "passthrough" or "translated"; "" for unknown.
	IOMMU string
	// ACS is "clear" or "redirect"; "" for unknown.
	ACS string
	// Undecided tells which of these five have no value because something could not be read.
	// ACS registers that this process may not read do not count.
	Undecided struct{ ConnectX, Link, Rate, IOMMU, ACS bool }
	// Steps are the prerequisites in their order; the two ways are one step, the last.
	Steps []Step
	// Judged is what was judged of the families that Steps and the two ways are about: those that
	// come furthest. Empty for a table without families of GPUs or of NICs.
	Judged
	// Others are the other families of GPUs that are here.
	Others []Other
	Degradation
}

// Doubted reports whether the reason is a state in which transfers are published to fail, and no
// fact that could not be read.
func (v *Verdict) Doubted() bool {
	return v.Reason == ConfidentialGuest || v.Reason == SMMUPassthrough || v.Reason == EmulatedSwitch
}

// Step is one prerequisite: the check that reports it, and the reason when it is not met.
type Step struct {
	Check  string // "hardware", "gpu-driver", ..., or GPUMemory
	Met    tristate.State
	Reason Reason
}

// GPUMemory is the Check of the step that takes both ways to GPU memory together.
const GPUMemory = "gpu-memory"

// Judge returns the verdict on a node's facts. It does not use Node.Verdict.
func Judge(node *Node) Verdict { return judgeBy(node, drives) }

func judgeBy(node *Node, drives asker) Verdict {
	var v Verdict
	v.ConnectX, v.Undecided.ConnectX = node.connectX()
	v.Link, v.Undecided.Link = node.link()
	v.Rate, v.Undecided.Rate = node.rate()
	v.IOMMU, v.Undecided.IOMMU = node.iommu()
	v.ACS, v.Undecided.ACS = node.acs()
	var why Reason
	v.Capable, why = node.capable()
	v.Steps = []Step{{"hardware", v.Capable, why}}
	if pairs := node.pairs(drives); len(pairs) > 0 {
		v.Judged = *furthest(pairs)
		if node.here(&v.Judged) {
			v.Peermem, v.DMABuf = v.peermem, v.dmabuf
		}
		v.Steps = append(v.Steps, v.steps...)
		v.Others = node.others(v.GPU, pairs)
	}
	v.Degradation = v.degradation(node)
	v.Ready, v.Reason = ready(node.PCIRead && !node.mayBeUnlisted(), v.Steps)
	if v.Ready == tristate.Unknown && v.Capable == tristate.True && v.Doubt != "" {
		v.Reason = v.Doubt
	}
	return v
}

// mayBeUnlisted: no NIC is known here, and an RDMA device may be that of one that no table has.
func (node *Node) mayBeUnlisted() bool {
	known, others := node.nics()
	return node.Matrix.EligibleGPUs > 0 && !known && !others && node.PCI.Unplaced
}

// nics reports whether there are NICs of families that count, eligible or not, and of others,
// among those that the user leaves in.
func (node *Node) nics() (known, others bool) {
	for f := range node.PCI.All() {
		known, others = known || f.NIC != nil && !f.Excluded, others || f.Other != nil && !f.Excluded
	}
	return known, others
}

// capable judges the hardware, by PCI ids and places alone.
func (node *Node) capable() (tristate.State, Reason) {
	m := &node.Matrix
	known, others := node.nics()
	var why Reason
	switch {
	case !node.PCIRead:
		return tristate.Unknown, Unreadable
	case len(m.GPUs) == 0:
		why = NoGPU
	case m.EligibleGPUs == 0:
		why = GPUUnsupported
	case m.EligibleNICs == 0 && others:
		return tristate.Unknown, NICNotJudged
	case node.mayBeUnlisted():
		return tristate.Unknown, Unreadable
	case !known:
		why = NoNIC
	case m.EligibleNICs == 0:
		why = NICUnsupported
	case m.Reachable == tristate.True:
		return tristate.True, ""
	case m.Reachable == tristate.False:
		why = PlatformForbidsP2P
	default:
		return tristate.Unknown, Unreadable
	}
	if !m.Complete { // what could not be identified may be what is missing
		return tristate.Unknown, Unreadable
	}
	return tristate.False, why
}

// ready takes the first prerequisite that is proven missing for the reason. If none is and one is
// unknown, whether the node is ready is unknown; so it is if all NICs are of families that are not
// judged. read: the NICs could be read.
func ready(read bool, steps []Step) (tristate.State, Reason) {
	switch {
	case !read:
		return tristate.Unknown, Unreadable
	case steps[0].Reason == NICNotJudged:
		return tristate.Unknown, NICNotJudged
	}
	all := tristate.True
	for _, s := range steps {
		if s.Met == tristate.False {
			return tristate.False, s.Reason
		}
		all = tristate.And(all, s.Met)
	}
	if all == tristate.Unknown {
		return tristate.Unknown, Unreadable
	}
	return tristate.True, ""
}
