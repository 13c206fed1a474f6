package expect

import (
	"maps"
	"strings"
	"testing"

	"gdr-features/source/platform"
	"gdr-features/test/sample"
)

func TestParseTopologies(t *testing.T) {
	const text = "types:\n- {name: a, match: {gpu: H100*}, file: a.xml}\n- {name: b, match: any, file: b.xml}\n"
	got, err := ParseTopologies([]byte(text))
	if err != nil || !maps.Equal(got.Files, map[string]string{"a": "a.xml", "b": "b.xml"}) {
		t.Errorf("%+v, error %v", got, err)
	}
	for text, want := range map[string]string{
		"":                   "1:1: the file is empty",
		"types: []":          "must be a list of machine types",
		"types: [{name: a}]": "the key match is missing",
		"types: [{name: a, match: any, expect: {gpus: 8}}]":                                    "unknown key expect; known keys: name, match, file",
		"types: [{name: a, match: any, file: ../b.xml}]":                                       `"../b.xml": must be the name of a file beside this one`,
		"types: [{name: a, match: any, file: ..}]":                                             "must be the name of a file",
		"types: [{name: a, match: any, file: /b.xml}]":                                         "must be the name of a file",
		"types: [{name: a, match: {topology: virtual}, file: b.xml}]":                          "topology cannot be matched",
		"types: [{name: a, match: any, file: b.xml}, {name: b, match: any, file: b.xml}]":      "unreachable",
		"types: [{name: a, match: {gpu: x}, file: b.xml}, {name: a, match: any, file: c.xml}]": "the name a is already given",
	} {
		if _, err := ParseTopologies([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

// What is read has a file for each type, beside the list.
func FuzzParseTopologies(f *testing.F) {
	f.Add([]byte("types:\n- {name: a, match: {gpu: [H100*, x]}, file: a.xml}\n"))
	f.Add([]byte("types: [{name: a, match: any, file: ../b.xml}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := ParseTopologies(text)
		if err != nil {
			return
		}
		for _, of := range got.types.Types {
			if file := got.Files[of.Name]; file == "" || strings.Contains(file, "/") || len(of.Match.Topology) > 0 {
				t.Errorf("%s: %+v has %q", text, of, file)
			}
		}
	})
}

// TestTopologiesOf: where the firmware's name could not be read the type is an error, not none.
func TestTopologiesOf(t *testing.T) {
	types, err := ParseTopologies([]byte("types: [{name: a, match: {product: p4d.*}, file: a.xml}]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		product platform.Name
		want    string
		known   bool
	}{
		{platform.Name{Value: "p4d.24xlarge", Known: true}, "a", true},
		{platform.Name{Value: "p5.48xlarge", Known: true}, "", true},
		{platform.Name{}, "", false},
	} {
		node := sample.Ready()
		node.Platform.DMI.Product = tt.product
		if got, err := types.Of(&node.Node); got != tt.want || (err == nil) != tt.known {
			t.Errorf("%+v: %q, error %v", tt.product, got, err)
		}
	}
}
