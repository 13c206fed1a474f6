// Package derive is the table of the node labels: what each is about, and its value.
// It is pure.
package derive

import (
	"maps"
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

// kind is what a label is about: it may change only when the hardware changes, or
// it follows drivers and links.
type kind uint8

const (
	hardware kind = iota
	state
)

// row is one label. Its value is "" where there is none. It is unknown where a fact
// that it follows from could not be read.
type row struct {
	name  string // without prefix
	kind  kind
	value func(*Facts) (text string, unknown bool)
}

// rows holds every label.
var rows = [...]row{
	{label.Capable, hardware, func(f *Facts) (string, bool) { return answer(f.Verdict.Capable) }},
	{label.Level, hardware, func(f *Facts) (string, bool) { return f.level(f.Matrix.Level) }},
	{label.BestLevel, hardware, func(f *Facts) (string, bool) { return f.level(f.Matrix.Best) }},
	{label.NCCLDefault, hardware, func(f *Facts) (string, bool) {
		text, unknown := answer(f.Matrix.NCCLDefault)
		return text, unknown && f.mayHavePairs()
	}},
	{label.GPUs, hardware, func(f *Facts) (string, bool) { return f.count(f.Matrix.EligibleGPUs) }},
	{label.NICs, hardware, func(f *Facts) (string, bool) { return f.count(f.Matrix.EligibleNICs) }},
	{label.Topology, hardware, func(f *Facts) (string, bool) { return word(f.Matrix.Origin) }},
	{label.DataDirect, hardware, func(f *Facts) (string, bool) {
		if f.Matrix.DataDirect {
			return "true", false
		}
		return "", !f.Matrix.Counted
	}},

	{label.Ready, state, func(f *Facts) (string, bool) { return answer(f.Verdict.Ready) }},
	{label.Reason, state, func(f *Facts) (string, bool) { return string(f.Verdict.Reason), f.Verdict.Ready == tristate.Unknown }},
	{label.Peermem, state, func(f *Facts) (string, bool) { return answer(f.Verdict.Peermem) }},
	{label.DMABuf, state, func(f *Facts) (string, bool) { return answer(f.Verdict.DMABuf) }},
	{label.PeerDirect, state, func(f *Facts) (string, bool) { return word(f.Kmod.Stack.PeerDirect) }},
	{label.MOFED, state, func(f *Facts) (string, bool) {
		text, unknown := word(MOFED(f.Kmod.Stack.MOFED))
		return text, unknown && f.Kmod.Stack.MOFED.Origin != kmod.OriginNotLoaded
	}},
	{label.Rate, state, func(f *Facts) (string, bool) {
		if f.Verdict.Rate == nil {
			return "", f.Verdict.Open.Rate
		}
		return strconv.Itoa(*f.Verdict.Rate), false
	}},
	{label.Link, state, func(f *Facts) (string, bool) { return f.Verdict.Link, f.Verdict.Open.Link }},
	{label.IOMMU, state, func(f *Facts) (string, bool) { return f.Verdict.IOMMU, f.Verdict.Open.IOMMU }},
	{label.ACS, state, func(f *Facts) (string, bool) { return f.Verdict.ACS, f.Verdict.Open.ACS }},
	{label.Storage, state, func(f *Facts) (string, bool) { return answer(f.Kmod.Storage) }},
	{label.Expected, state, func(f *Facts) (string, bool) {
		if f.Expected == nil || f.Expected.NoType {
			return "", false
		}
		return answer(f.Expected.State)
	}},
}

// All names every label.
func All() label.Names {
	all := label.Names{}
	for _, row := range rows {
		all[row.name] = true
	}
	return all
}

// Hardware reports whether a label, its name without prefix, is about the hardware.
func Hardware(name string) bool {
	for _, row := range rows {
		if row.name == name {
			return row.kind == hardware
		}
	}
	return false
}

// HardwareOf returns the labels about the hardware.
func HardwareOf(labels label.Set) label.Set {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(name, _ string) bool { return !Hardware(name) })
	return out
}

// Labels returns the labels of a node, none at all where there is no NVIDIA GPU.
// unknown names those whose facts could not be read: they may be kept as they were
// last published.
func Labels(f *Facts) (labels label.Set, unknown label.Names) {
	labels, unknown = label.Set{}, label.Names{}
	switch {
	case !f.PCIRead, len(f.Matrix.GPUs) == 0 && !f.Matrix.Counted:
		unknown = All()
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

func answer(s tristate.State) (text string, unknown bool) {
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
