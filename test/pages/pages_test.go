package pages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/test/pages"
)

const repository = "../.."

func all(t *testing.T) []pages.Page {
	t.Helper()
	all, err := pages.All(repository)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// read returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRead: a page as people write it.
func TestRead(t *testing.T) {
	const text = "# A `title`\n\n" +
		"Run `a --b\nc`, then:\n\n<!-- example: m ready -->\n```console\n$ a b \\\n  c\nprinted\n$ X=1 d\n```\n\n" +
		"## Next\n\n| a |\n|---|\n| `a \\| b` |\n\n1. Item:\n\n   <!-- cluster -->\n   ```console\n   a d # why\n   ```\n\n```yaml\na: b\n```\n"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "page.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := pages.Read(dir, "page.md")
	if err != nil {
		t.Fatal(err)
	}
	want := pages.Page{
		Path: "page.md",
		Blocks: []pages.Block{
			{Below: "# A `title`", Language: "console", Kind: "example", Args: "m ready", Text: "$ a b \\\n  c\nprinted\n$ X=1 d\n"},
			{Below: "## Next", Language: "console", Kind: "cluster", Text: "a d # why\n"},
			{Below: "## Next", Language: "yaml", Text: "a: b\n"},
		},
		Spans: []string{"title", "a --b c", "a | b"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a b    c", "X=1 d", "a d # why", "a --b c", "a | b"}, got.Commands("a", "d")); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

// TestKinds: every block of commands says what runs it, and the tests that it names exist.
func TestKinds(t *testing.T) {
	var tests strings.Builder
	for _, pattern := range []string{"test/*/*_test.go", "examples/*/*_test.go"} {
		paths, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			tests.WriteString(read(t, strings.TrimPrefix(path, repository)))
		}
	}
	blocks := 0
	for _, page := range all(t) {
		for _, b := range page.Blocks {
			if b.Language != "console" {
				if b.Language != "yaml" && b.Language != "text" {
					t.Errorf("%s, %s: a block is console, yaml or text, not %q:\n%s", page.Path, b.Below, b.Language, b.Text)
				}
				continue
			}
			blocks++
			if !slices.Contains(pages.Kinds, b.Kind) || b.Kind == "test" && len(b.Tests()) == 0 {
				t.Errorf("%s, %s: a comment must say what runs these commands, not %q:\n%s", page.Path, b.Below, b.Kind, b.Text)
			}
			for _, name := range b.Tests() {
				if !strings.Contains(tests.String(), "\nfunc "+name+"(") {
					t.Errorf("%s, %s: there is no test %q", page.Path, b.Below, name)
				}
			}
			for _, command := range b.Commands() {
				if b.Kind == "make" && pages.Program(command) != "make" {
					t.Errorf("%s, %s: not a target of make: %s", page.Path, b.Below, command)
				}
			}
		}
	}
	if blocks < 40 {
		t.Errorf("only %d blocks", blocks)
	}
}

// byHand are the targets of make, and the checks of hack/check.sh, that .ci/run full leaves out:
// they need more than it has, write files of the repository, or do a part of another.
var byHand = []string{"check", "clean", "fleet", "frameworks", "golden", "gpu-operator", "nccl"}

// within are targets that .ci/run runs within another step.
var within = map[string]string{"build": "run", "image": "hack/check.sh", "install": "long", "release": "hack/check.sh"}

// TestMake: the targets of make and the checks of hack/check.sh are listed, at most 16 targets;
// .ci/run full runs them; and the pages name no others.
func TestMake(t *testing.T) {
	ci := read(t, ".ci/run")
	known := map[string][]string{}
	for program, list := range map[string][]string{"make": {"make", "--no-print-directory", "-C", repository, "help"}, "hack/check.sh": {repository + "/hack/check.sh"}} {
		out, err := exec.CommandContext(t.Context(), list[0], list[1:]...).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range regexp.MustCompile(`(?m)^  ([a-z0-9-]+) .*$`).FindAllStringSubmatch(string(out), -1) {
			known[program] = append(known[program], line[1])
			if len(line[0]) > 80 {
				t.Errorf("more than 80 columns: %s", line[0])
			}
		}
		for _, name := range known[program] {
			step := name
			if by, ok := within[name]; ok && program == "make" {
				step = by
			}
			if !slices.Contains(byHand, name) && !regexp.MustCompile(`[ /]`+regexp.QuoteMeta(step)+`[ ;"\n]`).MatchString(ci) {
				t.Errorf(".ci/run does not run %s %s", program, name)
			}
		}
	}
	if n := len(known["make"]); n == 0 || n > 16 || len(known["hack/check.sh"]) == 0 {
		t.Errorf("make help lists %d targets", n)
	}
	for _, page := range all(t) {
		for program, names := range known {
			for _, command := range page.Commands(program) {
				command, _, _ = strings.Cut(command, "#")
				_, words, _ := strings.Cut(command, program)
				for name := range strings.FieldsSeq(words) {
					if name != "help" && name != "..." && name != "NAME" && !strings.Contains(name, "=") && !slices.Contains(names, name) {
						t.Errorf("%s: %s: there is no %s", page.Path, command, name)
					}
				}
			}
		}
	}
}

// TestGo: the commands of go that the pages name work, but for those that change go.mod or look
// into a release, which test/release does. Of tests it looks only whether there are any.
func TestGo(t *testing.T) {
	ran := 0
	for _, page := range all(t) {
		for _, command := range page.Commands("go") {
			words := strings.Fields(strings.NewReplacer("NAME", "dell-xe9680-h100", "DIR", t.TempDir()).Replace(command))
			i := slices.Index(words, "go")
			if len(words) < i+3 || slices.Contains([]string{"get", "mod", "version"}, words[i+1]) {
				continue
			}
			ran++
			t.Run(command, func(t *testing.T) {
				if words[i+1] == "test" {
					hasTests(t, filepath.Dir(page.Path), words[i+2:])
					return
				}
				cmd := exec.CommandContext(t.Context(), "go", words[i+1:]...)
				cmd.Dir = repository
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
	if ran < 6 {
		t.Errorf("only %d commands", ran)
	}
}

// hasTests checks that go test with some arguments finds tests, in a directory of the repository
// if they name "." and in its root otherwise.
func hasTests(t *testing.T, here string, args []string) {
	t.Helper()
	name, dirs := "Test", 0
	for i, arg := range args {
		if arg == "-run" {
			name = args[i+1]
		}
		dir, isDir := strings.CutPrefix(arg, "./")
		if arg == "." {
			dir, isDir = here, true
		}
		if !isDir {
			continue
		}
		dirs++
		if dir == "..." {
			continue // all of them
		}
		paths, err := filepath.Glob(filepath.Join(repository, strings.Replace(dir, "/...", "/*", 1), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(paths, func(path string) bool {
			return regexp.MustCompile(`(?m)^func Test\w*` + strings.TrimPrefix(name, "Test")).MatchString(read(t, strings.TrimPrefix(path, repository)))
		}) {
			t.Errorf("no test %s in %s", name, arg)
		}
	}
	if dirs == 0 {
		t.Error("no directory is named")
	}
}

// TestImports: the table of packages in CONTRIBUTING.md lists all of them, in the order of their imports.
func TestImports(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "CONTRIBUTING.md"), "| package | job |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]int{}
	for i, row := range strings.Split(table, "\n") {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			rows[name[1]] = i
		}
	}
	if len(rows) < 35 {
		t.Fatalf("only %d packages", len(rows))
	}
	rowOf := func(pkg string) (int, bool) { // of the package or the nearest above it
		for ; pkg != "."; pkg = filepath.Dir(pkg) {
			if i, ok := rows[pkg]; ok {
				return i, true
			}
		}
		return 0, false
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-C", repository, "-f",
		`{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "./cmd/...", "./host/...", "./internal/...", "./nfdsource/...", "./source/...", "./topology/...", "./tristate/...", "./verdict/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		paths := strings.Fields(strings.ReplaceAll(line, "gdr-features/", ""))
		here, listed := rowOf(paths[0])
		if !listed {
			t.Errorf("%s is in no row of the table of packages in CONTRIBUTING.md", paths[0])
		}
		for _, imported := range paths[1:] {
			if there, ours := rowOf(imported); listed && ours && here > there {
				t.Errorf("%s imports %s, which the table lists before it", paths[0], imported)
			}
		}
	}
}
