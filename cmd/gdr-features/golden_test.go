package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/test/machine"
	"gdr-features/test/testsize"
)

// update: write the golden files instead of comparing (make golden).
var update = os.Getenv("UPDATE") != ""

// differing counts the golden files that differ. Only the first few are shown: TestMain counts
// the others.
var differing atomic.Int64

const (
	shownFiles = 3
	shownLines = 40
)

const (
	machinesDir = "../../testdata/machines"
	goldenDir   = "../../testdata/golden"
)

// forms are the machines whose outputs for programs are kept: one with ConnectX, one with EFA
// in a virtual machine, and one with virtual functions. Of the others TestJSON checks them.
var forms = []string{"bluefield3-l40s", "aws-g5-a10g", "vfs-with-pf"}

// surfaces are the outputs kept as golden files.
var surfaces = []struct {
	file, args string
	of         []string // these machines alone; nil for all
}{
	{"topo.txt", "topo", nil},
	{"check.txt", "check", nil},
	{"labels.txt", "labels", nil},
	{"wide.txt", "topo -o wide", nil},
	{"explain.txt", "explain", nil},
	{"check-wide.txt", "check -o wide", forms},
	{"gpu.json", "explain GPU0 -o json", forms[:1]},
	{"topo.json", "topo -o json", forms},
	{"check.json", "check -o json", forms},
	{"labels.json", "labels -o json", forms},
	{"explain.json", "explain -o json", forms},
	{"topo.dot", "topo -o dot", forms},
	{"env.json", "env -o json", []string{"bluefield3-l40s", "epyc-3gpu-phb-nccltests320", "vfs-with-pf"}},
	{"topo.html", "topo -o html", []string{"bluefield3-l40s"}},
}

// ofPairs are outputs that a machine has only with GPUs and NICs.
var ofPairs = []struct {
	file string
	args func(m *machine.Machine) []string
}{
	{"claim.yaml", func(*machine.Machine) []string { return []string{"claim"} }},
	{"nccl.xml", func(*machine.Machine) []string { return []string{"topo -o nccl-xml"} }},
	{"way.txt", func(m *machine.Machine) []string {
		near, far := "explain 0 "+endNIC(m, false), "explain 0 "+endNIC(m, true)
		return slices.Compact([]string{near, far})
	}},
}

// endNIC names the first or the last NIC of a description.
func endNIC(m *machine.Machine, last bool) string {
	name := ""
	for i := range m.Functions {
		f := &m.Functions[i]
		if f.IsNIC() && (name == "" || last) {
			if name, _, _ = strings.Cut(f.Attrs["rdma"], ","); name == "" {
				name = f.Address
			}
		}
	}
	return name
}

func paired(m *machine.Machine) bool {
	return endNIC(m, false) != "" && slices.ContainsFunc(m.Functions, func(f machine.Function) bool { return f.IsGPU() })
}

// output is a golden file and the commands that print it, one after the other.
type output struct {
	file     string
	commands []string
}

// goldenOf are the outputs that are kept of a machine that is ready, without directory.
func goldenOf(m *machine.Machine) []output {
	var all []output
	for _, s := range surfaces {
		if s.of == nil || slices.Contains(s.of, m.Name) {
			all = append(all, output{s.file, []string{s.args}})
		}
	}
	for _, s := range ofPairs {
		if paired(m) {
			all = append(all, output{s.file, s.args(m)})
		}
	}
	return all
}

// second is what is kept of a machine in its second state.
var second = []output{{"check.txt", []string{"check"}}, {"labels.txt", []string{"labels"}}}

// secondState is a state in which a machine's software is not ready. The name of the machine
// chooses it, so that the machines show different ones.
func secondState(m *machine.Machine) machine.State {
	broken := [...]string{"no-drivers", "vfio", "nic-unbound", "no-rdma", "ports-down", "closed-no-peermem", "inbox-old"}
	states := slices.DeleteFunc(m.States(), func(s machine.State) bool { return !slices.Contains(broken[:], s.Name) })
	return states[crc32.ChecksumIEEE([]byte(m.Name))%uint32(len(states))]
}

// statusFile holds the commands and their exit status.
const statusFile = "status.txt"

