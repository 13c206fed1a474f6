package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/test/machine"
	"gdr-features/test/pages"
)

// repository is the root of the repository.
const repository = "../.."

// allPages are the pages for users.
func allPages(t *testing.T) []pages.Page {
	t.Helper()
	all, err := pages.All(repository)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPages: what a page shows of a command is what it prints, and every other command of a
// block that says on which machine works. With -update the pages are written.
func TestPages(t *testing.T) {
	compared := map[string]int{}
	for _, page := range allPages(t) {
		for _, block := range page.Blocks {
			switch block.Kind {
			case "example", "container":
				compared[page.Path]++
				t.Run(page.Path+" "+block.Args, func(t *testing.T) { compare(t, page, block) })
			case "shell":
				t.Run(page.Path+" "+block.Below, func(t *testing.T) {
					sh := newShell(t, laidOut(t, block.Args))
					sh.prepare(t)
					said, status := sh.run(t, "set -e\n"+block.Text)
					if ended := sh.ended(t); status != 0 || len(ended) <= len(block.Commands()) || strings.Trim(ended, "0") != "" {
						t.Errorf("%s: status %d, of each command %q\n%s", block.Text, status, ended, said)
					}
					if strings.Contains(said, "=NODE ") {
						t.Errorf("%s: no name of a node\n%s", block.Text, said)
					}
				})
			}
		}
	}
	want := map[string]int{"README.md": 1, "docs/dra.md": 1, "docs/env.md": 2, "docs/expect.md": 1, "docs/jobs.md": 6, "docs/log.md": 1, "docs/oncall.md": 6, "docs/pod.md": 1}
	if diff := cmp.Diff(want, compared); diff != "" {
		t.Errorf("examples of each page (-want +got):\n%s", diff)
	}
}

// compare compares a block of commands with what they print, or writes it.
func compare(t *testing.T, page pages.Page, block pages.Block) {
	t.Helper()
	dir := ""
	if block.Kind == "container" {
		dir = contained(t, block.Args)
	} else {
		dir = laidOut(t, block.Args)
	}
	sh, want := newShell(t, dir), ""
	for _, file := range page.Blocks {
		if file.Kind == "file" {
			sh.write(t, file.Args, file.Text)
		}
	}
	for _, command := range block.Commands() {
		said, _ := sh.run(t, command)
		want += "$ " + command + "\n" + said
	}
	if !update {
		if want != block.Text {
			t.Errorf("(-program +page; make golden writes it):\n%s\nthe program prints\n%s", cmp.Diff(want, block.Text), want)
		}
		return
	}
	path := filepath.Join(repository, page.Path)
	text, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(text), block.Text) {
		err = fmt.Errorf("%s: cannot write a block that is indented", page.Path)
	}
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), block.Text, want, 1)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// laidOut writes a machine in a state of its drivers, "MACHINE STATE".
func laidOut(t *testing.T, which string) (dir string) {
	t.Helper()
	name, state, _ := strings.Cut(which, " ")
	dir = t.TempDir()
	if err := machine.LayOut(filepath.Join(machinesDir, name+".txt"), state, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// shell runs commands one after another in a directory, as a user on a machine does.
type shell struct {
	dir, bin string // where it is, and where its programs are
}

// newShell returns a shell in which gdr-features reads the machine in a directory.
func newShell(t *testing.T, root string) shell {
	t.Helper()
	program, err := exec.LookPath("gdr-features")
	if err != nil {
		t.Fatal(err)
	}
	sh := shell{dir: t.TempDir(), bin: t.TempDir()}
	for name, script := range map[string]string{
		"gdr-features": fmt.Sprintf("%s --root %s \"$@\"\ns=$?\nprintf $s >>%s/ended\nexit $s\n", program, root, sh.bin),
		"kubectl":      "shift 3\nexec \"$@\"\n", // exec POD -- COMMAND: there is no other container
	} {
		if err := os.WriteFile(filepath.Join(sh.bin, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return sh
}

// ended returns the exit statuses of gdr-features so far, a digit each.
func (s shell) ended(t *testing.T) string {
	t.Helper()
	statuses, err := os.ReadFile(filepath.Join(s.bin, "ended"))
	if err != nil {
		t.Fatal(err)
	}
	return string(statuses)
}

// prepare writes the files that the commands of the pages read, and sets right variables.
func (s shell) prepare(t *testing.T) {
	t.Helper()
	said, status := s.run(t, "gdr-features env --for nccl -o dotenv | grep NCCL")
	name, value, found := strings.Cut(strings.TrimSpace(said), "=")
	if status != 0 || !found {
		t.Fatalf("status %d: %s", status, said)
	}
	t.Setenv(name, value)
	s.write(t, "job.env", said)
	if err := os.Mkdir(filepath.Join(s.dir, "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(t, "expect.yaml", "types: [{name: any, match: any, expect: {gpus: 8}}]\n")
}

// write writes a file in the directory where the commands run.
func (s shell) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run returns what a command prints, and its exit status.
func (s shell) run(t *testing.T, command string) (said string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "PATH="+s.bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", command, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// placeholders are words of the commands within the text, and what a user would write.
var placeholders = strings.NewReplacer(
	"--expect FILE", "--expect expect.yaml", "--check FILE", "--check job.env", "--check [FILE]", "--check job.env",
	"/etc/gdr-features/expect.yaml", "expect.yaml", "CODE", "NoNIC", "REASON", "NoNIC", "GPU NIC", "GPU0 mlx5_0", "GPU [NIC]", "GPU0 mlx5_0", "FRAMEWORK", "nccl", "--for NAME", "--for nccl",
	"--root NODE ", "", "--image DIR", "--image .", "copy DIR", "copy .", "proof read DIR", "proof read out", "proof read PATH...", "proof read out", "copy /gdr", "copy .", "[", "", "]", "")

// clustered are the commands that test/e2e runs, in a cluster.
var clustered = regexp.MustCompile(`^gdr-features (?:run|nodes|diff)\b`)

// TestCommands runs the commands of gdr-features that a page shows within the text, in a Pod or
// at the end of a pipe too. Some leave the name of the program out.
func TestCommands(t *testing.T) {
	sh := newShell(t, laidOut(t, "dell-xe9680-h100 ready"))
	sh.prepare(t)
	var names []string
	for _, c := range (&app{}).command().Commands() {
		names = append(names, c.Name())
	}
	bare := regexp.MustCompile(`^(?:` + strings.Join(names, "|") + `) `)
	parts := regexp.MustCompile(` \| | -- /|^sudo `)
	ran := map[string]bool{}
	for _, page := range allPages(t) {
		for _, span := range page.Spans {
			for _, command := range parts.Split(span, -1) {
				command = bare.ReplaceAllString(placeholders.Replace(command), "gdr-features $0")
				if command == "gdr-features env" {
					command += " -o json" // alone it says that --for is missing
				}
				if clustered.MatchString(command) {
					command += " --help" // which refuses unknown flags
				}
				if ran[command] || pages.Program(command) != "gdr-features" {
					continue
				}
				ran[command] = true
				said, status := sh.run(t, command)
				if status != 0 && status != 2 && status != 3 || strings.Contains(said, "panic:") {
					t.Errorf("%s: %s: status %d\n%s", page.Path, span, status, said)
				}
			}
		}
	}
	if len(ran) < 35 {
		t.Errorf("only %d commands", len(ran))
	}
}

// TestMonitoringReasons: the page about alerts says of each value of gdr.reason what to do.
func TestMonitoringReasons(t *testing.T) {
	_, list, _ := strings.Cut(read(t, filepath.Join(repository, "README.md")), "\n`gdr.reason` is the first of these that applies:")
	list, _, _ = strings.Cut(list, "\n\n")
	page, count := read(t, filepath.Join(repository, "deploy/monitoring/README.md")), 0
	for _, word := range regexp.MustCompile("`([A-Z][A-Za-z0-9]+)`").FindAllStringSubmatch(list, -1) {
		count++
		if !strings.Contains(page, "\n| "+word[0]) && !strings.Contains(page, "` "+word[0]) {
			t.Errorf("no row for %s", word[1])
		}
	}
	if count < 17 {
		t.Errorf("only %d reasons in README.md", count)
	}
}
