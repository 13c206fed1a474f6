package findings

import (
	"fmt"

	"gdr-features/internal/expect"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// expected turns a comparison into findings: one for each deviation and for what is
// unknown, or one for a machine that is as expected.
func expected(r *expect.Result) []Finding {
	if r == nil || r.Machine == "" && r.Type == "" {
		return nil // nobody asks, or there is no file
	}
	if r.Type == "" {
		out := Finding{
			Check: "expected", Status: Undecidable, Code: NoMachineType, Detail: "no machine type of the file matches: " + r.Machine,
			Fix:     "add a type to the file that matches this machine, or correct the match of its type",
			Sources: []string{"/sys/class/dmi/id", pciDevices},
		}
		if !r.NoType {
			out.Detail = "which machine type of the file this is cannot be told: " + r.Machine
			out.Code, out.Fix = Code(verdict.Unreadable), "see what could not be read; or match by something else"
		}
		return []Finding{out}
	}
	var all []Finding
	for _, c := range r.Checks {
		out := Finding{Check: "expected", Status: Fail, Code: Deviation, Detail: r.Type + ": " + c.Expected + " expected, " + c.Found + " found", Fix: c.Fix, Sources: c.Sources}
		switch c.State {
		case tristate.True:
			continue
		case tristate.Unknown:
			out.Status, out.Code = Undecidable, Code(verdict.Unreadable)
			out.Detail, out.Fix = r.Type+": "+c.Expected+" expected, and not known", ""
		case tristate.False:
		}
		all = append(all, out)
	}
	if len(all) > 0 {
		return all
	}
	return []Finding{{
		Check: "expected", Status: OK, Detail: fmt.Sprintf("%s: as expected (%d of %d)", r.Type, len(r.Checks), len(r.Checks)),
		Sources: []string{pciDevices},
	}}
}
