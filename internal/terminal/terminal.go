// Package terminal breaks lines for terminals: a line that is too long goes on below the
// beginning of its last column, not at the left edge, and commands are not broken, so that they
// can be copied. It colors how checks ended. Files and pipes get lines as they are.
package terminal

import (
	"io"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// narrowest is the narrowest terminal for which lines are broken: others have no room.
const narrowest = 20

// Writer breaks lines at a width.
type Writer struct {
	to    io.Writer
	width int
	color bool
	line  string // that has no end yet
}

// NewWriter returns a writer that breaks lines at a width in columns, and none at a width of
// 0, which stands for no terminal. Close writes what is left.
func NewWriter(to io.Writer, width int) *Writer { return &Writer{to: to, width: width} }

// Colored makes a writer color how checks ended, if it should. It returns the writer.
func (w *Writer) Colored(color bool) *Writer {
	w.color = color
	return w
}

// Columns returns the width of the terminal that a writer writes to, 0 for none.
func Columns(w io.Writer) int {
	if t, ok := w.(*Writer); ok && t.width >= narrowest {
		return t.width
	}
	return 0
}

// Write implements io.Writer.
func (w *Writer) Write(text []byte) (int, error) {
	if w.width < narrowest && !w.color {
		return w.to.Write(text)
	}
	lines := w.line + string(text)
	whole := 1 + strings.LastIndexByte(lines, '\n')
	w.line = lines[whole:]
	if whole == 0 {
		return len(text), nil
	}
	if _, err := io.WriteString(w.to, w.shown(lines[:whole])); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Close writes a last line without end. It does not close what it writes to.
func (w *Writer) Close() error {
	if w.line == "" {
		return nil
	}
	_, err := io.WriteString(w.to, w.shown(w.line))
	w.line = ""
	return err
}

func (w *Writer) shown(text string) string {
	if w.width >= narrowest {
		text = broken(text, w.width)
	}
	if w.color {
		text = paint(text)
	}
	return text
}

// broken breaks the lines of a text that are wider than a number of columns.
func broken(text string, width int) string {
	var out strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		body, end := strings.CutSuffix(line, "\n")
		out.WriteString(breakLine(body, width))
		if end {
			out.WriteByte('\n')
		}
	}
	return out.String()
}

func breakLine(line string, width int) string {
	if displaywidth.String(line) <= width {
		return spaced(line)
	}
	at := lastColumn(line, width/2)
	indent := displaywidth.String(line[:at])
	return spaced(line[:at] + strings.Join(words(line[at:], width-indent), "\n"+strings.Repeat(" ", indent)))
}

// words breaks a text into lines at spaces, which it drops there, and within words that are longer
// than a line. A line has room for any character, so that each is cut. Hyphens stay, as in the names of modules and flags.
func words(text string, width int) (lines []string) {
	line, used := "", 0
	for text != "" {
		spaces := len(text) - len(strings.TrimLeft(text, " "))
		word, rest := text[spaces:], ""
		if end := strings.IndexByte(word, ' '); end >= 0 {
			word, rest = word[:end], word[end:]
		}
		wide := displaywidth.String(word)
		if used > 0 && used+spaces+wide > width {
			lines = append(lines, line)
			line, used, spaces = "", 0, 0
		}
		line, used, text = line+strings.Repeat(" ", spaces)+word, used+spaces+wide, rest
		for used > width && line != "" && !strings.Contains(line, tie) { // what is joined may be narrower than its parts
			head := displaywidth.TruncateString(line, width, "")
			lines = append(lines, head)
			line = line[len(head):]
			used -= displaywidth.String(head)
		}
	}
	return append(lines, strings.TrimRight(line, " "))
}

// lastColumn returns where the last column of a line begins that is not farther right than
// a number of columns: after two spaces or more, or after those that the line begins with.
func lastColumn(line string, farthest int) (at int) {
	spaces, wide, measured := 2, 0, 0
	for i := range len(line) {
		if line[i] == ' ' {
			spaces++
			continue
		}
		if spaces >= 2 {
			wide, measured = wide+displaywidth.String(line[measured:i]), i
			if wide > farthest {
				break
			}
			at = i
		}
		spaces = 0
	}
	return at
}
