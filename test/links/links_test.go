// Package links_test holds apart what programs link: the agent runs on every node, and the
// plugin of kubectl on other systems.
package links_test

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "gdr-features/"

// rooms are the packages that only some commands need.
var rooms = []string{
	"internal/rooms/", "internal/fleet/", "source/container", "internal/render", "internal/cli/logcommand", "internal/cli/imagecommand",
	"internal/cli/nodescommand", "deploy/examples",
}

// readers are the packages that read a machine or judge it.
var readers = []string{"host", "source", "topology", "verdict", "internal/report", "internal/findings", "internal/nodelabel", "internal/expect"}

// TestLinks: no program links what it never calls. The test prints what each links.
func TestLinks(t *testing.T) {
	lines := map[string]int{}
	for _, program := range []struct {
		name  string
		never []string
		needs string // a package that it is known to link: the list is not empty
	}{
		{"gdr-features", []string{"internal/fleet/nodes", "internal/cli/imagecommand", "deploy/examples", "internal/agent", "internal/publish", "internal/monitor"}, "internal/rooms/pod"},
		{"gdr-features-agent", rooms, "internal/report"},
		{"kubectl-gdr", append(slices.Clone(readers), "internal/rooms/", "internal/cli/machineflags"), "internal/fleet/nodes"},
	} {
		t.Run(program.name, func(t *testing.T) {
			packages := linked(t, program.name)
			for _, name := range slices.Sorted(maps.Keys(packages)) {
				t.Logf("%6d %s", packages[name], name)
				lines[program.name] += packages[name]
				if slices.ContainsFunc(program.never, func(other string) bool { return within(name, other) }) {
					t.Errorf("links %s", name)
				}
			}
			t.Logf("%6d in all", lines[program.name])
			if packages[program.needs] == 0 {
				t.Errorf("does not link %s: %v", program.needs, packages)
			}
		})
	}
	if most := lines["gdr-features"] * 4 / 5; lines["gdr-features-agent"] > most {
		t.Errorf("the agent links %d lines, more than four fifths of those of gdr-features: is each needed on every node?", lines["gdr-features-agent"])
	}
}

// within reports whether a package is another one, or below it.
func within(name, other string) bool {
	return name == other || strings.HasPrefix(name, strings.TrimSuffix(other, "/")+"/")
}

// linked are the packages of this module that a program links, with their lines.
func linked(t *testing.T, program string) map[string]int {
	t.Helper()
	const format = `{{if not .Standard}}{{.ImportPath}}{{range .GoFiles}}|{{$.Dir}}/{{.}}{{end}}{{end}}`
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", format, module+"cmd/"+program).Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for line := range strings.Lines(string(out)) {
		name, files, _ := strings.Cut(strings.TrimSpace(line), "|")
		name, ours := strings.CutPrefix(name, module)
		if !ours {
			continue
		}
		for file := range strings.SplitSeq(files, "|") {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all[name] += bytes.Count(text, []byte("\n"))
		}
	}
	return all
}
