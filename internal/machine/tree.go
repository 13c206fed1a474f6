package machine

import (
	"fmt"
	"os"
	"path/filepath"
)

// TB is what Tree and All need of a testing.TB.
type TB interface {
	Helper()
	TempDir() string
	Cleanup(func())
	Fatal(args ...any)
}

// All loads every description of a directory, by name. It is fatal when there is
// none: a test of all of them would test nothing.
func All(t TB, dir string) []*Machine {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal(fmt.Sprintf("no machines in %s", dir), err)
	}
	all := make([]*Machine, 0, len(files))
	for _, file := range files {
		m, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// memory is a file system in memory on Linux. Trees are thousands of small
// files: writing them to a disk takes twenty times as long.
const memory = "/dev/shm"

// Tree writes the machine to a directory that is removed when the test ends.
func (m *Machine) Tree(t TB, s State) string {
	t.Helper()
	dir, err := os.MkdirTemp(memory, "gdr-features-test-")
	if err != nil {
		dir = t.TempDir()
	} else {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	if err := m.Write(dir, s); err != nil {
		t.Fatal(err)
	}
	return dir
}
