package features

import (
	"cmp"
	"slices"

	"gdr-features/internal/finding"
	"gdr-features/internal/report"
)

// Finding is the part of a finding that is published.
type Finding struct {
	Check  string
	Status finding.Status
	Code   finding.Code
}

// Wrong reports whether it says that something is wrong, and not that something is not known.
func (f Finding) Wrong() bool {
	return f.Status == finding.StatusFail || f.Status == finding.StatusWarn
}

// Findings are those of a report that are not OK, each once, in the order of check, code and status.
func Findings(r *report.Report) []Finding {
	all := []Finding{}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Status != finding.StatusOK {
			all = append(all, Finding{f.Check, f.Status, f.Code})
		}
	}
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Check, b.Check), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Status, b.Status))
	})
	return slices.Compact(all)
}