// goldenDirs are the directories of a machine, and what is kept in each.
func goldenDirs(m *machine.Machine) map[string][]output {
	dir := filepath.Join(goldenDir, m.Name)
	return map[string][]output{dir: goldenOf(m), filepath.Join(dir, secondState(m).Name): second}
}

// TestGolden compares what every command prints on every machine, and its exit status.
func TestGolden(t *testing.T) {
	for _, m := range testsize.Share(machine.All(t, machinesDir)) {
		t.Run(m.Name, func(t *testing.T) {
			for dir, outputs := range goldenDirs(m) {
				state := m.Ready()
				if dir != filepath.Join(goldenDir, m.Name) {
					state = secondState(m)
				}
				compareAll(t, m.Tree(t, state), dir, outputs)
			}
		})
	}
}

// compareAll compares outputs of the machine in a tree with the files in a directory.
func compareAll(t *testing.T, tree, dir string, outputs []output) {
	t.Helper()
	var statuses bytes.Buffer
	for _, o := range outputs {
		var text []byte
		for _, args := range o.commands {
			out, status := printed(t, tree, args)
			text = append(text, out...)
			fmt.Fprintf(&statuses, "%d gdr-features %s\n", status, args)
		}
		golden(t, filepath.Join(dir, o.file), text)
	}
	golden(t, filepath.Join(dir, statusFile), statuses.Bytes())
}

// TestJSON: what programs read is JSON on every machine, in both states.
func TestJSON(t *testing.T) {
	for _, m := range testsize.Share(machine.All(t, machinesDir)) {
		for _, state := range []machine.State{m.Ready(), secondState(m)} {
			tree := m.Tree(t, state)
			for _, args := range []string{"topo -o json", "check -o json", "labels -o json", "explain -o json", "env -o json"} {
				if out, status := printed(t, tree, args); !json.Valid(out) {
					t.Errorf("%s, %s: %s: status %d, %.200s", m.Name, state.Name, args, status, out)
				}
			}
		}
	}
}

// TestGoldenFilesAreWritten: each file below testdata/golden is one that a test compares.
func TestGoldenFilesAreWritten(t *testing.T) {
	written := map[string]bool{filepath.Join(goldenDir, snapshotMachine, snapshotFile): true}
	for _, m := range machine.All(t, machinesDir) {
		for dir, outputs := range goldenDirs(m) {
			written[filepath.Join(dir, statusFile)] = true
			for _, o := range outputs {
				written[filepath.Join(dir, o.file)] = true
			}
		}
	}
	for _, name := range terminalMachines {
		for _, columns := range terminalColumns {
			written[terminalFile(name, columns)] = true
		}
	}
	for _, name := range slurmMachines {
		written[slurmFile(name)] = true
	}
	for _, e := range podGoldens {
		written[filepath.Join(goldenDir, podMachine, e.file)] = true
	}
	for _, e := range expectations {
		written[filepath.Join(goldenDir, expectedMachine, e.file)] = true
	}
	err := filepath.WalkDir(goldenDir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir() || written[file]:
			return err
		case update:
			return os.Remove(file)
		}
		t.Errorf("no test writes %s (make golden removes it)", file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// printed is what a command prints on a machine, and its exit status.
func printed(t *testing.T, dir, args string) (text []byte, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), append([]string{"--root", dir}, strings.Fields(args)...), streams{out: &out, err: &errs, limit: patient})
	for line := range strings.Lines(errs.String()) {
		if !strings.HasPrefix(line, "# ") {
			t.Errorf("%s: status %d, %s", args, status, line)
		}
	}
	if status == 1 {
		t.Errorf("%s: status 1", args)
	}
	return append(errs.Bytes(), out.Bytes()...), status
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (make golden writes it)", err)
	}
	diff := cmp.Diff(string(want), string(got))
	switch {
	case diff == "":
	case differing.Add(1) > shownFiles:
		t.Fail()
	default:
		lines := strings.SplitAfter(diff, "\n")
		if more := len(lines) - shownLines; more > 0 {
			lines = append(lines[:shownLines], fmt.Sprintf("and %d more lines\n", more))
		}
		t.Errorf("%s (-want +got; make golden writes it):\n%s", file, strings.Join(lines, ""))
	}
}
