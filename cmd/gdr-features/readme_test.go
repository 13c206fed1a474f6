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
	block := regexp.MustCompile("(?s)<!-- example: (\\S+) (\\S+) -->\n```console\n(.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("no example in the README")
	}
	m, err := machine.Load(filepath.Join(machinesDir, string(block[1])+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	state, ok := m.StateNamed(string(block[2]))
	if !ok {
		t.Fatalf("no state %s", block[2])
	}
	dir := m.Tree(t, state)
	var want bytes.Buffer
	for line := range strings.Lines(string(block[3])) {
		if args, ok := strings.CutPrefix(line, "$ gdr-features "); ok {
			want.WriteString(line)
			run(t.Context(), append([]string{"--root", dir}, strings.Fields(args)...), streams{out: &want, err: &want})
		}
	}
	if got := string(block[3]); got != want.String() {
		t.Errorf("the README shows\n%s\nand the program prints\n%s", got, want.String())
	}
}
