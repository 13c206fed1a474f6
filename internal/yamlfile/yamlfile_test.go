package yamlfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"gdr-features/test/testsize"
)

// it is what a file is read into.
type it struct {
	Alpha string
	Beta  string
	List  []string
	Sub   struct{ Delta string }
}

func (v *it) read(n *yaml.Node, required ...string) error {
	return Mapping(n, Keys{
		{"alpha", text(&v.Alpha)},
		{"beta", text(&v.Beta)},
		{"list", func(n *yaml.Node) error {
			return Each(n, func(item *yaml.Node) error {
				v.List = append(v.List, "")
				return text(&v.List[len(v.List)-1])(item)
			})
		}},
		{"sub", func(n *yaml.Node) error { return Mapping(n, Keys{{"delta", text(&v.Sub.Delta)}}) }},
	}, required...)
}

// readAny reads it without required keys.
func (v *it) readAny(n *yaml.Node) error { return v.read(n) }

func text(to *string) Reader {
	return func(n *yaml.Node) (err error) {
		*to, err = Text(n)
		return err
	}
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		"alpha: a\nbeta: 24.10":                                   "{a 24.10 [] {}}",
		"---\nalpha: off\n...\n":                                  "{off  [] {}}",
		"\ufeffalpha: a\r\nbeta: 2026-01-01\r\n":                  "{a 2026-01-01 [] {}}",
		"{alpha: 1e3, list: [0x10, true, '']}":                    "{1e3  [0x10 true ] {}}",
		"alpha: \"\\u00e9\"\nsub:\n  delta: |-\n    x y\nlist: e": "{é  [e] {x y}}",
		"": "{  [] {}}", "\n  # a comment\n": "{  [] {}}", "---\n": "{  [] {}}", "~": "{  [] {}}", "null": "{  [] {}}",
	} {
		var v it
		if err := Decode([]byte(text), v.readAny); err != nil || fmt.Sprint(v) != want {
			t.Errorf("%q: %v, %v, want %s", text, v, err, want)
		}
	}
}

