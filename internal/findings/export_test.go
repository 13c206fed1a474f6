package findings

import (
	"slices"

	"gdr-features/internal/finding"
)

// Listed reports whether a finding's code is among those that its check lists.
func Listed(f *finding.Finding) bool {
	all := slices.Concat(prerequisites, advice, []check{expectedCheck})
	i := slices.IndexFunc(all, func(c check) bool { return c.Name == f.Check })
	return i >= 0 && (f.Code == "" || slices.Contains(all[i].Codes, f.Code))
}
