package main

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/test/machine"
	"gdr-features/test/testsize"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing")

const (
	machinesDir = "../../testdata/machines"
	goldenDir   = "../../testdata/golden"
)

// surfaces are the outputs kept as golden files. JSON of large machines is left to
// the tests that compare values: no reviewer reads a thousand pairs. Pages are large
// and kept for one machine only; the tests of internal/picture check all.
var surfaces = []struct {
	file, args string
	small      bool
	of         []string // these machines alone; nil for all
}{
	{"topo.txt", "topo", false, nil},
	{"check.txt", "check", false, nil},
	{"labels.txt", "labels", false, nil},
	{"topo.json", "topo -o json", true, nil},
	{"check.json", "check -o json", true, nil},
	{"labels.json", "labels -o json", true, nil},
	{"wide.txt", "topo -o wide", false, nil},
	{"explain.txt", "explain", false, nil},
	{"explain.json", "explain -o json", true, nil},
	{"topo.dot", "topo -o dot", false, nil},
	{"env.json", "env -o json", false, []string{"bluefield3-l40s", "epyc-3gpu-phb-nccltests320", "vfs-with-pf"}},
	{"topo.html", "topo -o html", false, []string{"bluefield3-l40s"}},
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

// smallMachine is one whose JSON a person can review.
const smallMachine = 30

// goldenOf returns the golden files of a machine, and the commands whose output each keeps.
func goldenOf(m *machine.Machine) map[string][]string {
	files := map[string][]string{}
	for _, s := range surfaces {
		if s.small && len(m.Functions) > smallMachine || s.of != nil && !slices.Contains(s.of, m.Name) {
			continue
		}
		files[filepath.Join(goldenDir, m.Name, s.file)] = []string{s.args}
	}
	for _, s := range ofPairs {
		if paired(m) {
			files[filepath.Join(goldenDir, m.Name, s.file)] = s.args(m)
		}
	}
	return files
}

// TestGolden compares what every command prints on every machine.
func TestGolden(t *testing.T) {
	for _, m := range testsize.Share(machine.All(t, machinesDir)) {
		t.Run(m.Name, func(t *testing.T) {
			dir := m.Tree(t, m.Ready())
			for file, commands := range goldenOf(m) {
				var out []byte
				for _, args := range commands {
					out = append(out, printed(t, dir, args)...)
				}
				golden(t, file, out)
			}
		})
	}
}

// TestGoldenFilesAreWritten: each file below testdata/golden is one that a test compares.
func TestGoldenFilesAreWritten(t *testing.T) {
	written := map[string]bool{filepath.Join(goldenDir, snapshotMachine, snapshotFile): true}
	for _, m := range machine.All(t, machinesDir) {
		for file := range goldenOf(m) {
			written[file] = true
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
		case *update:
			return os.Remove(file)
		}
		t.Errorf("no test writes %s (make golden removes it)", file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// printed is what a command prints on a machine.
func printed(t *testing.T, dir, args string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	status := run(t.Context(), append([]string{"--root", dir}, strings.Fields(args)...), streams{out: &out, err: &errs})
	for line := range strings.Lines(errs.String()) {
		if !strings.HasPrefix(line, "# ") {
			t.Errorf("%s: status %d, %s", args, status, line)
		}
	}
	if status == 1 {
		t.Errorf("%s: status 1", args)
	}
	return append(errs.Bytes(), out.Bytes()...)
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
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
		t.Fatalf("%v (make golden man writes it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
