// Package sanitize makes text safe to show. What a machine, a server or a file says
// may contain anything.
package sanitize

import (
	"strings"
	"unicode"
)

// Terminal replaces each character that would act on a terminal or break a line with
// "?".
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
