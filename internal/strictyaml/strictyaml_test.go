package strictyaml

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestParse(t *testing.T) {
	for _, text := range []string{
		"a: 1", "---\na: 1", "a: 1\n...\n", "\ufeffa: 1\r\nb: 2\r\n", "{a: 1, b: [c]}", "a: |\n  x\n  y\n", "a: \"\\u00e9\"", "a: x\ty",
	} {
		if n, err := Parse([]byte(text)); err != nil || n.Kind != yaml.MappingNode {
			t.Errorf("%q: %v, %v", text, n, err)
		}
	}
	for _, text := range []string{"", "\n  # a comment\n", "---\n", "~", "null"} {
		if n, err := Parse([]byte(text)); err != nil || n.ShortTag() != "!!null" || n.Line < 1 {
			t.Errorf("%q: %v, %v", text, n, err)
		}
	}
}

// An error is one line that names the line of the file.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\n\tb: 2":                    "line 2: found a tab character that violates indentation",
		"a: 1\nb: \x00":                   "line 2: control characters are not allowed",
		"a: 1\nb: \xff":                   "line 2: invalid leading UTF-8 octet",
		"a: 1\nb 2":                       "line 2: ",
		"a: 1\n  b: 2":                    "line 2: mapping values are not allowed in this context",
		"  a: 1\n b: 2":                   "line 2: did not find expected <document start>",
		"a:\n    b: 1\n  c: 2":            "line 3: did not find expected key",
		"a: 1\n- b\nc: d":                 "line 2: did not find expected key",
		"a: 1\nb: >= 24.10\nc: d":         `line 2: did not find expected comment or line break; put the value in quotes: ">= 24.10"`,
		"a:\n- b: *H100*":                 `line 2: did not find expected alphabetic or numeric character; put the value in quotes: "*H100*"`,
		"a:\n- b: *x\n":                   `line 2: unknown anchor 'x' referenced; put the value in quotes: "*x"`,
		"a: b: c":                         `line 1: mapping values are not allowed in this context; put the value in quotes: "b: c"`,
		"a: 1\nb: \"x\nc: d\n":            "line 2: found unexpected end of stream",
		"a: [b":                           "line 1: did not find expected ',' or ']'",
		"---\na: 1\n---\nb: 2":            "line 3: a second YAML document begins here",
		"a: &x b\nc: *x":                  "line 1: anchors (&) and aliases (*) are not supported",
		"a: 1\nb: !!str 2":                "line 2: tags (!) are not supported",
		"a: !foo b":                       "line 1: tags (!) are not supported",
		"? [a]\n: b":                      "line 1: a key must be a single word",
		"a:\n  b: 1\n  c: 2\n  b: 3":      "line 4: b: already given in line 2",
		strings.Repeat("#", MaxSize+1):    "larger than 262144 bytes",
		strings.Repeat("[", 20000) + "\n": "line 1: ",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

func TestMap(t *testing.T) {
	var a, b string
	keys := Keys{
		"alpha": func(n *yaml.Node) (err error) { a, err = Text(n); return err },
		"beta":  func(n *yaml.Node) (err error) { b, err = Text(n); return err },
		"gamma": func(n *yaml.Node) error { return Map(n, "gamma", Keys{"delta": func(*yaml.Node) error { return nil }}) },
	}
	for text, want := range map[string]string{
		"alpha: 24.10\nbeta: off":        "",
		"alpha: 1":                       "line 1: it: the key beta is missing",
		"alpa: 1":                        "line 1: alpa: unknown key in it (did you mean alpha?); known keys: alpha, beta, gamma",
		"x: 1":                           "line 1: x: unknown key in it; known keys",
		strings.Repeat("x", 200) + ": 1": "line 1: xxx",
		"alpha:\nbeta: 1":                "line 1: alpha: has no value",
		"beta: 1\nalpha: [1]":            "line 2: alpha: must be a text",
		"beta: 1\nalpha: ' '":            "line 2: alpha: must be a text",
		`alpha: "\e[2J"`:                 `line 1: alpha: "\x1b[2J": must be one line of printable characters`,
		"alpha: |\n  x\n  y":             `line 1: alpha: "x\ny": must be one line`,
		"gamma:\n  delt: 1":              "line 2: delt: unknown key in gamma (did you mean delta?); known keys: delta",
		"[]":                             "line 1: it must be a mapping (key: value) with these keys: alpha, beta, gamma",
	} {
		n, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := Map(n, "it", keys, "beta"); err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) || want == "" && got+a+b != "24.10off" {
			t.Errorf("%q: %s (%s, %s); want %s", text, got, a, b, want)
		}
	}
}

func TestTexts(t *testing.T) {
	for text, want := range map[string]string{"a": "a", "[a, 1.10, true]": "a 1.10 true", "[]": "the list is empty", "[[a]]": "must be a text", "{a: b}": "must be a text"} {
		n, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		texts, err := Texts(n)
		got := strings.Join(texts, " ")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"ab", "", 2}, {"gups", "gpus", 2}, {"kitten", "sitting", 3}, {"interval", "intervall", 1}} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("%s, %s: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

// Whatever a file holds, it is parsed or the error is one line with a line that the
// file has.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "a: b", "---\na: 1\nb:\n  - x: 1\n    y: [a, 'b', \"c\"]\n  - z\n", "a: >= 1", "a: &x [*x]", "- a\n-\n  b: 1\n", "a: [b,\n c]\nd: e: f", "a:\r\n\tb", "? a\n: b", "a: 1\n---\n%",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := Parse(text)
		if e, ok := err.(*Error); ok && (e.Line < 1 || e.Line > strings.Count(string(text), "\n")+strings.Count(string(text), "\r")+1 || strings.Contains(e.Error(), "\n")) { //nolint:errorlint // not wrapped
			t.Errorf("%q: %q", text, err)
		}
	})
}
