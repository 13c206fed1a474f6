// Package nodelabel has the labels of a node: the table of their values, and which of them are
// published while the node changes. It is pure.
package nodelabel

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/expect"
	"gdr-features/internal/label"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// facts are what labels follow from.
type facts struct {
	*verdict.Node
	// expected is how the machine compares with what is expected of it; nil without
	// expectations.
	expected *expect.Result
}

// row is one label or, with families in place of value, one for each family of GPUs or
// NICs. The value is "" for no label. It is unknown if a fact that it depends on could not
// be read.
type row struct {
	name     string // without prefix; the name of a family is added to one that ends in a dot
	hardware bool   // it may change only when the hardware changes; others follow drivers and links
	value    func(*facts) (text string, unknown bool)
	families func(*facts) (known, here []string)
}

// each calls set for every label of the row. A family that was not found may be there where
// some function could not be identified.
func (r *row) each(f *facts, set func(name, text string, unknown bool)) {
	if r.families == nil {
		text, unknown := r.value(f)
		set(r.name, text, unknown)
		return
	}
	known, here := r.families(f)
	for _, family := range known {
		set(r.name+family, "", !f.Matrix.Complete && !slices.Contains(here, family))
	}
	for _, family := range here {
		set(r.name+family, "true", false)
	}
}

// rows holds every label.
var rows = [...]row{
	{name: label.Capable, hardware: true, value: func(f *facts) (string, bool) {
		return answer(f.Verdict.Capable, !f.notJudged())
	}},
	{name: label.ConnectX, hardware: true, value: func(f *facts) (string, bool) {
		return answer(f.Verdict.ConnectX, f.Verdict.Undecided.ConnectX)
	}},
	{name: "gdr.gpu.", hardware: true, families: (*facts).gpuFamilies},
	{name: "gdr.nic.", hardware: true, families: (*facts).nicFamilies},
	{name: label.Level, hardware: true, value: func(f *facts) (string, bool) {
		return word(f.Matrix.Hardware.Level.String(), f.mayHavePairs())
	}},
	{name: label.BestLevel, hardware: true, value: func(f *facts) (string, bool) {
		return word(f.Matrix.Best.String(), f.mayHavePairs())
	}},
	{name: label.NCCLDefault, hardware: true, value: func(f *facts) (string, bool) {
		return answer(f.Matrix.Hardware.NCCLDefault, f.mayHavePairs())
	}},
	{name: label.GPUs, hardware: true, value: func(f *facts) (string, bool) { return f.count(f.Matrix.EligibleGPUs) }},
	{name: label.NICs, hardware: true, value: func(f *facts) (string, bool) { return f.count(f.Matrix.EligibleNICs) }},
	{name: label.Topology, hardware: true, value: func(f *facts) (string, bool) { return word(f.Matrix.Origin, true) }},
	{name: label.DataDirect, hardware: true, value: func(f *facts) (string, bool) {
		if f.Matrix.DataDirect {
			return "true", false
		}
		return "", !f.Matrix.Complete
	}},
	{name: label.Align, hardware: true, value: func(f *facts) (string, bool) {
		if !f.mayHavePairs() {
			return "", false
		}
		return word(f.Matrix.Align(&f.PCI, nil), true)
	}},

	{name: label.Ready, value: func(f *facts) (string, bool) {
		return answer(f.Verdict.Ready, !f.known())
	}},
	{name: label.Reason, value: func(f *facts) (string, bool) {
		return string(f.Verdict.Reason), f.Verdict.Ready == tristate.Unknown && !f.known()
	}},
	{name: label.Peermem, value: func(f *facts) (string, bool) { return answer(f.Verdict.Peermem, f.mayHavePairs()) }},
	{name: label.DMABuf, value: func(f *facts) (string, bool) { return answer(f.Verdict.DMABuf, f.mayHavePairs()) }},
	{name: label.PeerDirect, value: func(f *facts) (string, bool) { return word(f.PeerDirect(), true) }},
	{name: label.MOFED, value: func(f *facts) (string, bool) {
		return word(MOFED(f.Kmod.MOFED), f.Kmod.MOFED.Origin != kmod.OriginNotLoaded)
	}},
	{name: label.Rate, value: func(f *facts) (string, bool) {
		if f.Verdict.Rate == nil {
			return "", f.Verdict.Undecided.Rate
		}
		return strconv.Itoa(*f.Verdict.Rate), false
	}},
	{name: label.Link, value: func(f *facts) (string, bool) { return f.Verdict.Link, f.Verdict.Undecided.Link }},
	{name: label.IOMMU, value: func(f *facts) (string, bool) { return f.Verdict.IOMMU, f.Verdict.Undecided.IOMMU }},
	{name: label.ACS, value: func(f *facts) (string, bool) { return f.Verdict.ACS, f.Verdict.Undecided.ACS }},
	{name: label.Storage, value: func(f *facts) (string, bool) {
		cuda := func(gpu topology.GPU) bool { return gpu.GPU.CUDA } // GPUDirect Storage is for these, eligible or not
		if !slices.ContainsFunc(f.Matrix.GPUs, cuda) {
			return "", !f.Matrix.Complete
		}
		return answer(f.Kmod.Storage, true)
	}},
	{name: label.Expected, value: func(f *facts) (string, bool) {
		if f.expected == nil || f.expected.NoType {
			return "", false
		}
		return answer(f.expected.State, true)
	}},
	{name: label.Degraded, value: func(f *facts) (string, bool) {
		if !f.mayHavePairs() || f.Verdict.Capable == tristate.False {
			return "", false
		}
		// Else a true from before a driver was loaded would stay for ever.
		return answer(f.Verdict.Degraded, !f.Verdict.Hidden)
	}},
}

