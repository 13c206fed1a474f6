// Package printable makes text fit to be shown. What a machine, a server or a file
// says may hold anything.
package printable

import (
	"strings"
	"unicode"
)

// Text is a text without what would act on a terminal or break a line: "?" stands
// for each such character.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
