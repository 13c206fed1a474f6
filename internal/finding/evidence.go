package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdr-features/tristate"
)

// Saw is one piece of evidence, "file=what it held".
func Saw(file, value string) string { return file + "=" + cmp.Or(value, "?") }

// SawFile is evidence of a file that exists or is missing.
func SawFile(file string, there tristate.State) string {
	return Saw(file, Choose(there, "present", "absent", ""))
}

// SawMissing is evidence of a file that is missing.
func SawMissing(file string) string { return SawFile(file, tristate.False) }

// Subjects are what a finding is about, with the evidence for it.
type Subjects struct{ Names, Evidence []string }

// Add adds one of them.
func (s *Subjects) Add(name string, evidence ...string) {
	s.Names, s.Evidence = append(s.Names, name), append(s.Evidence, evidence...)
}

// Any reports whether there are any.
func (s Subjects) Any() bool { return len(s.Names) > 0 }

// String names them, as a sentence does.
func (s Subjects) String() string { return FirstFew(s.Names) }

// FirstFew lists the first of many and counts the rest.
func FirstFew(list []string) string {
	const few = 3
	if len(list) <= few {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), len(list)-few)
}

// Map returns a text, or whatever else, for each element of a list.
func Map[T, R any](list []T, to func(T) R) []R {
	var all []R
	for _, element := range list {
		all = append(all, to(element))
	}
	return all
}

// Unique keeps each text once.
func Unique[S ~string](texts []S) []S {
	var all []S
	for _, text := range texts {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// Choose returns one of three texts.
func Choose(state tristate.State, yes, no, unknown string) string {
	switch state {
	case tristate.True:
		return yes
	case tristate.False:
		return no
	case tristate.Unknown:
	}
	return unknown
}
