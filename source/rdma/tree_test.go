package rdma

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/test/machine"
)

// write lays a machine out with everything in place.
func write(t *testing.T, description string) (dir string) {
	t.Helper()
	m, err := machine.Parse(description)
	if err != nil {
		t.Fatal(err)
	}
	return m.Tree(t, m.Ready())
}

var everything = source.What{Advice: true, Details: true}

// scan reads a tree as the program does: PCI functions, then RDMA devices.
func scan(t *testing.T, dir string, what source.What) Inventory {
	t.Helper()
	return scanBy(t, dir, family.Known(), what)
}

func scanBy(t *testing.T, dir string, families family.Table, what source.What) Inventory {
	t.Helper()
	tree, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	functions, err := pci.Scan(tree, families, source.What{})
	if err != nil {
		t.Fatal(err)
	}
	if len(functions.Problems) > 0 {
		t.Fatal(functions.Problems)
	}
	return Scan(t.Context(), tree, &functions, what)
}

// put writes a file and the directories above it.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// link makes a link and the directories above it.
func link(t *testing.T, dir, name, to string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// remove takes a file or a whole directory away.
func remove(t *testing.T, dir, name string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func at(t *testing.T, s string) *pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return &a
}

// wantProblems checks that there are problems with these beginnings, in this
// order, and no others.
func wantProblems(t *testing.T, problems []error, beginnings ...string) {
	t.Helper()
	for i, err := range problems {
		if i >= len(beginnings) || !strings.HasPrefix(err.Error(), beginnings[i]) {
			t.Errorf("problem %d: %v", i, err)
		}
	}
	if len(problems) < len(beginnings) {
		t.Errorf("no problem tells of %q", beginnings[len(problems):])
	}
}
