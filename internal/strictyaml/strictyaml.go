// Package strictyaml reads the YAML files that administrators write for this program.
// It is strict: a key that is unknown, given twice or without a value is an error with
// its line. Anchors, aliases and tags are errors too: they are not needed, and
// without aliases what is read cannot become larger than the file.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"gdr-features/internal/sanitize"
)

// MaxSize is the size in bytes of the largest file that is read.
const MaxSize = 256 << 10

// Error is a mistake in a line of a file. Lines count from 1.
type Error struct {
	Line int
	Err  error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// At adds the line of a node to an error that has none.
func At(n *yaml.Node, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{n.Line, err}
}

// Parse reads a file of one document. An empty one gives a null.
func Parse(text []byte) (*yaml.Node, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("larger than %d bytes", MaxSize)
	}
	document, err := decode(text)
	if err != nil {
		return nil, syntax(text, err)
	}
	if len(document.Content) == 0 {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: 1}, nil
	}
	root := document.Content[0]
	return root, check(root)
}

// decode reads a text of at most one document.
func decode(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return &document, nil
	case err != nil:
		return nil, err
	}
	return nil, errors.New("a second YAML document begins here; put everything into the first")
}

// syntax returns an error of the YAML library the line where it is, and a hint where
// quotes are missing. The library names the line where the block around the mistake
// begins, or none: the line is the one without which the lines before it are valid.
func syntax(text []byte, err error) error {
	lines := bytes.SplitAfter(text, []byte("\n"))
	at := sort.Search(len(lines)-1, func(n int) bool {
		_, err := decode(bytes.Join(lines[:n+1], nil))
		return err != nil
	})
	reason := strings.TrimPrefix(err.Error(), "yaml: ")
	if after, ok := strings.CutPrefix(reason, "line "); ok {
		_, reason, _ = strings.Cut(after, ": ")
	}
	reason = strings.ReplaceAll(reason, "\n", "; ")
	if _, value, ok := strings.Cut(strings.TrimSpace(string(lines[at])), ": "); ok && wantsQuotes(value) {
		reason += fmt.Sprintf("; put the value in quotes: \"%s\"", value)
	}
	return &Error{at + 1, errors.New(reason)}
}

// wantsQuotes reports whether a value is a text that YAML reads as something else.
func wantsQuotes(value string) bool {
	const longest = 64 // value worth showing
	return value != "" && len(value) <= longest && !strings.ContainsAny(value, `"\`) &&
		(strings.ContainsAny(value[:1], ">|*&!%@`") || strings.Contains(value, ": "))
}

// check refuses unsupported syntax and keys given twice, in a whole tree.
func check(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "":
		return At(n, errors.New("anchors (&) and aliases (*) are not supported; a text that begins so must be in quotes"))
	case n.Style&yaml.TaggedStyle != 0:
		return At(n, errors.New("tags (!) are not supported; a text that begins so must be in quotes"))
	}
	lines := map[string]int{}
	for i, child := range n.Content {
		if err := check(child); err != nil {
			return err
		}
		if n.Kind != yaml.MappingNode || i%2 != 0 {
			continue
		}
		if child.Kind != yaml.ScalarNode {
			return At(child, errors.New("a key must be a single word"))
		}
		if before := lines[child.Value]; before != 0 {
			return At(child, fmt.Errorf("%s: already given in line %d", child.Value, before))
		}
		lines[child.Value] = child.Line
	}
	return nil
}

// Keys are the keys that a mapping may have, each with the function that reads its
// value.
type Keys map[string]func(*yaml.Node) error

// Map reads a mapping. name is its name in errors; required are keys that must be
// present.
func Map(n *yaml.Node, name string, keys Keys, required ...string) error {
	known := slices.Sorted(maps.Keys(keys))
	if n.Kind != yaml.MappingNode {
		return At(n, fmt.Errorf("%s must be a mapping (key: value) with these keys: %s", name, strings.Join(known, ", ")))
	}
	given := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, ok := keys[key.Value]
		switch {
		case !ok:
			return At(key, fmt.Errorf("%s: unknown key in %s%s; known keys: %s", key.Value, name, suggest(key.Value, known), strings.Join(known, ", ")))
		case value.ShortTag() == "!!null":
			return At(key, fmt.Errorf("%s: has no value", key.Value))
		}
		if err := read(value); err != nil {
			return At(value, fmt.Errorf("%s: %w", key.Value, err))
		}
		given[key.Value] = true
	}
	for _, key := range required {
		if !given[key] {
			return At(n, fmt.Errorf("%s: the key %s is missing", name, key))
		}
	}
	return nil
}

// Items returns the items of a list that is not empty, or the one value in its place.
func Items(n *yaml.Node) ([]*yaml.Node, error) {
	switch {
	case n.Kind != yaml.SequenceNode:
		return []*yaml.Node{n}, nil
	case len(n.Content) == 0:
		return nil, errors.New("the list is empty")
	}
	return n.Content, nil
}

// Text returns a text as it is written in the file: 24.10 and true are texts too.
func Text(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || strings.TrimSpace(n.Value) == "" {
		return "", errors.New("must be a text")
	}
	if n.Value != sanitize.Terminal(n.Value) {
		return "", fmt.Errorf("%q: must be one line of printable characters", n.Value)
	}
	return n.Value, nil
}

// Texts returns a text, or the texts of a list that is not empty.
func Texts(n *yaml.Node) ([]string, error) {
	items, err := Items(n)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, item := range items {
		text, err := Text(item)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

// suggest names the known word that is nearest to a mistyped one, if any is near.
func suggest(word string, known []string) string {
	best, most := "", min(len(word)/2, 3)
	for _, k := range known {
		if d := distance(word, k); d <= most && len(word) < 64 {
			best, most = k, d-1
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}

// distance is how many letters must be added, removed or replaced to make one word
// of the other (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(above+1, row[j]+1, replaced)
			diagonal = above
		}
	}
	return row[len(b)]
}
