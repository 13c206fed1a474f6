// Package yamltree reads YAML as a tree of texts with their lines, for files that
// people write by hand and whose errors should name a line. It adds to the parser it
// uses what a file of settings has no need for and is refused: several documents,
// anchors and aliases (so nothing can grow beyond its input), tags, merge keys.
package yamltree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
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
	// Text is a text without its quotes. 24.10 and true are texts
	// too.
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

// Parse reads a text. An empty one gives a Null. Every error is one line.
func Parse(text []byte) (Node, error) {
	root := Node{Line: 1}
	if len(text) > MaxSize {
		return root, fmt.Errorf("larger than %d bytes", MaxSize)
	}
	if err := printable(text); err != nil {
		return root, err
	}
	var document, second yaml.Node
	in := yaml.NewDecoder(bytes.NewReader(text))
	if err := in.Decode(&document); err != nil {
		return root, located(err, text)
	}
	if err := in.Decode(&second); err == nil {
		return root, wrong(second.Line, "a second document; put all into the first")
	} else if !errors.Is(err, io.EOF) {
		return root, located(err, text)
	}
	return tree(&document, 0)
}

// printable refuses what cannot be seen in an editor.
func printable(text []byte) error {
	for i, l := range bytes.Split(text, []byte("\n")) {
		if !utf8.Valid(l) {
			return wrong(i+1, "no UTF-8")
		}
		for _, r := range string(bytes.TrimSuffix(l, []byte("\r"))) {
			switch {
			case r == '\t':
				return wrong(i+1, "a tab; indent and separate with spaces")
			case !unicode.IsPrint(r):
				return wrong(i+1, "a character that cannot be printed")
			}
		}
	}
	return nil
}

const foreign = "anchors, aliases and tags are not for this file"

// fromZero are the errors whose lines the parser counts from 0, and leaves that one
// out; in the others it counts from 1.
var fromZero = []string{"expected key", "expected ',' or ']'", "expected ',' or '}'", "expected '-' indicator", "expected node content", "expected <document start>"}

// located makes one line of the parser's error, which has the line in it. That there
// is nothing at all is none.
func located(err error, text []byte) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	what, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), "\n")
	if strings.HasPrefix(what, "unknown anchor") { // which has no line
		return errors.New(foreign)
	}
	line := 0
	if number, rest, ok := strings.Cut(strings.TrimPrefix(what, "line "), ": "); ok {
		if n, err := strconv.Atoi(number); err == nil {
			line, what = n, rest
		}
	}
	if line == 0 || slices.ContainsFunc(fromZero, func(s string) bool { return strings.HasSuffix(what, s) }) {
		line++
	}
	last := 1 + bytes.Count(bytes.TrimRight(text, "\r\n"), []byte("\n"))
	return wrong(min(line, last), "%s; a text that begins with a sign (>) or holds a colon must be in quotes", what)
}

// tree turns a node of the parser into ours.
func tree(n *yaml.Node, depth int) (Node, error) {
	out := Node{Line: max(1, n.Line)}
	switch {
	case depth > MaxDepth:
		return out, wrong(out.Line, "nested deeper than %d", MaxDepth)
	case n.Kind == yaml.AliasNode, n.Anchor != "", n.Style&yaml.TaggedStyle != 0:
		return out, wrong(out.Line, foreign)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return tree(n.Content[0], depth+1)
	case yaml.ScalarNode:
		if n.Value != "" || n.Style != 0 {
			out.Kind, out.Text = Text, n.Value
		}
	case yaml.SequenceNode:
		out.Kind = List
		for _, item := range n.Content {
			value, err := tree(item, depth+1)
			if err != nil {
				return out, err
			}
			out.Items = append(out.Items, value)
		}
	case yaml.MappingNode:
		return mapping(out, n.Content, depth)
	case yaml.AliasNode:
	}
	return out, nil
}

// mapping adds keys and values, which follow each other.
func mapping(out Node, content []*yaml.Node, depth int) (Node, error) {
	out.Kind = Map
	lines := map[string]int{}
	for ; len(content) > 1; content = content[2:] {
		key, err := tree(content[0], depth+1)
		if err != nil {
			return out, err
		}
		if key.Kind != Text || content[0].Tag == "!!merge" {
			return out, wrong(key.Line, "a key that is no text")
		}
		if before := lines[key.Text]; before != 0 {
			return out, wrong(key.Line, "%s is there already, in line %d", key.Text, before)
		}
		lines[key.Text] = key.Line
		value, err := tree(content[1], depth+1)
		if err != nil {
			return out, err
		}
		out.Entries = append(out.Entries, Entry{key.Text, key.Line, value})
	}
	return out, nil
}