// All returns the names of all labels, with those of the given families.
func All(families family.Table) label.Names {
	all := label.Names{}
	for _, row := range rows {
		if row.families == nil {
			all[row.name] = true
			continue
		}
		known, _ := row.families(&facts{Node: &verdict.Node{Families: families}})
		for _, family := range known {
			all[row.name+family] = true
		}
	}
	return all
}

// Hardware reports whether a label, its name without prefix, is about the hardware.
func Hardware(name string) bool {
	for _, row := range rows {
		if name == row.name || row.families != nil && strings.HasPrefix(name, row.name) {
			return row.hardware
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

// Of returns the labels of a node, none at all where there is no GPU.
// unknown names those whose facts could not be read: they may be kept as they were
// last published. expected is how the node compares with what is expected of it; nil
// without expectations.
func Of(node *verdict.Node, expected *expect.Result) (labels label.Set, unknown label.Names) {
	f := &facts{node, expected}
	labels, unknown = label.Set{}, label.Names{}
	if !f.PCIRead || len(f.Matrix.GPUs) == 0 && !f.Matrix.Complete {
		unknown = All(f.Families)
	}
	if len(f.Matrix.GPUs) == 0 {
		return labels, unknown
	}
	for i := range rows {
		rows[i].each(f, func(name, text string, open bool) {
			if text = label.Value(text); text != "" {
				labels[name] = text
			}
			if open {
				unknown[name] = true
			}
		})
	}
	return labels, unknown
}

// gpuFamilies are the families that count, and those of the eligible GPUs.
func (f *facts) gpuFamilies() (known, here []string) {
	for _, family := range f.Families.GPUs {
		known = append(known, family.Name)
	}
	for _, gpu := range f.Matrix.GPUs {
		if gpu.Counts() {
			here = append(here, gpu.GPU.Name)
		}
	}
	return known, here
}

// nicFamilies are the families that count, and those of the eligible NICs, judged by their
// PCI functions alone.
func (f *facts) nicFamilies() (known, here []string) {
	for _, nic := range f.Matrix.NICs {
		if fn := nic.Function; fn != nil && fn.NICEligible() {
			here = append(here, fn.NIC.Name)
		}
	}
	return family.Names(f.Families.NICs), here
}

// answer makes a label of a state. Without keep none is kept where it is unknown.
func answer(s tristate.State, keep bool) (text string, unknown bool) {
	if s == tristate.Unknown {
		return "", keep
	}
	return s.String(), false
}

// word is answer for a text, "" for unknown.
func word[T ~string](text T, keep bool) (string, bool) { return string(text), text == "" && keep }

// notJudged reports whether every function was read and the only NICs are those that are not
// judged. No label that says otherwise is kept then: what it said was about other NICs, or that
// there was none.
func (f *facts) notJudged() bool {
	return f.Verdict.Reason == verdict.NICNotJudged && f.Matrix.Complete
}

// known: that readiness is unknown rests on facts that were read, so no published label is kept.
func (f *facts) known() bool { return f.notJudged() || f.Verdict.Doubted() }

func (f *facts) count(n int) (text string, unknown bool) {
	if !f.Matrix.Complete {
		return "", true
	}
	return strconv.Itoa(n), false
}

// mayHavePairs reports whether there is an eligible GPU with an eligible NIC, as far
// as is known.
func (f *facts) mayHavePairs() bool {
	return !f.Matrix.Complete || f.Matrix.EligibleGPUs > 0 && f.Matrix.EligibleNICs > 0
}

// MOFED is the version of MOFED, "inbox" for a kernel's own drivers, "" when
// neither is known.
func MOFED(m kmod.MOFED) string {
	switch m.Origin {
	case kmod.OriginMOFED:
		return m.Version
	case kmod.OriginInbox:
		return "inbox"
	default:
		return ""
	}
}
