package label

import (
	"gdr-features/internal/topology"
	"gdr-features/internal/tri"
	"gdr-features/internal/verdict"
	"gdr-features/source/kmod"
)

// Names is a set of labels' names, without prefix.
type Names map[string]bool

// All names every label.
func All() Names {
	n := Names{}
	n.add(true, hardware...)
	n.add(true, state...)
	return n
}

// Unknown names the labels that Of leaves out because their facts could not be
// read, and not because there is nothing to tell. Such a label may be kept as it
// was last published. It reads what Of reads, from a PCI bus that could be read.
func Unknown(m *topology.Map, v *verdict.Verdict, k *kmod.State) Names {
	if len(m.GPUs) == 0 {
		if m.Counted {
			return Names{} // a node without GPU has no labels
		}
		return All()
	}
	n := Names{}
	n.add(!m.Counted, GPUs, NICs)
	n.add(!m.Counted && !m.DataDirect, DataDirect)
	if !m.Counted || m.EligibleGPUs > 0 && m.EligibleNICs > 0 {
		n.add(m.Level == topology.Unknown, Level)
		n.add(m.Best == topology.Unknown, BestLevel)
		n.add(m.NCCLDefault == tri.Unknown, NCCLDefault)
	}
	n.add(m.Source == "", Topology)
	n.add(v.Capable == tri.Unknown, Capable)
	n.add(v.Ready == tri.Unknown, Ready, Reason)
	n.add(v.Peermem == tri.Unknown, Peermem)
	n.add(v.DMABuf == tri.Unknown, DMABuf)
	n.add(k.Stack.PeerDirect == "", PeerDirect)
	n.add(MOFEDValue(k.Stack.MOFED) == "" && k.Stack.MOFED.Origin != kmod.OriginNotLoaded, MOFED)
	n.add(v.Open.Link, Link)
	n.add(v.Open.IOMMU, IOMMU)
	n.add(v.Open.ACS, ACS)
	n.add(k.Storage == tri.Unknown, Storage)
	return n
}

func (n Names) add(really bool, names ...string) {
	if really {
		for _, name := range names {
			n[name] = true
		}
	}
}
