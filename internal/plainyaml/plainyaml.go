// Package plainyaml reads the plain part of YAML, as people write it by hand:
// mappings and lists by indentation, texts of one line, plain or in quotes, and
// [a, b]. What it takes has the same structure for every YAML parser, and every
// value is the text that stands there: 24.10 is no number, and off no boolean. The
// rest of YAML (anchors, tags, texts over several lines, mappings in braces,
// escapes) is an error that names the line.
//
// It is here because the libraries for all of YAML build their tables whenever a
// program starts that holds them: 0.1 ms and 40 page faults of a run that takes
// three, whether it reads YAML or not, and `make bench` holds a run to three times
// what reading the files costs. Nothing in it can grow beyond its input: there are
// no aliases.
package plainyaml

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxSize is the size of a text that is read, MaxDepth how deep it may nest.
const (
	MaxSize  = 256 << 10
	MaxDepth = 16
)

// Kind is what a Node is.
type Kind uint8

// Kinds of nodes. Null is a value that is not there.
const (
	Null Kind = iota
	Text
	List
	Map
)

// Node is a value.
type Node struct {
	Kind Kind
	// Line is where it begins, from 1.
	Line int
	// Text is a text without its quotes. 24.10 and true are texts too.
	Text string
	// Items are those of a List.
	Items []Node
	// Entries are those of a Map, in their order; no key is there twice.
	Entries []Entry
}

// Entry is a key with its value.
type Entry struct {
	Key   string
	Line  int
	Value Node
}

// Error is what is wrong with a line.
type Error struct {
	Line int
	What string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }

func wrong(line int, format string, args ...any) error {
	return &Error{line, fmt.Sprintf(format, args...)}
}

// line is one that says something, without its indentation.
type line struct {
	number, indent int
	text           string
}

// item tells a line that begins an item of a list.
func (l line) item() bool { return l.text == "-" || strings.HasPrefix(l.text, "- ") }

type parser struct {
	lines []line
	next  int
}

// Parse reads a text. An empty one gives a Null.
func Parse(text []byte) (Node, error) {
	lines, err := split(text)
	if err != nil || len(lines) == 0 {
		return Node{Line: 1}, err
	}
	p := parser{lines: lines}
	root, err := p.block(lines[0].indent, 1)
	if err == nil && p.next < len(p.lines) {
		err = p.misplaced()
	}
	return root, err
}

// split gives the lines that are neither empty nor comments.
func split(text []byte) ([]line, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("larger than %d bytes", MaxSize)
	}
	var lines []line
	number, begun := 0, false
	for whole := range strings.SplitSeq(string(text), "\n") {
		number++
		whole = strings.TrimRight(strings.TrimSuffix(whole, "\r"), " ")
		said := strings.TrimLeft(whole, " ")
		comment := strings.HasPrefix(said, "#")
		if comment {
			whole = strings.ReplaceAll(whole, "\t", " ")
		}
		if at := strings.IndexFunc(whole, unprintable); at >= 0 && whole[at] == '\t' {
			return nil, wrong(number, "a tab; indent and separate with spaces")
		} else if at >= 0 {
			return nil, wrong(number, "a character that cannot be printed, or is no UTF-8")
		}
		if comment || said == "" {
			continue
		}
		if said == "---" && whole == said && len(lines) == 0 && !begun {
			begun = true // a second one would begin another document
			continue
		}
		lines = append(lines, line{number, len(whole) - len(said), said})
	}
	return lines, nil
}

// unprintable tells control characters, line breaks that only some parsers know,
// the byte order mark, and what is no UTF-8.
func unprintable(r rune) bool {
	switch {
	case r < ' ', r == 0x7f, 0x80 <= r && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == utf8.RuneError, r == 0xfffe, r == 0xffff:
		return true
	}
	return false
}

// block reads the lines of one indentation: a list, a mapping, or a single text.
func (p *parser) block(indent, depth int) (Node, error) {
	first := p.lines[p.next]
	if depth > MaxDepth {
		return Node{}, wrong(first.number, "nested deeper than %d", MaxDepth)
	}
	if first.item() {
		return p.list(indent, depth)
	}
	return p.mapping(indent, depth)
}

