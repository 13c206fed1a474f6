package pod

import (
	"slices"

	"gdr-features/internal/finding"
)

// Listed reports whether a finding's code is among those that its check lists.
func Listed(f *finding.Finding) bool {
	i := slices.IndexFunc(checks, func(c check) bool { return c.Name == f.Check })
	return i >= 0 && (f.Code == "" || slices.Contains(checks[i].Codes, f.Code))
}
