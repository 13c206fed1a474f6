// Package yamlfile reads YAML files that administrators write. It is strict: keys that are
// unknown, given twice or without a value are errors, and so are anchors, aliases, merge keys
// and tags: without aliases what is read is no larger than the file.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"gdr-features/internal/sanitize"
)

// MaxSize is the size in bytes of the largest file that is read.
const MaxSize = 256 << 10

// Error is a mistake in a file. Line and Column (of characters) count from 1. The text is
// one line, to follow the name of the file and a colon.
type Error struct {
	Line, Column int
	Reason       string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason) }

// At adds the place of a node to an error that has none.
func At(n *yaml.Node, err error) error {
	if _, ok := errors.AsType[*yaml.LoadErrors](err); ok || err == nil {
		return err
	}
	mark := yaml.Mark{Line: n.Line, Column: n.Column}
	return &yaml.LoadErrors{Errors: []*yaml.LoadError{yaml.NewLoadError(yaml.ConstructorStage, err.Error(), mark, err)}}
}

// Decode reads one document; of an empty one nothing is read. The error is an *Error.
func Decode(text []byte, read Reader) error {
	if len(text) > MaxSize {
		return &Error{1, 1, fmt.Sprintf("larger than %d bytes", MaxSize)}
	}
	names := names{}
	document, err := parse(text)
	if err == nil && len(document.Content) > 0 && document.Content[0].ShortTag() != "!!null" {
		root := document.Content[0]
		if err = names.check(root, ""); err == nil {
			err = At(root, read(root))
		}
	}
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		return names.place(text, e)
	}
	return err
}

// Reader reads a value.
type Reader func(*yaml.Node) error

// Keys are those that a mapping may have, and what reads their values.
type Keys []struct {
	Name string
	Read Reader
}

// Mapping reads a mapping that may have some keys only, and has the required ones.
func Mapping(n *yaml.Node, keys Keys, required ...string) error {
	known := make([]string, len(keys))
	for i, key := range keys {
		known[i] = key.Name
	}
	if n.Kind != yaml.MappingNode {
		return At(n, fmt.Errorf("must be a mapping (key: value) with these keys: %s", strings.Join(known, ", ")))
	}
	given := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name, err := Text(key)
		if err != nil {
			return At(key, err)
		}
		k := slices.Index(known, name)
		if k < 0 {
			return At(key, fmt.Errorf("unknown key %s; known keys: %s", shown(name), strings.Join(known, ", ")))
		}
		if err := At(value, keys[k].Read(value)); err != nil {
			return err
		}
		given[name] = true
	}
	for _, name := range required {
		if !given[name] {
			return At(n, fmt.Errorf("the key %s is missing", name))
		}
	}
	return nil
}

// Each reads the items of a list that is not empty, or the one value in its place.
func Each(n *yaml.Node, read Reader) error {
	switch {
	case n.Kind != yaml.SequenceNode:
		return read(n)
	case len(n.Content) == 0:
		return errors.New("the list is empty")
	}
	for _, item := range n.Content {
		if err := At(item, read(item)); err != nil {
			return err
		}
	}
	return nil
}

// Text returns a text as it is written in the file: 24.10 and true are texts too.
func Text(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", errors.New("must be a text")
	}
	return n.Value, nil
}

// parse reads a text of at most one document.
func parse(text []byte) (*yaml.Node, error) {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	var document, second yaml.Node
	if err := loader.Load(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch err := loader.Load(&second); {
	case errors.Is(err, io.EOF):
		return &document, nil
	case err != nil:
		return nil, err
	}
	return nil, At(&second, errors.New("a second YAML document begins here; put everything into the first"))
}

// names has, for the line and column of each node, the key whose value it is or is part of.
type names map[[2]int]string

// check names a tree, and refuses keys without value or given twice, and unsupported syntax.
func (names names) check(n *yaml.Node, name string) error {
	names[[2]int{n.Line, n.Column}] = name
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "", n.Style&yaml.TaggedStyle != 0, n.ShortTag() == "!!merge":
		return At(n, errors.New("anchors (&), aliases (*), merge keys (<<) and tags (!) are not supported; a text that begins so must be in quotes"))
	case n.ShortTag() == "!!null":
		return At(n, errors.New("has no value"))
	case n.Value != sanitize.Terminal(n.Value):
		return At(n, errors.New("must be one line of printable characters"))
	case n.Kind != yaml.MappingNode:
		for _, item := range n.Content {
			if err := names.check(item, name); err != nil {
				return err
			}
		}
		return nil
	}
	lines := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if err := names.check(key, name); err != nil {
			return err
		}
		if before := lines[key.Value]; before != 0 {
			return At(key, fmt.Errorf("the key %s is already given in line %d", shown(key.Value), before))
		}
		lines[key.Value] = key.Line
		if err := names.check(value, key.Value); err != nil {
			return err
		}
	}
	return nil
}

// shown is a key as errors name it. A program that may read more than its user, as one run by
// sudo, does not print other files to him: no key of ours is written otherwise.
func shown(key string) string {
	if plain.MatchString(key) {
		return key
	}
	return "(not a plain word)"
}

var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z_-]{0,31}$`)

// place returns an error of the YAML library with its place and in our words.
func (names names) place(text []byte, e *yaml.LoadError) error {
	at, lines := e.Mark, lineBreak.Split(strings.TrimRight(string(text), "\r\n"), -1)
	switch {
	case at.Line == 0: // not UTF-8, or not text
		before := text[:min(at.Index, len(text))]
		at.Line, at.Column = 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n')
	case e.ContextMark.Line > 0 && (at.Line > len(lines) || e.ContextMsg == "while scanning a simple key"):
		at = e.ContextMark // where it begins, of what has no end
	}
	name := names[[2]int{at.Line, at.Column}]
	if last := len(lines); at.Line > last {
		at.Line, at.Column = last, 1+len(lines[last-1])
	}
	reason := sanitize.Terminal(e.Message)
	switch {
	case e.Stage == yaml.ConstructorStage:
		if name != "" {
			reason = shown(name) + ": " + reason
		}
	case wantsQuotes.MatchString(lines[at.Line-1]):
		reason += "; put the value in quotes"
	}
	return &Error{at.Line, at.Column, reason}
}

var lineBreak = regexp.MustCompile(`\r\n|[\r\n\x{85}\x{2028}\x{2029}]`)

// wantsQuotes finds a text that YAML reads as something else.
var wantsQuotes = regexp.MustCompile("[:-] +[>|*&!%@`]|: .*: ")
