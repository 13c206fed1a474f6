// Package sanitize makes text from machines, servers and files safe to show.
package sanitize

import (
	"strings"
	"unicode"
)

// Terminal replaces characters that act on a terminal or break a line with "?".
func Terminal(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// Errors returns the text of each error, safe for a terminal.
func Errors(errs []error) []string {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = Terminal(err.Error())
	}
	return texts
}
