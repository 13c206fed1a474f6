package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/test/machine"
)

// expectedMachine is of a type that the shipped example of expectations describes.
const expectedMachine = "dell-xe9680-h100"

var expectations = []struct{ state, args, file string }{
	{"ready", "check", "expected.txt"},
	{"closed-no-peermem", "check", "deviates.txt"},
	{"closed-no-peermem", "check -o json", "deviates.json"},
}

// TestGoldenExpected keeps what check prints of a machine of the shipped example,
// as expected and not.
func TestGoldenExpected(t *testing.T) {
	m, err := machine.Load(filepath.Join(machinesDir, expectedMachine+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range expectations {
		state, ok := machine.StateNamed(test.state)
		if !ok {
			t.Fatalf("no state %q", test.state)
		}
		var out, errs bytes.Buffer
		args := append([]string{"--root", m.Tree(t, state)}, strings.Fields(test.args)...)
		status := run(t.Context(), append(args, "--expect", "../../deploy/examples/expect.yaml.example"), streams{out: &out, err: &errs, limit: patient})
		if want := map[string]int{"ready": 0, "closed-no-peermem": 2}[test.state]; status != want || errs.Len() > 0 {
			t.Errorf("%s %s: status %d, %s", test.state, test.args, status, errs.String())
		}
		golden(t, filepath.Join(goldenDir, expectedMachine, test.file), out.Bytes())
	}
}
