package derive

import (
	"gdr-features/internal/label"
	"gdr-features/source/kmod"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Unknown names the labels that Labels leaves out because their facts could not be
// read, and not because there is nothing to tell. Such a label may be kept as it
// was last published. It reads what Labels reads, from a PCI bus that could be read.
func Unknown(m *topology.Matrix, v *verdict.Verdict, k *kmod.State) label.Names {
	if len(m.GPUs) == 0 {
		if m.Counted {
			return label.Names{} // a node without GPU has no labels
		}
		return label.All()
	}
	n := label.Names{}
	add := func(unknown bool, names ...string) {
		if unknown {
			for _, name := range names {
				n[name] = true
			}
		}
	}
	add(!m.Counted, label.GPUs, label.NICs)
	add(!m.Counted && !m.DataDirect, label.DataDirect)
	if !m.Counted || m.EligibleGPUs > 0 && m.EligibleNICs > 0 {
		add(m.Level == topology.Unknown, label.Level)
		add(m.Best == topology.Unknown, label.BestLevel)
		add(m.NCCLDefault == tristate.Unknown, label.NCCLDefault)
	}
	add(m.Origin == "", label.Topology)
	add(v.Capable == tristate.Unknown, label.Capable)
	add(v.Ready == tristate.Unknown, label.Ready, label.Reason)
	add(v.Peermem == tristate.Unknown, label.Peermem)
	add(v.DMABuf == tristate.Unknown, label.DMABuf)
	add(k.Stack.PeerDirect == "", label.PeerDirect)
	add(MOFED(k.Stack.MOFED) == "" && k.Stack.MOFED.Origin != kmod.OriginNotLoaded, label.MOFED)
	add(v.Open.Link, label.Link)
	add(v.Open.IOMMU, label.IOMMU)
	add(v.Open.ACS, label.ACS)
	add(k.Storage == tristate.Unknown, label.Storage)
	return n
}
