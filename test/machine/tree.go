package machine

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
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
	dir := tempDir(t)
	if err := m.Write(dir, s); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Trees writes the machine in each of the states in turn, in one directory: only what a state
// adds to the hardware is written and removed again. A test that changes the tree needs
// Tree.
func (m *Machine) Trees(t TB, states []State) iter.Seq2[State, string] {
	return func(yield func(State, string) bool) {
		t.Helper()
		w := newWriter(tempDir(t), m, os.O_EXCL) // a state overwrites nothing
		w.hardware()
		hardware := len(w.made)
		for _, s := range states {
			w.software(s)
			if w.err != nil {
				t.Fatal(w.err)
			}
			if !yield(s, w.dir) {
				return
			}
			w.removeFrom(hardware)
		}
		if w.err != nil {
			t.Fatal(w.err)
		}
	}
}

func tempDir(t TB) string {
	t.Helper()
	const room = 512 << 20 // several tests write trees at the same time
	var is unix.Statfs_t
	if err := unix.Statfs(memory, &is); err != nil || is.Bavail*uint64(is.Bsize) < room {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "gdr-features-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
