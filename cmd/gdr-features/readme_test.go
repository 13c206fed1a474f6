package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gdr-features/internal/machine"
)

// TestReadme: what the README and other pages show is what the program prints.
func TestReadme(t *testing.T) {
	for page, examples := range map[string]int{"README.md": 2, "docs/dra.md": 1} {
		text, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := regexp.MustCompile("(?s)<!-- example: (\\S+) (\\S+) -->\n```console\n(.*?)```").FindAllSubmatch(text, -1)
		if len(blocks) != examples {
			t.Fatalf("%d examples in %s", len(blocks), page)
		}
		for _, block := range blocks {
			example(t, page, string(block[1]), string(block[2]), string(block[3]))
		}
	}
}

// example runs the commands of an example on a machine in a state. Variables may be set
// before a command.
func example(t *testing.T, page, name, stateName, shown string) {
	t.Helper()
	m, err := machine.Load(filepath.Join(machinesDir, name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	state, ok := m.StateNamed(stateName)
	if !ok {
		t.Fatalf("no state %s", stateName)
	}
	exampleIn(t, page, m.Tree(t, state), shown)
}

// exampleIn runs the commands of an example on the machine in a directory. Of what a command
// prints only the end is shown if it is followed by "| tail -n N".
func exampleIn(t *testing.T, page, dir, shown string) {
	t.Helper()
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
		args, tail, _ := strings.Cut(args, "| tail -n ")
		var said bytes.Buffer
		run(t.Context(), append([]string{"--root", dir}, strings.Fields(args)...), streams{out: &said, err: &said})
		lines := slices.Collect(strings.Lines(said.String()))
		if n, err := strconv.Atoi(strings.TrimSpace(tail)); err == nil {
			lines = lines[max(0, len(lines)-n):]
		}
		want.WriteString(strings.Join(lines, ""))
	}
	if got := want.String(); got != shown {
		t.Errorf("%s shows\n%s\nand the program prints\n%s", page, shown, got)
	}
}
