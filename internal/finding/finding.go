// Package finding makes findings: what a check found, what to do about it, and the files it
// was read from. A check is one function, which says what it found: see Check and Said.
package finding

import (
	"strings"

	"gdr-features/verdict"
)

// Status is how a check ended.
type Status string

// Statuses of a check.
const (
	StatusOK      Status = "OK"
	StatusWarn    Status = "WARN"
	StatusFail    Status = "FAIL"
	StatusUnknown Status = "UNKNOWN"
)

// Code names what was found, as one stable word: the verdict's Reason, or a word
// that is more exact. Each has a page, docs/reasons/<Code>.md.
type Code string

// Unreadable is the code of what is unknown because a file cannot be read.
const Unreadable = Code(verdict.Unreadable)

// Finding is one check: what was looked at, what was found, what to do.
type Finding struct {
	Check  string
	Status Status
	// Reason is the verdict's word for a failed prerequisite, "" for others.
	Reason verdict.Reason
	// Code names what was found; "" only where Status is OK.
	Code Code
	// Detail is what was found, in one sentence.
	Detail string
	// Fix is what to do about it: steps, or alternatives, which begin with "or".
	Fix []string
	// Commands are those that the fix names, as they stand in it: they are not to be broken.
	Commands []string
	// Sources are the files it was read from. Evidence is what those that matter
	// held, "file=value".
	Sources, Evidence []string
}

// FixText is the fix in one line: the steps, with semicolons between them.
func (f *Finding) FixText() string { return strings.Join(f.Fix, "; ") }
