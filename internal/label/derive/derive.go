// Package derive gives the node labels that follow from a verdict. It is pure.
package derive

import (
	"strconv"

	"gdr-features/internal/label"
	"gdr-features/source/kmod"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Labels gives the labels of a node: none at all where there is no NVIDIA GPU.
func Labels(m *topology.Matrix, v *verdict.Verdict, k *kmod.State) label.Set {
	s := label.Set{}
	if len(m.GPUs) == 0 {
		return s
	}
	state(s, label.Capable, v.Capable)
	text(s, label.Level, m.Level.String())
	text(s, label.BestLevel, m.Best.String())
	state(s, label.NCCLDefault, m.NCCLDefault)
	if m.Counted {
		text(s, label.GPUs, strconv.Itoa(m.EligibleGPUs))
		text(s, label.NICs, strconv.Itoa(m.EligibleNICs))
	}
	text(s, label.Topology, string(m.Origin))
	if m.DataDirect {
		text(s, label.DataDirect, "true")
	}

	state(s, label.Ready, v.Ready)
	text(s, label.Reason, string(v.Reason))
	state(s, label.Peermem, v.Peermem)
	state(s, label.DMABuf, v.DMABuf)
	text(s, label.PeerDirect, string(k.Stack.PeerDirect))
	text(s, label.MOFED, MOFED(k.Stack.MOFED))
	text(s, label.Link, v.Link)
	text(s, label.IOMMU, v.IOMMU)
	text(s, label.ACS, v.ACS)
	state(s, label.Storage, k.Storage)
	return s
}

// state adds a label unless its fact is unknown.
func state(s label.Set, name string, value tristate.State) {
	if value != tristate.Unknown {
		s[name] = value.String()
	}
}

// text adds a label unless nothing of its value may stand in a label.
func text(s label.Set, name, value string) {
	if value = label.Value(value); value != "" {
		s[name] = value
	}
}

// MOFED is the version of MOFED, "inbox" for a kernel's own drivers, "" when
// neither is known.
func MOFED(m kmod.MOFED) string {
	switch m.Origin {
	case kmod.OriginMOFED:
		return m.Version
	case kmod.OriginInbox:
		return "inbox"
	case kmod.OriginUnknown, kmod.OriginNotLoaded:
	}
	return ""
}
