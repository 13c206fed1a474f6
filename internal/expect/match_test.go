package expect_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/test/machine"
	"gdr-features/tristate"
)

const (
	machines = "../../testdata/machines/"
	product  = "sys/class/dmi/id/product_name"
	vendor   = "sys/class/dmi/id/sys_vendor"
	board    = "sys/class/dmi/id/board_name"
)

// load returns the text of a machine.
func load(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(machines, name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The first type that matches counts; after one that might match, later ones are not
// tried.
func TestMatch(t *testing.T) {
	const unknown, none = "?", "-"
	for _, row := range []struct {
		name, match string // keys of match, one a line
		machine     string
		files       map[string]string
		want        string // "this", or what the machine is without
	}{
		{name: "by GPU name", match: "gpu: H100*"},
		{name: "by GPU id", match: "gpu: 10DE:2330"},
		{name: "another GPU", match: "gpu: A100*", want: "rest"},
		{name: "one of two", match: "gpu: [A100*, 'h100 sxm5 80gb']"},
		{name: "a part is not the name", match: "gpu: H100", want: "rest"},
		{name: "by NIC", match: "nic: 15b3:1021"},
		{name: "no such NIC", match: "nic: ConnectX-8", want: "rest"},
		{name: "by product", match: "product: Example*"},
		{name: "by all names", match: "product: Example 9000\nvendor: example inc.\nboard: B-1", files: map[string]string{board: "B-1"}},
		{name: "all must hold", match: "product: Example 9000\nvendor: Dell*", want: "rest"},
		{name: "an empty name is none", match: "board: B*", files: map[string]string{board: ""}, want: "rest"},
		{name: "an empty name is any", match: "board: '*'", files: map[string]string{board: ""}},
		{name: "no name to read", match: "product: Example*", files: map[string]string{product: "-"}, want: unknown},
		{name: "no name to read, and another GPU", match: "product: Example*\ngpu: A100*", files: map[string]string{product: "-"}, want: "rest"},
		{name: "by topology", match: "topology: [physical, file]"},
		{name: "not virtual", match: "topology: virtual", want: "rest"},
		{name: "nobody knows whether virtual", match: "topology: virtual", files: map[string]string{"proc/cpuinfo": "-", "sys/class/dmi": "-", devices + "0000:15:01.0": "-", devices + "0000:97:01.0": "-"}, want: unknown},
		{name: "a GPU that does not tell", match: "gpu: A100*", files: map[string]string{gpu0 + "modalias": "-", gpu0 + "device": "-"}, want: unknown},
		{name: "no GPU", match: "topology: physical", machine: "nic-only", want: none},
		{name: "no GPU, but a name", match: "product: Example*", machine: "nic-only"},
		{name: "virtual", match: "topology: virtual", machine: "kvm-h200-flat-passthrough"},
	} {
		t.Run(row.name, func(t *testing.T) {
			text := rails
			if row.machine != "" {
				text = load(t, row.machine)
			}
			want := row.want
			if want == "" {
				want = "this"
			}
			file := "types:\n- name: this\n  match:\n    " + strings.ReplaceAll(row.match, "\n", "\n    ") +
				"\n  expect:\n    gpus: 1\n- name: rest\n  match: any\n  expect:\n    gpus: 1\n"
			for _, shortcut := range []bool{false, true} {
				e := read(t, tree(t, text, "ready", row.files), file, report.Options{OnlyWithGPU: shortcut}).Expected
				got := e.Type
				switch {
				case e.NoType:
					got = none
				case e.Type == "":
					got = unknown
				}
				if got != want {
					t.Errorf("type %s, want %s: %s", got, want, e.Machine)
				}
			}
		})
	}
}

// A machine that has lost all its GPUs deviates if its type is known by name, but
// has no labels.
func TestAllGPUsLost(t *testing.T) {
	const file = "types:\n- name: this\n  match:\n    product: Example*\n  expect:\n    gpus: 8\n    level: PIX\n    nics: '>= 1'\n"
	r := read(t, tree(t, load(t, "nic-only"), "ready", nil), file, report.Options{OnlyWithGPU: true})
	if r.Expected.State != tristate.False || len(r.Labels) != 0 || r.Unknown[label.Expected] {
		t.Errorf("%+v, labels %v", r.Expected, r.Labels)
	}
	if got := odd(r.Expected); len(got) != 2 || got[0] != "gpus.count: 0" || got[1] != "level: no GPU" {
		t.Errorf("%q", got)
	}
	if got := r.Expected.Deviations(); len(got) != 2 || got[0] != "gpus.count" {
		t.Errorf("%q", got)
	}
}

// The example that we ship is right for the machines it names.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("../../deploy/examples/expect.yaml.example")
	if err != nil {
		t.Fatal(err)
	}
	dgx := map[string]string{product: "DGXA100 920-23687-2530-000", vendor: "NVIDIA"}
	for _, row := range []struct {
		machine, state, want string
		files                map[string]string
		odd                  int
	}{
		{machine: "dell-xe9680-h100", want: "hgx-h100"},
		{machine: "dell-xe9680-h100", state: "closed-no-peermem", want: "hgx-h100", odd: 4},
		{machine: "dgx-a100-nps4", files: dgx, want: "dgx-a100"},
		{machine: "dgx-a100-nps4", state: "mofed-5.8", files: dgx, want: "dgx-a100", odd: 1},
		{machine: "nic-only", files: dgx, want: "dgx-a100", odd: 5}, // without a GPU the mechanism is unknown
		{machine: "kvm-h200-flat-passthrough", want: "vm"},
		{machine: "gke-a3ultra-h200", want: "vm"},
		{machine: "a40-8gpu-2cx7-nccl1343"},
	} {
		if row.state == "" {
			row.state = machine.States()[0].Name
		}
		e := read(t, tree(t, load(t, row.machine), row.state, row.files), string(text), report.Options{}).Expected
		if got := odd(e); e.Type != row.want || len(got) != row.odd || e.NoType != (row.want == "") {
			t.Errorf("%s %s: type %q, %q", row.machine, row.state, e.Type, got)
		}
	}
}
