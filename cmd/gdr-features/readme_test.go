package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"gdr-features/internal/machine"
)

// pages are the pages for users.
func pages(t *testing.T) (paths []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "deploy/*.md", "deploy/*/*.md"} {
		found, err := filepath.Glob("../../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	if len(paths) < 12 {
		t.Fatalf("only the pages %v", paths)
	}
	return paths
}

// consoles are the blocks of commands on a page, each with the comment before it, if any:
//
//	<!-- example: MACHINE STATE -->   run here on a machine of testdata in a state of its drivers
//	<!-- container: NAME -->          run here in one of the containers of pod_test.go
//	<!-- cluster -->                  run by test/e2e, on the nodes of its TestReadme
//	others                            run by the tests that look for them
var consoles = regexp.MustCompile("(?m)(?:^<!-- ([a-z]+)(?:: (.*?))? -->\n)?^```console\n((?s:.*?))^```")

// answers are the pages on which every command is run by a test.
var answers = map[string]bool{"administrator.md": true, "jobs.md": true, "oncall.md": true}

// TestPages: what a page shows of a command is what it prints. With -update the pages are
// written.
func TestPages(t *testing.T) {
	compared := map[string]int{}
	for _, path := range pages(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text, page := string(data), filepath.Base(path)
		for _, block := range consoles.FindAllStringSubmatch(text, -1) {
			kind, args, shown := block[1], strings.Fields(block[2]), block[3]
			var dir string
			switch kind {
			case "example":
				dir = laidOut(t, args[0], args[1])
			case "container":
				dir = contained(t, args[0])
			case "":
				if answers[page] {
					t.Errorf("%s does not say where these commands run:\n%s", page, shown)
				}
				continue
			default:
				continue
			}
			compared[page]++
			t.Run(page+" "+block[2], func(t *testing.T) {
				want := example(t, dir, shown)
				if *update {
					text = strings.Replace(text, shown, want, 1)
				} else if want != shown {
					t.Errorf("(-program +page):\n%s\nthe program prints\n%s", cmp.Diff(want, shown), want)
				}
			})
		}
		if *update && text != string(data) {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := map[string]int{"README.md": 3, "dra.md": 1, "jobs.md": 5, "oncall.md": 5}
	if diff := cmp.Diff(want, compared); diff != "" {
		t.Errorf("examples of each page (-want +got):\n%s", diff)
	}
}

// laidOut writes a machine in a state of its drivers.
func laidOut(t *testing.T, name, state string) (dir string) {
	t.Helper()
	m, err := machine.Load(filepath.Join(machinesDir, name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	s, ok := m.StateNamed(state)
	if !ok {
		t.Fatalf("no state %s", state)
	}
	return m.Tree(t, s)
}

// command is a line of an example: variables, the arguments of gdr-features, and what its
// output goes through.
var command = regexp.MustCompile(`^\$ ((?:[A-Z_]+=\S+ )*)gdr-features ?([^|\n]*)(?:\| (.*))?\n$`)

// example returns what the commands of an example print on the machine in a directory. They
// share a working directory.
func example(t *testing.T, dir, shown string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	var want bytes.Buffer
	for line := range strings.Lines(shown) {
		if !strings.HasPrefix(line, "$ ") {
			continue
		}
		parts := command.FindStringSubmatch(line)
		if parts == nil {
			t.Fatalf("cannot run %q", line)
		}
		for variable := range strings.FieldsSeq(parts[1]) {
			name, value, _ := strings.Cut(variable, "=")
			t.Setenv(name, value)
		}
		var said bytes.Buffer
		run(t.Context(), append([]string{"--root", dir}, strings.Fields(parts[2])...), streams{out: &said, err: &said, now: time.Now})
		want.WriteString(line)
		want.Write(through(t, parts[3], said.Bytes()))
	}
	return want.String()
}

// through gives what the rest of a pipe makes of an output.
func through(t *testing.T, pipe string, said []byte) []byte {
	t.Helper()
	if pipe == "" {
		return said
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", pipe)
	cmd.Stdin = bytes.NewReader(said)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", pipe, err, out)
	}
	return out
}

// invocation is a call of gdr-features in a block of commands or between backquotes.
var invocation = regexp.MustCompile("(?m)(?:^[ $]*|`|\\$\\(|\\| |&& )(?:[A-Z_]+=\\S+ )*gdr-features((?: +(?:-f FILE|[^\\s|&;`)#>\\\\]+))+)")

// TestPagesCommands: every command and flag of gdr-features that a page names exists.
func TestPagesCommands(t *testing.T) {
	calls := 0
	for _, path := range pages(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(path) == "CHANGELOG.md" {
			continue // names what is gone
		}
		for _, call := range invocation.FindAllStringSubmatch(string(text), -1) {
			calls++
			a := &app{}
			if err := accepts(a.command(), strings.Fields(call[1])); err != nil {
				t.Errorf("%s: gdr-features%s: %v", path, call[1], err)
			}
		}
	}
	if calls < 60 {
		t.Errorf("only %d calls found", calls)
	}
}

// accepts returns an error if there is no such command or it has no such flag.
func accepts(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	return cmd.ParseFlags(rest)
}