// list reads the items that begin at an indentation.
func (p *parser) list(indent, depth int) (Node, error) {
	out := Node{Kind: List, Line: p.lines[p.next].number}
	for p.next < len(p.lines) {
		l := &p.lines[p.next]
		if l.indent != indent || !l.item() {
			break
		}
		content := strings.TrimLeft(l.text[1:], " ")
		if uncomment(content) == "" {
			p.next++
			value, err := p.below(l, indent+1, depth)
			if err != nil {
				return out, err
			}
			out.Items = append(out.Items, value)
			continue
		}
		if (line{text: content}).item() {
			return out, wrong(l.number, "a list in a list")
		}
		value, err := p.item(l, content, depth)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, value)
	}
	return out, nil
}

// item reads an item that begins in its line: a text, or a mapping whose further
// keys stand below the first.
func (p *parser) item(l *line, content string, depth int) (Node, error) {
	if _, _, ok := cutKey(content); ok {
		l.indent += len(l.text) - len(content)
		l.text = content
		return p.block(l.indent, depth+1)
	}
	p.next++
	return value(l.number, content)
}

// mapping reads the keys that begin at an indentation.
func (p *parser) mapping(indent, depth int) (Node, error) {
	out := Node{Kind: Map, Line: p.lines[p.next].number}
	lines := map[string]int{}
	for p.next < len(p.lines) {
		l := &p.lines[p.next]
		if l.indent != indent || l.item() {
			break
		}
		key, rest, ok := cutKey(l.text)
		if !ok {
			return out, wrong(l.number, "%q is not key: value; keys are letters, digits and dashes, 128 at most, and a space follows the colon", shorten(l.text))
		}
		if before := lines[key]; before != 0 {
			return out, wrong(l.number, "%s is there already, in line %d", key, before)
		}
		lines[key] = l.number
		p.next++
		var v Node
		var err error
		if uncomment(rest) != "" {
			v, err = value(l.number, rest)
		} else {
			v, err = p.below(l, indent, depth)
		}
		if err != nil {
			return out, err
		}
		out.Entries = append(out.Entries, Entry{key, l.number, v})
	}
	if len(out.Entries) == 0 {
		return out, p.misplaced()
	}
	return out, p.tooDeep(indent)
}

// below reads what stands under a line that says nothing else: deeper lines, or
// a list from an indentation on.
func (p *parser) below(above *line, list, depth int) (Node, error) {
	if p.next < len(p.lines) {
		if l := p.lines[p.next]; l.indent > above.indent || l.indent >= list && l.item() {
			return p.block(l.indent, depth+1)
		}
	}
	return Node{Line: above.number}, nil
}

// tooDeep finds a line that is deeper than those of its block.
func (p *parser) tooDeep(indent int) error {
	if p.next < len(p.lines) && p.lines[p.next].indent > indent {
		return p.misplaced()
	}
	return nil
}

func (p *parser) misplaced() error {
	l := p.lines[p.next]
	return wrong(l.number, "%q is not indented like a line above it that it could belong to", shorten(l.text))
}

// cutKey takes "key:" off a line.
func cutKey(text string) (key, rest string, ok bool) {
	key, rest, ok = strings.Cut(text, ":")
	if !ok || rest != "" && rest[0] != ' ' || key == "" || len(key) > maxKey || key[0] == '-' || strings.Trim(key, keyChars) != "" {
		return "", "", false
	}
	return key, strings.TrimLeft(rest, " "), true
}

// maxKey is the length of a key: YAML's own limit is 1024, for all that stands before
// the colon.
const maxKey = 128

const keyChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// uncomment gives "" for a comment.
func uncomment(rest string) string {
	if strings.HasPrefix(rest, "#") {
		return ""
	}
	return rest
}

// shorten keeps messages readable.
func shorten(text string) string {
	const most = 40
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "..."
	}
	return text
}
