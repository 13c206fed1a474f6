package expect

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	if diff := cmp.Diff(f, braces, cmp.AllowUnexported(Range{}, Versions{}, bound{})); err != nil || diff != "" {
		t.Errorf("written with braces: %v, %s", err, diff)
	}
	f, err = Parse([]byte(minimal + "      nics:\n        - count: 1\n          pcie: full\n        - count: 2\n          firmware: 1.2\n      mofed: inbox\n"))
	if err != nil {
		t.Fatal(err)
	}
	if e := f.Types[0].Expect; e.NICs[1].Firmware.String() == "" || !e.NICs[0].FullLink || !e.Inbox || e.MOFED.String() != "" {
		t.Errorf("%+v, %v", f, err)
	}
}

// An error names the line, the key and what to write, in one line.
func TestParseErrors(t *testing.T) {
	with := func(old, replacement string) string { return strings.Replace(minimal, old, replacement, 1) }
	gpus := func(text string) string { return with("gpus: 8", text) }
	for _, test := range []struct{ text, want string }{
		{"", "1:1: the file is empty; it must have the key types"},
		{"- a", "1:1: must be a mapping (key: value) with these keys: types"},
		{"typs: x", "1:1: unknown key typs; known keys: types"},
		{"types:", "1:7: types: has no value"},
		{"types: x", "1:8: types: must be a list of machine types, each with name, match and expect"},
		{"types: []", "1:8: types: must be a list of machine types, each with name, match and expect"},
		{"types: [a]", "1:9: types: must be a mapping (key: value) with these keys: name, match, expect"},
		{minimal + "extra: 1", "6:1: unknown key extra; known keys: types"},
		{with("    match: any\n", ""), "2:5: types: the key match is missing"},
		{with("name: a\n    match", "match"), "2:5: types: the key name is missing"},
		{with("name: a", "name: a b"), `2:11: name: "a b": must be up to 63 letters, digits and - . _ between them`},
		{with("name: a", "name: -a"), `2:11: name: "-a": must be up to 63 letters, digits and - . _ between them`},
		{with("name: a", "name: "+strings.Repeat("x", 64)), "must be up to 63"},
		{with("name: a", "name: [a]"), "2:11: name: must be a text"},
		{with("match: any", "match: all"), "3:12: match: must be any, or a mapping (key: value) of what to match"},
		{with("match: any", "match:\n      gpus: 8"), "4:7: match: unknown key gpus; known keys: product, vendor, board, gpu, nic, topology"},
		{with("match: any", "match:\n      gpu: []"), "4:12: gpu: the list is empty"},
		{with("match: any", "match:\n      gpu: ['']"), "4:13: gpu: must be a text"},
		{with("match: any", "match:\n      topology: bare"), `4:17: topology: "bare": must be one of physical, virtual, file`},
		{with("expect:\n      gpus: 8\n", "expect: true\n"), "4:13: expect: must be a mapping (key: value) with these keys: gpus, nics, level, nearest-r"},
		{with("expect:\n      gpus: 8\n", "expect:\n"), "4:12: expect: has no value"},
		{gpus("gups: 8"), "5:7: expect: unknown key gups; known keys: gpus, nics, level, nearest-rate, driver, module"},
		{gpus("gpus:"), "5:12: gpus: has no value"},
		{gpus("gpus: eight"), `5:13: gpus: "eight" is not a number; write 8, ">= 8", "<= 8" or ">= 4, <= 8"`},
		{gpus("gpus: -8"), `5:13: gpus: "-8" is not a number; write 8, ">= 8", "<= 8" or ">= 4, <= 8"`},
		{gpus("gpus: []"), "5:13: gpus: the list is empty"},
		{gpus("gpus: [8]"), "5:14: gpus: must be a mapping (key: value) with these keys: model, count, pcie"},
		{gpus("gpus:\n        model: H100"), "6:9: gpus: the key count is missing"},
		{gpus("gpus:\n        count: 8\n        rate: 400"), "7:9: gpus: unknown key rate; known keys: model, count, pcie"},
		{gpus("gpus:\n        count: 8\n        pcie: x16"), `7:15: pcie: "x16": must be one of full`},
		{gpus("nics:\n        - count: 8\n        - cuont: 8"), "7:11: nics: unknown key cuont; known keys: model, count, pcie, active-ports, link, rate, f"},
		{gpus("nics:\n        count: 8\n        link: ib"), `7:15: link: "ib": must be one of infiniband, ethernet`},
		{gpus("nics:\n        count: 8\n        rate: 400G"), `7:15: rate: "400G" is not a number; write 8, ">= 8", "<= 8" or ">= 4, <= 8"`},
		{gpus("nics:\n        count: 8\n        firmware: v28"), `7:19: firmware: "v28" is not a version; write it as 28.39.1002 or its beginning, or ">= 28`},
		{gpus("level: P2C"), `5:14: level: "P2C" is not a level; levels are PIX, PXB, PHB, NODE and SYS`},
		{gpus("level: near"), `5:14: level: "near" is not a level; levels are PIX, PXB, PHB, NODE and SYS`},
		{gpus("mofed: 24.10-1.1.4.0"), `5:14: mofed: "24.10-1.1.4.0" is not a version; write it as 24.10-1.1.4 or its beginning, o`},
		{gpus("mofed: OFED-24.10"), `5:14: mofed: "OFED-24.10" is not a version; write it as 24.10-1.1.4 or its beginning, or "`},
		{gpus("driver: 570.86.15.1"), `5:15: driver: "570.86.15.1" is not a version; write it as 570.86.15 or its beginning, or "`},
		{gpus("driver: >= 570"), "5:16: did not find expected comment or line break; put the value in quotes"},
		{gpus("modules: closed ones"), `5:16: modules: "closed ones": must be one of open, closed`},
		{gpus("mechanism: any"), `5:18: mechanism: "any": must be one of peermem, dmabuf, either, both`},
		{gpus("iommu: [off, pt]"), `5:20: iommu: "pt": must be one of off, passthrough, translated`},
		{gpus("acs: off"), `5:12: acs: "off": must be one of clear, redirect`},
		{gpus("ready: yes"), `5:14: ready: "yes": must be one of true, false`},
		{gpus("gpus: 8\n      gpus: 9"), "6:7: expect: the key gpus is already given in line 5"},
		{minimal + "  - name: a\n    match: any\n    expect:\n      gpus: 1", "6:5: types: unreachable: type a above matches every machine; move it to the end"},
		{gpus(`driver: "570\e[2J"`), `5:15: driver: must be one line of printable characters`},
		{gpus("gpus: &n 8\n      nics: *n"), "5:13: gpus: anchors (&), aliases (*), merge keys (<<) and tags (!) are not supported; a te"},
		{
			with("match: any", "match:\n      gpu: x") + "  - name: a\n    match: any\n    expect:\n      gpus: 1",
			"7:5: types: the name a is already given in line 2",
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
	example, err := os.ReadFile("../../deploy/examples/expect.yaml.example")
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
		if r := Judge(file, &verdict.Node{}); r.State != 0 || r.NoType {
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
		_, err := Parse([]byte(text))
		if strings.Contains(text, "file:") {
			_, err = ParseTopologies([]byte(text))
		}
		if err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
}

// after returns the keys that an error lists.
func after(err error) []string {
	_, list, _ := strings.Cut(err.Error(), "; known keys: ")
	return slices.DeleteFunc(strings.Split(list, ", "), func(s string) bool { return s == "" })
}
