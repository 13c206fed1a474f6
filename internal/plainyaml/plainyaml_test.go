package plainyaml

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// show writes a node so that it can be compared by eye.
func show(n Node) string {
	var parts []string
	switch n.Kind {
	case Null:
		return "null"
	case Text:
		return fmt.Sprintf("%q", n.Text)
	case List:
		for _, item := range n.Items {
			parts = append(parts, show(item))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case Map:
		for _, e := range n.Entries {
			parts = append(parts, e.Key+":"+show(e.Value))
		}
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func TestParse(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", "null"},
		{"\n  # nothing\n#\tmore\n---\n", "null"},
		{"a: b", `{a:"b"}`},
		{"---\na: 1 # one\nb:\nc: true\r\n", `{a:"1" b:null c:"true"}`},
		{"a: b#c d", `{a:"b#c d"}`},
		{"a: \"x: # \\\"y\\\" \\\\\"  # end", `{a:"x: # \"y\" \\"}`},
		{"a: 'it''s'", `{a:"it's"}`},
		{"a: ''\nb: \"\"", `{a:"" b:""}`},
		{"a: [x, 'y z' , \"w\"] # end\nb: []\nc: [v,]", `{a:["x" "y z" "w"] b:[] c:["v"]}`},
		{"a:\n  b: 1\n  c:\n    d: 2\ne: 3", `{a:{b:"1" c:{d:"2"}} e:"3"}`},
		{"a:\n- x\n- y\nb: z", `{a:["x" "y"] b:"z"}`},
		{"a:\n  - x: 1\n    y: 2\n  - z:\n      - 3\n", `{a:[{x:"1" y:"2"} {z:["3"]}]}`},
		{"-   a: 1\n    b: 2\n- # below\n  c\n", ""},
		{"-\n  c: 1\n-\n- d", `[{c:"1"} null "d"]`},
		{"a: it's 10:30 -1 x-y", `{a:"it's 10:30 -1 x-y"}`},
		{"a: -1", `{a:"-1"}`},
	} {
		n, err := Parse([]byte(test.text))
		if test.want == "" {
			if err == nil {
				t.Errorf("%q: %s, want an error", test.text, show(n))
			}
			continue
		}
		if err != nil || show(n) != test.want {
			t.Errorf("%q: %s, %v; want %s", test.text, show(n), err, test.want)
		}
	}
}

func TestLines(t *testing.T) {
	n, err := Parse([]byte("# one\na:\n\n  - b: x\n    c: y\n"))
	if err != nil {
		t.Fatal(err)
	}
	item := n.Entries[0].Value.Items[0]
	if n.Line != 2 || item.Line != 4 || item.Entries[1].Line != 5 || item.Entries[1].Value.Line != 5 {
		t.Errorf("%+v", n)
	}
}

func TestErrors(t *testing.T) {
	var nested strings.Builder
	for i := range MaxDepth + 1 {
		nested.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	deep := nested.String()
	for text, want := range map[string]string{
		"a: 1\n\tb: 2":                        "line 2: a tab; indent and separate with spaces",
		"a: x\ty":                             "line 1: a tab",
		"a: \x00":                             "line 1: a character that cannot be printed",
		"a: \xff":                             "line 1: a character that cannot be printed, or is no UTF-8",
		"a: 1\nb 2":                           `line 2: "b 2" is not key: value`,
		strings.Repeat("k", 129) + ": 1":      "is not key: value; keys are letters, digits and dashes, 128 at most",
		"a:1":                                 `line 1: "a:1" is not key: value`,
		"\"a\": 1":                            "is not key: value",
		"a: 1\nb: 2\na: 3":                    "line 3: a is there already, in line 1",
		"a: 1\n  b: 2":                        `line 2: "b: 2" is not indented like`,
		"  a: 1\n b: 2":                       `line 2: "b: 2" is not indented like`,
		"a:\n    b: 1\n  c: 2":                `line 3: "c: 2" is not indented like`,
		"a: 1\n- b":                           `line 2: "- b" is not indented like`,
		"a: >= 24.10":                         `line 1: >= 24.10 must be in quotes: ">= 24.10"`,
		"a: *x":                               "must be in quotes",
		"a: &x b":                             "must be in quotes",
		"a: !!str b":                          "must be in quotes",
		"a: |\n  text":                        "must be in quotes",
		"a: {b: 1}":                           "must be in quotes",
		"a: b: c":                             "must be in quotes",
		"a: b:":                               "must be in quotes",
		"a: \"x\" y":                          `line 1: "y" follows a value that has ended`,
		"a: \"x\"#y":                          `"#y" follows a value`,
		"a: \"x":                              `line 1: the closing " is missing`,
		"a: 'x":                               "line 1: the closing ' is missing",
		`a: "\n"`:                             `line 1: an escape other than`,
		"a: [b":                               "line 1: a list in brackets must end in ]",
		"a: [b, ":                             "line 1: a list in brackets must end",
		"a: [b, [c]]":                         "must be in quotes",
		"a: [, b]":                            "line 1: an item of the list is empty",
		"- - a":                               "line 1: a list in a list",
		"---\n---\na: 1":                      `line 2: "---" is not key: value`,
		"a: 1\n---\nb: 2":                     `line 2: "---" is not key: value`,
		"a: b\n  c":                           `line 2: "c" is not indented like`,
		deep:                                  "nested deeper than 16",
		strings.Repeat("#", MaxSize+1):        "larger than 262144 bytes",
		"a: \u2028":                           "cannot be printed",
		"\ufeffa: 1":                          "cannot be printed",
		"a: " + strings.Repeat("é", 50) + ":": "é... must be in quotes",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

// reference is what a whole YAML parser makes of the same text.
func reference(t *testing.T, n *yaml.Node) Node {
	t.Helper()
	out := Node{Line: n.Line}
	switch n.Kind {
	case 0:
		out.Line = 1
	case yaml.DocumentNode:
		return reference(t, n.Content[0])
	case yaml.ScalarNode:
		if n.Value != "" || n.Style != 0 {
			out.Kind, out.Text = Text, n.Value
		}
	case yaml.SequenceNode:
		out.Kind = List
		for _, item := range n.Content {
			out.Items = append(out.Items, reference(t, item))
		}
	case yaml.MappingNode:
		out.Kind = Map
		for i := 0; i < len(n.Content); i += 2 {
			out.Entries = append(out.Entries, Entry{n.Content[i].Value, n.Content[i].Line, reference(t, n.Content[i+1])})
		}
	default:
		t.Fatalf("kind %v", n.Kind)
	}
	return out
}

// noLines leaves out where an empty value stands: parsers do not agree.
func noLines(n Node) Node {
	if n.Kind == Null {
		n.Line = 0
	}
	for i := range n.Items {
		n.Items[i] = noLines(n.Items[i])
	}
	for i := range n.Entries {
		n.Entries[i].Value = noLines(n.Entries[i].Value)
	}
	return n
}

// What is taken, is what YAML says.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "a: b", "---\na: 1\nb:\n  - x: 1\n    y: [a, 'b', \"c\"]\n  - z\nc:\n- 1\n", "a: 'it''s' # c\n", "- a\n-\n  b: 1\n",
		"a: \"\\\"\\\\\"", "a: >= 1", "a: x\n  y", "a: -1\nb: ~\nc: null", "a:\n-\n- b\n", "- a: 1\n  b: 2\n", "a: [b,c ,d]", "a:\r\n  b: 1\r\n",
		"a: 1 #x", "a: x#y", "k.e-y_: v", "a: ?x", "a: -", "a: =", "1: 2", "a: [?]", "a: [-]", "a: [-1]", "a: b c  d", "a: ---", "a: 'x'#",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Parse(text)
		if err != nil {
			return
		}
		var node yaml.Node
		if err := yaml.Unmarshal(text, &node); err != nil {
			t.Fatalf("%q is %s, and no YAML: %v", text, show(got), err)
		}
		if diff := cmp.Diff(noLines(reference(t, &node)), noLines(got)); diff != "" {
			t.Errorf("%q (-yaml +got):\n%s", text, diff)
		}
	})
}
