package expect

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/verdict"
)

// minimal is the smallest file, as lines that errors can be put in for.
const minimal = `types:
  - name: a
    match: any
    expect:
      gpus: 8
`

func TestParse(t *testing.T) {
	f, err := Parse([]byte(minimal))
	if err != nil || len(f.Types) != 1 || f.Types[0].Name != "a" || !f.Types[0].Match.any() || f.Types[0].Expect.GPUs[0].Count != (Range{8, 8, "8"}) {
		t.Errorf("%+v, %v", f, err)
	}
	braces, err := Parse([]byte("types: [{name: a, match: any, expect: {gpus: 8}}]"))
	if diff := cmp.Diff(f, braces, cmp.AllowUnexported(Range{})); err != nil || diff != "" {
		t.Errorf("written with braces: %v, %s", err, diff)
	}
	if f.Needs() != (Needs{}) {
		t.Errorf("needs %+v", f.Needs())
	}
	f, err = Parse([]byte(minimal + "      nics:\n        - count: 1\n          pcie: full\n        - count: 2\n          firmware: 1.2\n      mofed: inbox\n"))
	if err != nil || f.Needs() != (Needs{true, true}) || !f.Types[0].Expect.Inbox || f.Types[0].Expect.MOFED != nil {
		t.Errorf("%+v, %v", f, err)
	}
}

