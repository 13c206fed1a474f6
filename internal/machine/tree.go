package machine

import "os"

// TB is what Tree needs of a testing.TB.
type TB interface {
	Helper()
	TempDir() string
	Cleanup(func())
	Fatal(args ...any)
}

// memory is a file system in memory on Linux. Trees are thousands of small
// files: writing them to a disk takes twenty times as long.
const memory = "/dev/shm"

// Tree lays the machine out in a directory that is gone when the test ends.
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
