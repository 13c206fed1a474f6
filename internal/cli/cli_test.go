package cli

import (
	"errors"
	"strings"
	"testing"
)

// An error is one line, whatever text it contains.
func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb":                    "gdr-features: a; b\n",
		"a\r\x1b[2Jb\u009b\u202e": "gdr-features: a??[2Jb??\n",
		"ä … 7 \"x\"":             "gdr-features: ä … 7 \"x\"\n",
	} {
		var out strings.Builder
		if oneLine(&out, errors.New(text)); out.String() != want {
			t.Errorf("%q: %q, want %q", text, out.String(), want)
		}
	}
}