// An error is one line that names the place.
func TestErrors(t *testing.T) {
	const unsupported = "anchors (&), aliases (*), merge keys (<<) and tags (!) are not supported"
	for text, want := range map[string]string{
		"alpha: 1\n\tbeta: 2":            "2:1: found a tab character that violates indentation",
		"alpha: 1\nbeta: \x00":           "2:7: control characters are not allowed",
		"alpha: 1\nbeta: \xff":           "2:7: invalid leading UTF-8 octet",
		"alpha: 1\nbeta 2":               "2:1: could not find expected ':'",
		"alpha: 1\nbeta 2\nlist: [a]\n":  "2:1: could not find expected ':'",
		"alpha: 1\n  beta: 2":            "2:7: mapping values are not allowed in this context",
		"  alpha: 1\n beta: 2":           "2:2: did not find expected <document start>",
		"sub:\n    delta: 1\n  c: 2":     "3:3: did not find expected key",
		"alpha: 1\n- b\nc: d":            "2:1: did not find expected key",
		"alpha: 1\nbeta: >= 24.10\nc: d": "2:8: did not find expected comment or line break; put the value in quotes",
		"list:\n- *H100*":                "2:3: unknown anchor 'H100*' referenced; put the value in quotes",
		"alpha: b: c":                    "1:9: mapping values are not allowed in this context; put the value in quotes",
		"alpha: 1\nbeta: \"x\nc: d\n":    "2:7: found unexpected end of stream",
		"{ ":                             "1:3: did not find expected node content",
		"? alpha":                        "1:8: alpha: has no value",
		"list: [b":                       "1:7: did not find expected ',' or ']'",
		"---\nalpha: 1\n---\nbeta: 2":    "3:1: a second YAML document begins here",
		"alpha: &x b\nbeta: *x":          "1:8: alpha: " + unsupported,
		"alpha: &x b":                    "1:8: alpha: " + unsupported,
		"alpha: 1\nbeta: !!str 2":        "2:7: beta: " + unsupported,
		"alpha: !foo b":                  "1:8: alpha: " + unsupported,
		"sub:\n  <<: {delta: 1}":         "2:3: sub: " + unsupported,
		"? [a]\n: b":                     "1:3: must be a text",
		"sub:\n  delta: 1\n  delta: 3":   "3:3: sub: the key delta is already given in line 2",
		"alpha:\nbeta: 1":                "1:7: alpha: has no value",
		"alpha: 1\nlist: [a, ~]":         "2:11: list: has no value",
		": 1":                            "1:1: has no value",
		"beta: 1\nalpha: [1]":            "2:8: alpha: must be a text",
		`alpha: "\e[2J"`:                 `1:8: alpha: must be one line of printable characters`,
		`"\e[2J": 1`:                     `1:1: must be one line of printable characters`,
		"alpha: |\n  x\n  y":             `1:8: alpha: must be one line`,
		"sub:\n  delt: 1":                "2:3: sub: unknown key delt; known keys: delta",
		"beta: 1\nalpa: 1":               "2:1: unknown key alpa; known keys: alpha, beta, list, sub",
		// What another file holds is not shown, such as lines of /etc/shadow.
		"root:$y$secret:19000:0:::\nbin:*:1::":       "1:26: (not a plain word): has no value",
		"root:*:19000:0:99999:7:::":                  "1:26: (not a plain word): has no value",
		"root:$6$secret: x":                          "1:1: unknown key (not a plain word); known keys: alpha",
		"sub: x":                                     "1:6: sub: must be a mapping (key: value) with these keys: delta",
		"list: [x: y]":                               "1:8: list: must be a text",
		"list: []":                                   "1:7: list: the list is empty",
		"[]":                                         "1:1: must be a mapping (key: value) with these keys: alpha, beta, list, sub",
		"beta: 1":                                    "1:1: the key alpha is missing",
		strings.Repeat("#", MaxSize+1):               "1:1: larger than 262144 bytes",
		strings.Repeat("[", 20000) + "\n":            "1:10001: exceeded max depth",
		strings.Repeat("- ", 20000) + "\n":           "1:20001: exceeded max depth",
		"é: &x\n" + strings.Repeat("a: [\n", 20):     "21:5: did not find expected node content",
		strings.Repeat("\xff\xfe", 20) + "alpha: 1 ": "1:",
	} {
		var v it
		err := Decode([]byte(text), func(n *yaml.Node) error { return v.read(n, "alpha") })
		if !errors.As(err, new(*Error)) || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

// What a file of the largest size holds takes neither long nor much memory.
func TestHostile(t *testing.T) {
	long := func(s string) string { return strings.Repeat(s, MaxSize/len(s)-4) }
	var keys, anchors strings.Builder
	for i := 0; keys.Len() < MaxSize-20; i++ {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
	}
	for i := 0; anchors.Len() < MaxSize-40; i++ {
		fmt.Fprintf(&anchors, "- &a%d x\n- [*a%d,*a%d]\n", i, i, i)
	}
	texts := []string{keys.String(), anchors.String(), "list: [" + strings.Repeat("a,", MaxSize/2-10) + "]", strings.Repeat("[", MaxSize/2) + strings.Repeat("]", MaxSize/2)}
	for _, s := range []string{
		"[", "{", "]", "- ", "-\n", "a: ", "a: 1\n", "a,", "? ", "? [", ":", ":\n", "!a ", "&a ", "*a ", "<<: {", "#\n", "\n", "\r", " ", "---\n", "...\n", "%TAG ! a\n", "\x00", "\xff", "'\n", `"\n`, "|\n", "\ufeff",
	} {
		texts = append(texts, long(s), "{"+long(s), "a: "+long(s), "a: '"+long(s))
	}
	for _, text := range testsize.Share(texts) {
		begin := time.Now()
		err := Decode([]byte(text), new(it).readAny)
		if d := time.Since(begin); d > time.Minute {
			t.Errorf("%.20q takes %v: %v", text, d, err)
		}
	}
}

// Whatever a file holds, it is read or the error is one line with a line that the file has.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "alpha: b", "---\nalpha: 1\nlist:\n  - x\n  - 'b'\n  - \"c\"\nsub: {delta: z}\n", "a: >= 1", "a: &x [*x]", "<<: {a: b}", "- a\n-\n  b: 1\n", "a: [b,\n c]\nd: e: f", "a:\r\n\tb", "? a\n: b", "a: 1\n---\n%",
		"\xff\xfea\x00:\x00 \x001\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := Decode(text, new(it).readAny)
		if err == nil {
			return
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Line < 1 || e.Column < 1 || strings.Contains(e.Error(), "\n") ||
			len(text) < 1000 && e.Line > strings.Count(strings.NewReplacer("\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n", "\x85", "\n", "\x28", "\n", "\x29", "\n").Replace(string(text)), "\n")+1 {
			t.Errorf("%q: %q", text, err)
		}
	})
}
