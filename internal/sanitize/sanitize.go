// Package sanitize makes text fit to be shown. What a machine, a server or a file
// says may hold anything.
package sanitize

import (
	"strings"
	"unicode"
)

// Terminal is a text without what would act on a terminal or break a line: "?" stands
// for each such character.
func Terminal(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' { // as good as never
			return strings.Map(fit, s)
		}
	}
	return s
}

func fit(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return '?'
}

// Errors gives the text of each error, safe for a terminal.
func Errors(errs []error) []string {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = Terminal(err.Error())
	}
	return texts
}
