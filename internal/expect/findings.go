package expect

import (
	"fmt"

	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Findings turns the result into findings of check: a line for each deviation and
// for what is unknown, or one for a machine that is as expected.
func (r *Result) Findings() []verdict.Finding {
	if r.Type == "" {
		out := verdict.Finding{
			Check: "expected", Status: verdict.Undecidable, Code: verdict.NoMachineType, Detail: "no machine type of the file matches: " + r.Machine,
			Fix:     "add a type to the file that matches this machine, or correct the match of its type",
			Sources: []string{"/sys/class/dmi/id", pciDevices},
		}
		if !r.NoType {
			out.Detail = "which machine type of the file this is cannot be told: " + r.Machine
			out.Code, out.Fix = verdict.Code(verdict.Unreadable), "see what could not be read; or match by something else"
		}
		return []verdict.Finding{out}
	}
	var all []verdict.Finding
	for _, c := range r.Checks {
		out := verdict.Finding{Check: "expected", Status: verdict.Fail, Code: verdict.Deviation, Detail: r.Type + ": " + c.Expected + " expected, " + c.Found + " found", Fix: c.Fix, Sources: c.Sources}
		switch c.State {
		case tristate.True:
			continue
		case tristate.Unknown:
			out.Status, out.Code = verdict.Undecidable, verdict.Code(verdict.Unreadable)
			out.Detail, out.Fix = r.Type+": "+c.Expected+" expected, and not known", ""
		case tristate.False:
		}
		all = append(all, out)
	}
	if len(all) > 0 {
		return all
	}
	return []verdict.Finding{{
		Check: "expected", Status: verdict.OK, Detail: fmt.Sprintf("%s: as expected (%d of %d)", r.Type, len(r.Checks), len(r.Checks)),
		Sources: []string{pciDevices},
	}}
}
