package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gdr-features/internal/machine"
)

// TestReadme: what the README shows is what the program prints.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)<!-- example: (\\S+) (\\S+) -->\n```console\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d examples in the README", len(blocks))
	}
	for _, block := range blocks {
		example(t, string(block[1]), string(block[2]), string(block[3]))
	}
}

// example runs the commands of an example on a machine in a state. Variables may be set
// before a command.
func example(t *testing.T, name, stateName, shown string) {
	t.Helper()
	m, err := machine.Load(filepath.Join(machinesDir, name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	state, ok := m.StateNamed(stateName)
	if !ok {
		t.Fatalf("no state %s", stateName)
	}
	dir := m.Tree(t, state)
	var want bytes.Buffer
	for line := range strings.Lines(shown) {
		before, args, ok := strings.Cut(line, "gdr-features ")
		if !ok || !strings.HasPrefix(line, "$ ") {
			continue
		}
		for _, variable := range strings.Fields(before)[1:] {
			name, value, _ := strings.Cut(variable, "=")
			t.Setenv(name, value)
		}
		want.WriteString(line)
		run(t.Context(), append([]string{"--root", dir}, strings.Fields(args)...), streams{out: &want, err: &want})
	}
	if got := want.String(); got != shown {
		t.Errorf("the README shows\n%s\nand the program prints\n%s", shown, got)
	}
}
