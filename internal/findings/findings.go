// Package findings says what check found: one finding for each check, with what to do about it
// and the files it was read from. It is pure.
//
// Each check is one function, which says what it found (package finding). A new finding is a
// case in such a function, a code in its check's list, and a page docs/reasons/<Code>.md.
package findings

import (
	"slices"

	"gdr-features/internal/expect"
	"gdr-features/internal/finding"
	"gdr-features/source/kmod"
	"gdr-features/source/platform"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// check is one function about a node.
type check = finding.Check[*judged]

// judged is what findings are made of.
type judged struct{ verdict.Pair }

// All returns the findings: the checks in the order of the verdict, those that advise, and how
// the machine compares with what is expected of it, nil without expectations.
func All(node *verdict.Node, expected *expect.Result) []finding.Finding {
	f := judgedOf(node)
	var all []finding.Finding
	for _, c := range append(f.checks(), expectations(expected)...) {
		if found, ok := c.Find(f, f.files); ok {
			all = append(all, found)
		}
	}
	return all
}

// HardwareAlone reports whether only the hardware is checked: nothing else matters where it is
// not capable, or not judged.
func HardwareAlone(node *verdict.Node) bool {
	return len(node.Matrix.GPUs) == 0 || node.Verdict.Capable == tristate.False ||
		judgedOf(node).stepReason("hardware") == verdict.NICNotJudged
}

// checks are those that apply to this machine.
func (f *judged) checks() []check {
	switch {
	case HardwareAlone(f.Node):
		return []check{hardware}
	case f.Kmod.Advice == nil:
		return slices.Clone(prerequisites)
	}
	return slices.Concat(prerequisites, advice)
}

// prerequisites are the checks of the verdict, in its order, and of what other labels tell.
var prerequisites = []check{
	hardware, gpuDriver, nicDriver, rdmaDevice, port, peermem,
	dmabuf, rdmaStack, level, ncclDefault, iommu, acs,
}

// advice are the checks that need kmod.Advice. One that says nothing gives no finding.
var advice = []check{
	nearPort, sharedNIC, operators, modules, nodeNetwork, verbsEntry, firmware, userSpace, dataDirect, bar,
	rootComplex, link, numa, storage, otherGPUs,
}

// Codes lists every code that a finding can have, each once.
func Codes() []finding.Code {
	var all []finding.Code
	for _, c := range slices.Concat(prerequisites, advice, []check{expectedCheck}) {
		all = append(all, c.Codes...)
	}
	return finding.Unique(all)
}

// CodesOf lists the codes that a check of this name may give; ok is false where there is none.
func CodesOf(name string) (codes []finding.Code, ok bool) {
	return finding.CodesOf(slices.Concat(prerequisites, advice, []check{expectedCheck}), name)
}

// files returns the files that a fact rests on. For a peer memory client these are the ones that
// decide; those of the IOMMU are in package platform.
func (f *judged) files(fact kmod.Fact) []string {
	switch fact {
	case verdict.FactPeermem:
		return f.Verdict.Client.Files
	case platform.FactIOMMU:
		return f.Platform.IOMMU.Files
	}
	return f.Kmod.Files[fact]
}
