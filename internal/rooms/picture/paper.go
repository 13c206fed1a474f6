package picture

import (
	"io"
	"strings"

	"gdr-features/internal/sanitize"
)

// markup is text of this program. A constant becomes markup by itself, a string does not: code
// that writes a name from the machine as markup does not compile.
type markup string

func (m markup) cut(mark markup) (before, after markup) {
	head, tail, _ := strings.Cut(string(m), string(mark))
	return markup(head), markup(tail)
}

// paper is what is written on. Only put adds text to it. It writes markup as it is and
// escapes all else, so nothing that a machine says can become an element, an attribute,
// or a word of DOT.
//
// It stands in for html/template, with which the linker would have to keep every method
// of every type in the program.
type paper struct {
	text   *strings.Builder
	escape func(string) string
}

// put writes markup with an escaped value in place of each %s. That of a name from the
// machine stands between tags or between double quotes.
func (p paper) put(m markup, values ...string) {
	for _, value := range values {
		before, after := m.cut("%s")
		p.text.WriteString(string(before))
		p.text.WriteString(p.escape(value))
		m = after
	}
	p.text.WriteString(string(m))
}

func (p paper) putIf(m markup, value string) {
	if value != "" {
		p.put(m, value)
	}
}

// writeTo writes the text without control characters, which names may contain.
func (p paper) writeTo(w io.Writer) error {
	lines := strings.Split(p.text.String(), "\n")
	for i := range lines {
		lines[i] = sanitize.Terminal(lines[i])
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n"))
	return err
}