// An error names the line, the key and what to write, in one line.
func TestParseErrors(t *testing.T) {
	with := func(old, replacement string) string { return strings.Replace(minimal, old, replacement, 1) }
	gpus := func(text string) string { return with("gpus: 8", text) }
	for _, test := range []struct{ text, want string }{
		{"", "line 1: the file must be a mapping (key: value) with these keys: types"},
		{"- a", "line 1: the file must be a mapping"},
		{"typs: x", "line 1: typs: unknown key in the file (did you mean types?); known keys: types"},
		{"types:", "line 1: types: has no value"},
		{"types: x", "line 1: types: must be a list"},
		{"types: []", "line 1: types: must be a list of machine types"},
		{"types: [a]", "line 1: a type must be a mapping (key: value) with these keys: expect, match, name"},
		{minimal + "extra: 1", "line 6: extra: unknown key in the file; known"},
		{with("    match: any\n", ""), "line 2: a type: the key match is missing"},
		{with("name: a\n    match", "match"), "line 2: a type: the key name is missing"},
		{with("name: a", "name: a b"), `line 2: name: "a b": must be up to 63 letters`},
		{with("name: a", "name: -a"), `line 2: name: "-a": must be`},
		{with("name: a", "name: "+strings.Repeat("x", 64)), "must be up to 63"},
		{with("name: a", "name: [a]"), "line 2: name: must be a text"},
		{with("match: any", "match: all"), "line 3: match: must be any, or a mapping"},
		{with("match: any", "match:\n      gpus: 8"), "line 4: gpus: unknown key in match (did you mean gpu?); known keys: board, gpu, nic, product, topology, vendor"},
		{with("match: any", "match:\n      gpu: []"), "line 4: gpu: the list is empty"},
		{with("match: any", "match:\n      gpu: ['']"), "line 4: gpu: must be a text"},
		{with("match: any", "match:\n      topology: bare"), `line 4: topology: "bare": must be one of physical, virtual, file`},
		{with("expect:\n      gpus: 8\n", "expect: true\n"), "line 4: expect must be a mapping (key: value) with these keys: acs, driver"},
		{with("expect:\n      gpus: 8\n", "expect:\n"), "line 4: expect: has no value"},
		{gpus("gups: 8"), "line 5: gups: unknown key in expect (did you mean gpus?); known keys: acs, driver, gpus"},
		{gpus("gpus:"), "line 5: gpus: has no value"},
		{gpus("gpus: eight"), `line 5: gpus: "eight" is no`},
		{gpus("gpus: -8"), `line 5: gpus: "-8" is no`},
		{gpus("gpus: []"), "line 5: gpus: the list is empty"},
		{gpus("gpus: [8]"), "line 5: gpus must be a mapping (key: value) with these keys: count, model, pcie"},
		{gpus("gpus:\n        model: H100"), "line 6: gpus: the key count is missing"},
		{gpus("gpus:\n        count: 8\n        rate: 400"), "line 7: rate: unknown key in gpus; known keys: count, model, pcie"},
		{gpus("gpus:\n        count: 8\n        pcie: x16"), `line 7: pcie: "x16": must be full`},
		{gpus("nics:\n        - count: 8\n        - cuont: 8"), "line 7: cuont: unknown key in nics (did you mean count?); known keys: active-ports, count"},
		{gpus("nics:\n        count: 8\n        link: ib"), `line 7: link: "ib": must be one of infiniband, ethernet`},
		{gpus("nics:\n        count: 8\n        rate: 400G"), `line 7: rate: "400G" is no`},
		{gpus("nics:\n        count: 8\n        firmware: v28"), `line 7: firmware: "v28" is no`},
		{gpus("level: P2C"), `line 5: level: "P2C" is not a level`},
		{gpus("level: near"), `line 5: level: "near" is not a level; levels are PIX`},
		{gpus("mofed: 24.10-1.1.4.0"), `line 5: mofed: "24.10-1.1.4.0" is no`},
		{gpus("mofed: OFED-24.10"), `line 5: mofed: "OFED-24.10" is no`},
		{gpus("driver: 570.86.15.1"), `line 5: driver: "570.86.15.1" is no`},
		{gpus("driver: >= 570"), `line 5: did not find expected comment or line break; put the value in quotes: ">= 570"`},
		{gpus("modules: closed ones"), `line 5: modules: "closed ones": must be one of open, closed`},
		{gpus("mechanism: any"), `line 5: mechanism: "any": must be one of peermem, dmabuf, either, both`},
		{gpus("iommu: [off, pt]"), `line 5: iommu: "pt": must be one of off, passthrough, translated`},
		{gpus("acs: off"), `line 5: acs: "off": must be one of clear, redirect`},
		{gpus("ready: yes"), `line 5: ready: "yes": must be one of true, false`},
		{gpus("gpus: 8\n      gpus: 9"), "line 6: gpus: already given in line 5"},
		{minimal + "  - name: a\n    match: any\n    expect:\n      gpus: 1", "line 6: unreachable: type a above matches every machine; move it to the end"},
		{gpus(`driver: "570\e[2J"`), `line 5: driver: "570\x1b[2J": must be one line of printable characters`},
		{gpus("gpus: &n 8\n      nics: *n"), "line 5: anchors (&) and aliases (*) are not supported"},
		{
			with("match: any", "match:\n      gpu: x") + "  - name: a\n    match: any\n    expect:\n      gpus: 1",
			"line 7: name: a: already given in line 2",
		},
	} {
		_, err := Parse([]byte(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\n%v, want %s", test.text, err, test.want)
		}
	}
}

// Whatever the file says, it is an error or it can be judged.
func FuzzParse(f *testing.F) {
	example, err := os.ReadFile("../../deploy/examples/expect.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, seed := range []string{"", minimal, "types: []", strings.ReplaceAll(minimal, "8", "'>= 1, <= 2'"), "types:\n- name: a\n  match: {}\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
			return
		}
		facts := Facts{
			PCI: &pci.Inventory{}, RDMA: &rdma.Inventory{}, Kmod: &kmod.State{}, Matrix: &topology.Matrix{}, Verdict: &verdict.Verdict{},
		}
		if r := Judge(file, &facts); r.State != 0 || r.NoType {
			t.Errorf("nothing is known, and yet %+v", r)
		}
	})
}

// The documentation names every key, and its examples are right.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/expect.md")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	_, err = Parse([]byte(minimal + "      x: 1"))
	keys = append(keys, after(err)...)
	_, err = Parse([]byte(strings.Replace(minimal, "match: any", "match:\n      x: 1", 1)))
	keys = append(keys, after(err)...)
	_, err = Parse([]byte(minimal + "      nics:\n        x: 1"))
	keys = append(keys, after(err)...)
	if len(keys) < 20 {
		t.Fatalf("only %q", keys)
	}
	for _, key := range keys {
		if !strings.Contains(string(page), "`"+key+"`") {
			t.Errorf("docs/expect.md does not name %s", key)
		}
	}
	examples := strings.Split(string(page), "```yaml\n")[1:]
	if len(examples) == 0 {
		t.Error("docs/expect.md has no example")
	}
	for _, example := range examples {
		text, _, _ := strings.Cut(example, "```")
		if !strings.Contains(text, "types:") {
			continue // of something else
		}
		if _, err := Parse([]byte(text)); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
}

// after returns the keys that an error lists.
func after(err error) []string {
	_, list, _ := strings.Cut(err.Error(), "; known keys: ")
	return slices.DeleteFunc(strings.Split(list, ", "), func(s string) bool { return s == "" })
}
