package snapshot

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const magic = "gdr-features snapshot 1"

// Text writes the tape, and makes sure that it can be read back: a machine may have
// more, or odder names, than is accepted from a stranger.
func (t *Tape) Text() ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var w bytes.Buffer
	fmt.Fprintln(&w, magic)
	for _, line := range t.Header {
		fmt.Fprintf(&w, "# %s\n", line)
	}
	fmt.Fprintln(&w)
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		t.nodes[name].write(&w, quoted("/"+name))
	}
	fmt.Fprintln(&w, "end")
	if _, err := Parse(w.String()); err != nil {
		return nil, fmt.Errorf("what was read cannot be kept: %w", err)
	}
	return w.Bytes(), nil
}

func (n *node) write(w *bytes.Buffer, name string) {
	if n.link.known {
		fmt.Fprintf(w, "%s -> %s\n", name, n.link.fault.or(quoted(n.link.value)))
	}
	if n.exists.known {
		word := "no"
		if n.exists.value {
			word = "yes"
		}
		fmt.Fprintf(w, "%s exists %s\n", name, n.exists.fault.or(word))
	}
	if n.dir.known {
		n.writeNames(w, name)
	}
	if n.open.known {
		n.content.write(w, name, n.open.fault)
	}
}

// or gives the word for a fault, or else a value.
func (f fault) or(value string) string {
	if f != "" {
		return "!" + string(f)
	}
	return value
}

func (n *node) writeNames(w *bytes.Buffer, name string) {
	if n.dir.fault != "" {
		fmt.Fprintf(w, "%s/ !%s\n", name, n.dir.fault)
		return
	}
	fmt.Fprintf(w, "%s/\n", name)
	for _, entry := range n.names.value {
		fmt.Fprintf(w, "- %s\n", quoted(entry))
	}
	switch {
	case !n.names.known:
		fmt.Fprintln(w, "...")
	case n.names.fault != "":
		fmt.Fprintf(w, "!%s\n", n.names.fault)
	}
}

func (c *content) write(w *bytes.Buffer, name string, open fault) {
	if open != "" {
		fmt.Fprintf(w, "%s !%s\n", name, open)
		return
	}
	data, whole := c.whole()
	complete := c.fault == "" && c.ended && c.end == c.last()
	if line, ok := oneLine(data); whole && complete && ok {
		fmt.Fprintf(w, "%s = %s\n", name, line)
		return
	}
	fmt.Fprintln(w, name)
	if whole && isText(data) {
		writeLines(w, data)
	} else {
		for _, p := range c.parts {
			p.write(w)
		}
	}
	c.writeEnd(w)
}

// writeEnd tells what is behind the last byte: nothing where that is the end.
func (c *content) writeEnd(w *bytes.Buffer) {
	if c.fault != "" {
		fmt.Fprintf(w, "!%s", c.fault)
		if c.failed != c.last() {
			fmt.Fprintf(w, " %x", c.failed)
		}
		fmt.Fprintln(w)
	}
	switch {
	case c.ended && (c.end != c.last() || c.fault != ""):
		fmt.Fprintf(w, ".%x\n", c.end)
	case !c.ended && c.fault == "":
		fmt.Fprintln(w, "...")
	}
}

func writeLines(w *bytes.Buffer, data []byte) {
	for line := range bytes.Lines(data) {
		text, newline := bytes.CutSuffix(line, []byte("\n"))
		mark := `\`
		if newline {
			mark = "|"
		}
		fmt.Fprintf(w, "%s%s\n", mark, text)
	}
}

func (p part) write(w *bytes.Buffer) {
	at := p.at
	for row := range slices.Chunk(p.data, 32) {
		fmt.Fprintf(w, ":%x %x\n", at, row)
		at += int64(len(row))
	}
}

// oneLine gives the text of a file that is one line, without the newline.
func oneLine(data []byte) (line string, ok bool) {
	text, newline := strings.CutSuffix(string(data), "\n")
	return text, newline && text != "" && isText(data) && !strings.Contains(text, "\n") && strings.Trim(text, " \t") == text
}

// isText accepts printable ASCII, tabs and newlines.
func isText(data []byte) bool {
	for _, b := range data {
		if (b < ' ' || b > '~') && b != '\t' && b != '\n' {
			return false
		}
	}
	return true
}

// quoted gives a name as it is where it cannot be taken for anything else.
func quoted(name string) string {
	if name == "" || name[0] == '"' || name[0] == '!' || strings.HasSuffix(name, "/") {
		return strconv.QuoteToASCII(name)
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return strconv.QuoteToASCII(name)
		}
	}
	return name
}
