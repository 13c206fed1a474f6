package findings

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/tristate"
)

// words are a text about a machine.
type words func(*Facts) string

// say is a text with %s in place of its parts.
func say(format string, parts ...words) words {
	return func(f *Facts) string {
		texts := make([]any, len(parts))
		for i, part := range parts {
			texts[i] = part(f)
		}
		return fmt.Sprintf(format, texts...)
	}
}

func (w words) of(f *Facts) string {
	if w == nil {
		return ""
	}
	return w(f)
}

// which names what the row is about.
func which(f *Facts) string { return firstFew(f.about.names) }

// texts returns a text for each element of a list.
func texts[T any](list []T, text func(T) string) []string {
	var all []string
	for _, element := range list {
		all = append(all, text(element))
	}
	return all
}

// choose returns one of three texts.
func choose(state tristate.State, yes, no, unknown string) string {
	switch state {
	case tristate.True:
		return yes
	case tristate.False:
		return no
	case tristate.Unknown:
	}
	return unknown
}

// firstFew lists the first of many and counts the rest.
func firstFew(list []string) string {
	const few = 3
	if len(list) <= few {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), len(list)-few)
}

// Conditions of rows.

func is(ask func(*Facts) tristate.State, want tristate.State) func(*Facts) bool {
	return func(f *Facts) bool { return ask(f) == want }
}

// all conditions hold; nil always does.
func all(conditions ...func(*Facts) bool) func(*Facts) bool {
	return func(f *Facts) bool {
		return !slices.ContainsFunc(conditions, func(holds func(*Facts) bool) bool { return holds != nil && !holds(f) })
	}
}

func not(condition func(*Facts) bool) func(*Facts) bool {
	return func(f *Facts) bool { return !condition(f) }
}

// under returns the rows with one more condition, and with evidence that all of them have;
// nil for none.
func under(condition func(*Facts) bool, common evidence, rows []row) []row {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].when, rows[i].evidence = all(condition, rows[i].when), join(common, rows[i].evidence)
	}
	return rows
}
