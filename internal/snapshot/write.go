package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const magic = "gdr-features snapshot 1"

// Text writes the recording, and makes sure that it can be read back: a machine may
// have more files, or odder names, than Parse accepts.
func (r *Recording) Text() ([]byte, error) {
	var w bytes.Buffer
	fmt.Fprintln(&w, magic)
	for _, line := range r.Header {
		fmt.Fprintf(&w, "# %s\n", line)
	}
	fmt.Fprintln(&w)
	for _, q := range slices.SortedFunc(maps.Keys(r.answers), compareQuestions) {
		r.answers[q].write(&w, quoted("/"+q.name), q.kind)
	}
	fmt.Fprintln(&w, "end")
	if _, err := Parse(w.String()); err != nil {
		return nil, fmt.Errorf("what was read cannot be written: %w", err)
	}
	return w.Bytes(), nil
}

func (a *answer) write(w *bytes.Buffer, name string, k kind) {
	f := fault(a.err)
	switch {
	case k == exists && f == "":
		fmt.Fprintf(w, "%s exists yes\n", name)
	case k == exists && f == "ENOENT":
		fmt.Fprintf(w, "%s exists no\n", name)
	case f != "":
		form := map[kind]string{link: "%s -> !%s\n", exists: "%s exists !%s\n", list: "%s/ !%s\n", read: "%s !%s\n"}[k]
		fmt.Fprintf(w, form, name, f)
	case k == link:
		fmt.Fprintf(w, "%s -> %s\n", name, quoted(a.target))
	case k == list:
		a.writeNames(w, name)
	default:
		a.content.write(w, name)
	}
}

func (a *answer) writeNames(w *bytes.Buffer, name string) {
	fmt.Fprintf(w, "%s/\n", name)
	for _, entry := range a.names {
		fmt.Fprintf(w, "- %s\n", quoted(entry))
	}
	if errors.Is(a.listed, ErrNotRecorded) {
		fmt.Fprintln(w, "...")
	} else if a.listed != nil {
		fmt.Fprintf(w, "!%s\n", fault(a.listed))
	}
}

func (c *content) write(w *bytes.Buffer, name string) {
	data, whole := c.whole()
	complete := c.err == nil && c.ended && c.end == c.last()
	if line, ok := oneLine(data); whole && complete && ok {
		fmt.Fprintf(w, "%s = %s\n", name, line)
		return
	}
	fmt.Fprintln(w, name)
	if whole && isText(data) {
		writeLines(w, data)
	} else {
		for _, p := range c.parts {
			for row := range slices.Chunk(p.data, 32) {
				fmt.Fprintf(w, ":%x %x\n", p.at, row)
				p.at += int64(len(row))
			}
		}
	}
	if c.err != nil {
		fmt.Fprintf(w, "!%s", fault(c.err))
		if c.failed != c.last() {
			fmt.Fprintf(w, " %x", c.failed)
		}
		fmt.Fprintln(w)
	}
	switch {
	case c.ended && !complete:
		fmt.Fprintf(w, ".%x\n", c.end)
	case !c.ended && c.err == nil:
		fmt.Fprintln(w, "...")
	}
}

func writeLines(w *bytes.Buffer, data []byte) {
	for line := range bytes.Lines(data) {
		if text, newline := bytes.CutSuffix(line, []byte("\n")); newline {
			fmt.Fprintf(w, "|%s\n", text)
		} else {
			fmt.Fprintf(w, "\\%s\n", text)
		}
	}
}

// oneLine gives the text of a file that is one line, without the newline.
func oneLine(data []byte) (line string, ok bool) {
	text, newline := strings.CutSuffix(string(data), "\n")
	return text, newline && text != "" && isText(data) && !strings.Contains(text, "\n") && strings.Trim(text, " \t") == text
}

// isText accepts printable ASCII, tabs and newlines.
func isText(data []byte) bool {
	return !slices.ContainsFunc(data, func(b byte) bool { return (b < ' ' || b > '~') && b != '\t' && b != '\n' })
}

// quoted gives a name as it is, or quoted if it could be taken for something else.
func quoted(name string) string {
	odd := strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
	if odd || name == "" || name[0] == '"' || name[0] == '!' || strings.HasSuffix(name, "/") {
		return strconv.QuoteToASCII(name)
	}
	return name
}
