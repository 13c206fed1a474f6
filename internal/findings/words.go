package findings

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/tristate"
)

// say is a text that is the same for every machine.
func say(text string) func(*judged) string { return func(*judged) string { return text } }

// do are steps, or alternatives, that are the same for every machine.
func do(steps ...string) func(*judged) []string { return func(*judged) []string { return steps } }

// steps leaves out those that do not apply here, which are "".
func steps(all ...string) []string {
	return slices.DeleteFunc(all, func(step string) bool { return step == "" })
}

// about names what the row is about.
func about(f *judged) string { return firstFew(f.about.names) }

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

// under returns the rows with one more condition, and with evidence that all of them have;
// nil for none.
func under(condition func(*judged) bool, common func(*judged) []string, rows []row) []row {
	rows = slices.Clone(rows)
	for i := range rows {
		r := rows[i]
		rows[i].when = func(f *judged) bool { return condition(f) && (r.when == nil || r.when(f)) }
		rows[i].evidence = func(f *judged) []string { return slices.Concat(of(common, f), of(r.evidence, f)) }
	}
	return rows
}
