package findings

import (
	"gdr-features/internal/expect"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/tristate"
)

// expectedCheck is what --expect adds.
var expectedCheck = check{name: "expected", rows: []row{
	{
		status: Undecidable, code: "NoMachineType", when: func(f *judged) bool { return f.Expected.NoType },
		text: "no machine type of the file matches: {machine}",
		fix:  do("add a type to the file that matches this machine, or correct the match of its type"),
	}, {
		status: Undecidable, when: func(f *judged) bool { return f.Expected.Type == "" },
		text: "cannot determine which machine type applies: {machine}",
		fix:  do("see what could not be read, or match by other properties"),
	}, {
		status: Fail, code: "Deviation", when: func(f *judged) bool { return f.unmet != nil && f.unmet.State == tristate.False },
		text: "{expectedType}: {expected} expected, {found} found",
		fix:  func(f *judged) []string { return f.unmet.Fix },
	}, {
		status: Undecidable, when: func(f *judged) bool { return f.unmet != nil },
		text: "{expectedType}: {expected} expected, actual value unknown",
	}, {
		status: OK, text: "{expectedType}: as expected ({expectations} of {expectations})",
	},
}}

// expected compares the machine with what is expected of it: one finding for each
// expectation that is not proven to be met, or a single one if the machine is as
// expected.
func (f *judged) expected() []Finding {
	r := f.Expected
	switch {
	case r == nil, r.Type == "" && r.Machine == "": // without --expect
		return nil
	case r.Type == "":
		return f.expectation(nil, []string{platform.DMIDir, pci.Devices})
	}
	var all []Finding
	for i := range r.Checks {
		if c := &r.Checks[i]; c.State != tristate.True {
			all = append(all, f.expectation(c, c.Sources, c.Facts...)...)
		}
	}
	if len(all) == 0 {
		return f.expectation(nil, []string{pci.Devices})
	}
	return all
}

func (f *judged) expectation(unmet *expect.Check, sources []string, facts ...kmod.Fact) []Finding {
	about, c := *f, expectedCheck
	about.unmet, c.sources, c.facts = unmet, sources, facts
	judge := c.asCheck()
	found, _ := judge.Find(&about, f.files) // the last row always holds
	return []Finding{found}
}
