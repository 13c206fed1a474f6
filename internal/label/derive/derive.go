// Package derive gives the values of the node labels. It is pure.
package derive

import (
	"strconv"

	"gdr-features/internal/expect"
	"gdr-features/internal/label"
	"gdr-features/source/kmod"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Facts are what labels follow from.
type Facts struct {
	// PCIRead is false when the PCI bus could not be read at all.
	PCIRead bool
	Matrix  *topology.Matrix
	Verdict *verdict.Verdict
	Kmod    *kmod.State
	// Expected is how the machine compares with what is expected of it; nil without
	// expectations.
	Expected *expect.Result
}

// rows holds every label. The value is "" where there is none. It is unknown where a
// fact that it follows from could not be read.
var rows = [...]struct {
	name  string
	value func(*Facts) (text string, unknown bool)
}{
	{label.Capable, func(f *Facts) (string, bool) { return state(f.Verdict.Capable) }},
	{label.Level, func(f *Facts) (string, bool) { return f.level(f.Matrix.Level) }},
	{label.BestLevel, func(f *Facts) (string, bool) { return f.level(f.Matrix.Best) }},
	{label.NCCLDefault, func(f *Facts) (string, bool) {
		text, unknown := state(f.Matrix.NCCLDefault)
		return text, unknown && f.mayHavePairs()
	}},
	{label.GPUs, func(f *Facts) (string, bool) { return f.count(f.Matrix.EligibleGPUs) }},
	{label.NICs, func(f *Facts) (string, bool) { return f.count(f.Matrix.EligibleNICs) }},
	{label.Topology, func(f *Facts) (string, bool) { return word(f.Matrix.Origin) }},
	{label.DataDirect, func(f *Facts) (string, bool) {
		if f.Matrix.DataDirect {
			return "true", false
		}
		return "", !f.Matrix.Counted
	}},

	{label.Ready, func(f *Facts) (string, bool) { return state(f.Verdict.Ready) }},
	{label.Reason, func(f *Facts) (string, bool) { return string(f.Verdict.Reason), f.Verdict.Ready == tristate.Unknown }},
	{label.Peermem, func(f *Facts) (string, bool) { return state(f.Verdict.Peermem) }},
	{label.DMABuf, func(f *Facts) (string, bool) { return state(f.Verdict.DMABuf) }},
	{label.PeerDirect, func(f *Facts) (string, bool) { return word(f.Kmod.Stack.PeerDirect) }},
	{label.MOFED, func(f *Facts) (string, bool) {
		text, unknown := word(MOFED(f.Kmod.Stack.MOFED))
		return text, unknown && f.Kmod.Stack.MOFED.Origin != kmod.OriginNotLoaded
	}},
	{label.Rate, func(f *Facts) (string, bool) {
		if f.Verdict.Rate == nil {
			return "", f.Verdict.Open.Rate
		}
		return strconv.Itoa(*f.Verdict.Rate), false
	}},
	{label.Link, func(f *Facts) (string, bool) { return f.Verdict.Link, f.Verdict.Open.Link }},
	{label.IOMMU, func(f *Facts) (string, bool) { return f.Verdict.IOMMU, f.Verdict.Open.IOMMU }},
	{label.ACS, func(f *Facts) (string, bool) { return f.Verdict.ACS, f.Verdict.Open.ACS }},
	{label.Storage, func(f *Facts) (string, bool) { return state(f.Kmod.Storage) }},
	{label.Expected, func(f *Facts) (string, bool) {
		if f.Expected == nil || f.Expected.NoType {
			return "", false
		}
		return state(f.Expected.State)
	}},
}

// Labels returns the labels of a node, none at all where there is no NVIDIA GPU.
// unknown names those whose facts could not be read: they may be kept as they were
// last published.
func Labels(f *Facts) (labels label.Set, unknown label.Names) {
	labels, unknown = label.Set{}, label.Names{}
	switch {
	case !f.PCIRead, len(f.Matrix.GPUs) == 0 && !f.Matrix.Counted:
		unknown = label.All()
	}
	if len(f.Matrix.GPUs) == 0 {
		return labels, unknown
	}
	for _, row := range rows {
		text, open := row.value(f)
		if text = label.Value(text); text != "" {
			labels[row.name] = text
		}
		if open {
			unknown[row.name] = true
		}
	}
	return labels, unknown
}

func state(s tristate.State) (text string, unknown bool) {
	if s == tristate.Unknown {
		return "", true
	}
	return s.String(), false
}

// word makes "" unknown.
func word[T ~string](text T) (string, bool) { return string(text), text == "" }

func (f *Facts) count(n int) (text string, unknown bool) {
	if !f.Matrix.Counted {
		return "", true
	}
	return strconv.Itoa(n), false
}

func (f *Facts) level(l topology.Level) (text string, unknown bool) {
	return l.String(), l == topology.Unknown && f.mayHavePairs()
}

// mayHavePairs reports whether there is an eligible GPU with an eligible NIC, as far
// as is known.
func (f *Facts) mayHavePairs() bool {
	return !f.Matrix.Counted || f.Matrix.EligibleGPUs > 0 && f.Matrix.EligibleNICs > 0
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
