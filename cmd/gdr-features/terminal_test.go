package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"gdr-features/test/machine"
)

// On terminals of these widths what is printed of these machines is kept: one with many NICs,
// one with two, and one in a virtual machine.
var (
	terminalColumns  = []int{80, 200}
	terminalMachines = []string{"dell-xe9680-h100", "bluefield3-l40s", "aws-g5-a10g"}
	terminalCommands = []string{"topo", "topo -o wide", "check", "check -o wide", "explain", "explain GPU0", "explain --help", "env --for nccl"}
)

func terminalFile(machine string, columns int) string {
	return filepath.Join(goldenDir, machine, fmt.Sprintf("terminal-%d.txt", columns))
}

// TestTerminal: on a terminal no line is wider than it, but those that are for programs.
func TestTerminal(t *testing.T) {
	for _, name := range terminalMachines {
		m, err := machine.Load(filepath.Join(machinesDir, name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		tree := m.Tree(t, secondState(m))
		for _, columns := range terminalColumns {
			var all bytes.Buffer
			for _, args := range terminalCommands {
				var out, errs bytes.Buffer
				run(t.Context(), append([]string{"--root", tree}, strings.Fields(args)...), streams{out: &out, err: &errs, terminal: true, columns: columns, limit: patient})
				for line := range strings.Lines(out.String()) {
					if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns && !strings.HasPrefix(args, "env") {
						t.Errorf("%s: %s: %d columns: %s", name, args, n, line)
					}
				}
				fmt.Fprintf(&all, "$ gdr-features %s\n%s\n", args, out.String())
			}
			golden(t, terminalFile(name, columns), all.Bytes())
		}
	}
}
