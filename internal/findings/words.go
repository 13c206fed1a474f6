package findings

import (
	"fmt"
	"strings"

	"gdr-features/tristate"
)

// words are a text about a machine.
type words func(*Facts) string

// say is a text with %s in place of its parts.
func say(format string, parts ...words) words {
	if len(parts) == 0 {
		return func(*Facts) string { return format }
	}
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
func which(f *Facts) string { return firstFew(f.which) }

// firstFew lists the first of many and counts the rest.
func firstFew(list []string) string {
	const few = 3
	if len(list) <= few {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), len(list)-few)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Conditions of rows.

func is(ask func(*Facts) tristate.State, want tristate.State) func(*Facts) bool {
	return func(f *Facts) bool { return ask(f) == want }
}

func all(conditions ...func(*Facts) bool) func(*Facts) bool {
	return func(f *Facts) bool {
		for _, holds := range conditions {
			if !holds(f) {
				return false
			}
		}
		return true
	}
}

func not(condition func(*Facts) bool) func(*Facts) bool {
	return func(f *Facts) bool { return !condition(f) }
}
