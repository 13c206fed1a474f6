package reasons_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	repository = "../.."
	operators  = "docs/operators.md"
)

var (
	section   = regexp.MustCompile(`^## [\w.-]+/[\w.-]+ \S*\d`)
	row       = regexp.MustCompile(`^\| <a id="([a-z-]+)"></a>([a-z-]+) \| ([^|]+) \| ([^|]+) \|$`)
	source    = regexp.MustCompile("`[\\w./-]+/[\\w.-]+`")
	reference = regexp.MustCompile(`operators\.md#[a-z-]+(?:,[\s#]+#[a-z-]+)*`)
	link      = regexp.MustCompile(`\]\(([^)]*)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unnamed   = regexp.MustCompile(`[^a-z0-9 _-]`)
	anchor    = regexp.MustCompile(`<a id="([^"]+)">`)
	more      = regexp.MustCompile(`#[a-z-]+`)
	shown     = regexp.MustCompile("(?ms)^```.*?^```$")
	operator  = regexp.MustCompile(`\b(?:GPU|Network|Prometheus) Operator|\bNFD [a-z]+s\b|\bnfd-(?:master|worker|gc)\b|k8s-driver-manager`)
)

// TestOperators: each behaviour of an operator has one row, which names the file it
// was read from. Pages refer only to rows that exist, every row is referred to, and
// no page mentions an operator without its source.
func TestOperators(t *testing.T) {
	root := os.DirFS(repository)
	rows := operatorRows(t, root)
	used := map[string]bool{}
	for _, name := range operatorPages(t, root) {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range operatorParts(name, string(text)) {
			refers := references(part)
			for _, to := range refers {
				used[to] = true
				if !rows[to] {
					t.Errorf("%s: %s has no row %s", name, operators, to)
				}
			}
			if what := operator.FindString(part); what != "" && len(refers) == 0 && path.Ext(name) != ".go" {
				title, _, _ := strings.Cut(part, "\n")
				t.Errorf("%s, %q: speaks of %q and refers to no row of %s", name, title, what, operators)
			}
		}
	}
	for name := range rows {
		if !used[name] {
			t.Errorf("%s: nothing refers to %s", operators, name)
		}
	}
}

// references returns the rows that a text refers to: the names after "operators.md#",
// and those that follow in the same sentence.
func references(text string) []string {
	var names []string
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		names = append(names, more.FindAllString(m[0], -1)...)
	}
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], "#")
	}
	return names
}

// operatorParts divides a page into what must refer to a row by itself: the
// sections of a README, without what a program prints; other files are one.
func operatorParts(name, text string) []string {
	if path.Base(name) != "README.md" {
		return []string{text}
	}
	return strings.Split(shown.ReplaceAllString(text, ""), "\n## ")
}

// operatorRows returns the names of the rows, each of which must be whole.
func operatorRows(t *testing.T, root fs.FS) map[string]bool {
	t.Helper()
	text, err := fs.ReadFile(root, operators)
	if err != nil {
		t.Fatal(err)
	}
	rows, below := map[string]bool{}, false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "## ") {
			if below = section.MatchString(line); !below {
				t.Errorf("%s: %q names no repository and version", operators, line)
			}
		}
		if !strings.HasPrefix(line, "| <a ") {
			continue
		}
		m := row.FindStringSubmatch(line)
		switch {
		case m == nil || m[1] != m[2] || !below:
			t.Errorf("%s: no row: %s", operators, line)
			continue
		case rows[m[1]]:
			t.Errorf("%s: %s is there twice", operators, m[1])
		case !source.MatchString(m[4]):
			t.Errorf("%s: %s names no file", operators, m[1])
		}
		rows[m[1]] = true
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no rows", operators)
	}
	return rows
}

// TestLabelsGo: a page that shows how to remove labels from nodes also says what
// stops with them when a driver waits for them.
func TestLabelsGo(t *testing.T) {
	takes := regexp.MustCompile(`delete -k|delete namespace|delete \S*nodefeature|--cleanup|rm \S*\.features`)
	found := 0
	for _, name := range []string{"deploy/README.md", "deploy/gpu-operator/README.md"} {
		text, err := os.ReadFile(path.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(string(text), "\n## ") {
			title, _, _ := strings.Cut(part, "\n")
			if !takes.MatchString(part) {
				continue
			}
			found++
			if title != "Before the labels go" && !strings.Contains(part, "#before-the-labels-go") {
				t.Errorf("%s, %q: no word of the drivers that wait for the labels", name, title)
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d sections show how labels go", found)
	}
}

// TestLinks: the targets of all links exist, sections included.
func TestLinks(t *testing.T) {
	root := os.DirFS(repository)
	named := map[string][]string{} // titles by page
	for _, name := range operatorPages(t, root) {
		if path.Ext(name) != ".md" {
			continue
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(shown.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, title, _ := strings.Cut(m[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := fs.Stat(root, target); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if title == "" {
				continue
			}
			if named[target] == nil {
				named[target] = titles(t, root, target)
			}
			if !slices.Contains(named[target], title) {
				t.Errorf("%s: %s has no %q", name, target, title)
			}
		}
	}
}

// titles returns the names by which the parts of a page can be linked to.
func titles(t *testing.T, root fs.FS, name string) []string {
	t.Helper()
	text, err := fs.ReadFile(root, name)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range heading.FindAllStringSubmatch(shown.ReplaceAllString(string(text), ""), -1) {
		all = append(all, strings.ReplaceAll(unnamed.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	for _, m := range anchor.FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	return all
}

// operatorPages returns what people read, and the sources of the findings.
func operatorPages(t *testing.T, root fs.FS) []string {
	t.Helper()
	pages := map[string]bool{}
	for _, pattern := range []string{
		"*.md", "docs/*.md", "docs/reasons/*.md", "deploy/*.md", "deploy/*.yaml", "deploy/*/*.md",
		"deploy/gpu-operator/*.yaml", "deploy/examples/*.yaml", "examples/*/*.md", "internal/findings/*.go",
	} {
		names, err := fs.Glob(root, pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no files, error %v", pattern, err)
		}
		for _, name := range names {
			pages[name] = name != operators
		}
	}
	maps.DeleteFunc(pages, func(_ string, keep bool) bool { return !keep })
	return slices.Sorted(maps.Keys(pages))
}
