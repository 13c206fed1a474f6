package findings

import (
	"gdr-features/internal/expect"
	"gdr-features/internal/finding"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/tristate"
)

// expectedCheck is what --expect adds. Its sources differ from finding to finding.
var expectedCheck = check{Name: Expected, Codes: []finding.Code{"NoMachineType", finding.Unreadable, "Deviation"}}

// expectations are the checks of what is expected: one for each expectation that is not proven to
// be met, or a single one if the machine is as expected.
func expectations(r *expect.Result) (all []check) {
	switch {
	case r == nil, r.Type == "" && r.Machine == "": // without --expect
		return nil
	case r.Type == "":
		return []check{expectation(noType(r), []string{platform.DMIDir, pci.Devices})}
	}
	for i := range r.Checks {
		if c := &r.Checks[i]; c.State != tristate.True {
			all = append(all, expectation(deviation(r, c), c.Sources, c.Facts...))
		}
	}
	if len(all) == 0 {
		met := len(r.Checks)
		said := finding.OK("%s: as expected (%d of %d)", r.Type, met, met)
		return []check{expectation(said, []string{pci.Devices})}
	}
	return all
}

// noType says why no machine type applies.
func noType(r *expect.Result) finding.Said {
	if r.NoType {
		return finding.Unknown("no machine type of the file matches: %s", r.Machine).As("NoMachineType").
			Do("add a type to the file that matches this machine, or correct the match of its type")
	}
	return finding.Unknown("cannot determine which machine type applies: %s", r.Machine).
		Do("see what could not be read, or match by other properties")
}

// deviation says which expectation is not proven to be met.
func deviation(r *expect.Result, unmet *expect.Check) finding.Said {
	if unmet.State == tristate.False {
		return finding.Fail("Deviation", "%s: %s expected, %s found", r.Type, unmet.Expected, unmet.Found).
			Do(unmet.Fix...)
	}
	return finding.Unknown("%s: %s expected, actual value unknown", r.Type, unmet.Expected)
}

func expectation(said finding.Said, sources []string, facts ...kmod.Fact) check {
	c := expectedCheck
	c.Sources, c.Facts, c.Judge = sources, facts, func(*judged) finding.Said { return said }
	return c
}
