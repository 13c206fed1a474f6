package yamltree

import (
	"fmt"
	"strings"
	"testing"
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
		{"\n  # nothing\n# more\n---\n", "null"},
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
		{"-   a: 1\n    b: 2\n- # below\n  c\n", `[{a:"1" b:"2"} "c"]`},
		{"a: {b: 1}\nc: |\n  d\n  e\n", `{a:{b:"1"} c:"d\ne\n"}`},
		{"-\n  c: 1\n-\n- d", `[{c:"1"} null "d"]`},
		{"a: it's 10:30 -1 x-y", `{a:"it's 10:30 -1 x-y"}`},
		{"a: -1", `{a:"-1"}`},
	} {
		n, err := Parse([]byte(test.text))
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

// Every error is one line, and names the line where it can.
func TestErrors(t *testing.T) {
	var nested strings.Builder
	for i := range MaxDepth + 1 {
		nested.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	deep := nested.String()
	for text, want := range map[string]string{
		"a: 1\n\tb: 2":                 "line 2: a tab; indent and separate with spaces",
		"a: \x00":                      "line 1: a character that cannot be printed",
		"a: \xff":                      "line 1: no UTF-8",
		"a: \u2028":                    "cannot be printed",
		"\ufeffa: 1":                   "cannot be printed",
		"a: 1\nb 2":                    "line 2: ",
		"a: 1\nb: 2\na: 3":             "line 3: ",
		"a: 1\n  b: 2":                 "line 2: ",
		"  a: 1\n b: 2":                "line 2: ",
		"a: 1\n- b":                    "line 2: ",
		"a:\n  - 1\n - 2":              "line 3: ",
		"a: 1\nb: {c\nd: 3":            "line 2: ",
		"a: 1\nb: [c\nd: 3":            "line 2: ",
		"a: 1\nb: @":                   "line 2: ",
		"a: 1\nb: *x":                  "anchors, aliases and tags",
		"a: >= 24.10":                  "line 1: ",
		"x: 1\na: >= 24.10":            "in quotes",
		"a: *x":                        "anchors, aliases and tags",
		"a: &x b":                      "line 1: anchors, aliases and tags",
		"a: &x b\nc: *x":               "line 1: anchors, aliases and tags",
		"a: !!str b":                   "line 1: anchors, aliases and tags",
		"a:\n  <<: {b: 1}":             "line 2: a key that is no text",
		"? [a, b]\n: c":                "line 1: ",
		"a: b: c":                      "line 1: ",
		"a: \"x\" y":                   "line 1: ",
		"a: \"x":                       "line 1: ",
		"a: [b":                        "line 1: ",
		"a: 1\n---\nb: 2":              "line 2: a second document; put all into the first",
		deep:                           "nested deeper than 16",
		strings.Repeat("#", MaxSize+1): "larger than 262144 bytes",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

// Whatever is read, there is an end, and what is taken stays within its bounds.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "a: b", "---\na: 1\nb:\n  - x: 1\n    y: [a, 'b', \"c\"]\n  - z\nc:\n- 1\n", "a: 'it''s' # c\n", "- a\n-\n  b: 1\n",
		"a: \"\\\"\\\\\"", "a: >= 1", "a: x\n  y", "a: -1\nb: ~\nc: null", "- - a", "a: |\n  b\n", "{a: [b, {c: d}]}", "a: &x b\nc: *x", "? a\n: b",
		"%YAML 1.2\n---\na: b", "a: !!map {}", "<<: {a: b}", "a:\r\n  b: 1\r\n", "a: 0x1d\nb: 1e3\nc: .inf\nd: .nan\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		root, err := Parse(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: an error of several lines: %v", text, err)
			}
			return
		}
		lines := strings.Count(string(text), "\n") + 1
		if why := wrongTree(root, lines, 0); why != "" {
			t.Errorf("%q: %s in %s", text, why, show(root))
		}
	})
}

// wrongTree tells what no tree may be like.
func wrongTree(n Node, lines, depth int) string {
	if n.Line < 1 || n.Line > lines+1 {
		return fmt.Sprintf("line %d", n.Line)
	}
	if depth > MaxDepth {
		return "too deep"
	}
	for _, item := range n.Items {
		if why := wrongTree(item, lines, depth+1); why != "" {
			return why
		}
	}
	keys := map[string]bool{}
	for _, e := range n.Entries {
		if keys[e.Key] {
			return e.Key + " twice"
		}
		keys[e.Key] = true
		if why := wrongTree(e.Value, lines, depth+1); why != "" {
			return why
		}
	}
	return ""
}
