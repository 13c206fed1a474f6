// Package reasons holds a page for every word that a finding of check can bear:
// what it means, how it shows, what to do, and what does not help.
package reasons

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed *.md
var pages embed.FS

const index = "README.md"

// Page returns the page of a token, in Markdown.
func Page(token string) (text string, ok bool) {
	name := token + ".md"
	if name == index {
		return "", false
	}
	page, err := pages.ReadFile(name)
	return string(page), err == nil
}

// Named returns the token that a text spells in any case, "" for none.
func Named(text string) string {
	for _, token := range Tokens() {
		if strings.EqualFold(token, text) {
			return token
		}
	}
	return ""
}

// Tokens lists the tokens that have a page, sorted.
func Tokens() []string {
	names, _ := fs.Glob(pages, "*.md") // the pattern is well formed
	tokens := make([]string, 0, len(names))
	for _, name := range names {
		if name != index {
			tokens = append(tokens, strings.TrimSuffix(name, ".md"))
		}
	}
	return tokens
}
