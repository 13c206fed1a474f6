package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/machine"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing")

const (
	machinesDir = "../../testdata/machines"
	goldenDir   = "../../testdata/golden"
)

// surfaces are the outputs kept as golden files. JSON of large machines is left
// to the tests that compare values: nobody reads a thousand pairs.
var surfaces = []struct {
	file, args string
	small      bool
}{
	{"topo.txt", "topo", false},
	{"check.txt", "check", false},
	{"labels.txt", "labels", false},
	{"topo.json", "topo -o json", true},
	{"check.json", "check -o json", true},
	{"labels.json", "labels -o json", true},
}

// smallMachine is one whose JSON a person can review.
const smallMachine = 30

// TestGolden compares what every verb prints on every machine.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(machinesDir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal("no machines")
	}
	for _, file := range files {
		m, err := machine.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(m.Name, func(t *testing.T) {
			dir := m.Tree(t, machine.States()[0])
			for _, s := range surfaces {
				if s.small && len(m.Functions) > smallMachine {
					continue
				}
				var out, errs bytes.Buffer
				status := run(t.Context(), append([]string{"--root", dir}, strings.Fields(s.args)...), streams{out: &out, err: &errs})
				if status == 1 || errs.Len() > 0 {
					t.Errorf("%s: status %d, %s", s.args, status, errs.String())
				}
				golden(t, filepath.Join(goldenDir, m.Name, s.file), out.Bytes())
			}
		})
	}
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
