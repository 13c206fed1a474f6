// Package trees makes trees of files for tests.
package trees

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"gdr-features/host"
)

// Contents in place of files.
const (
	Dir    = "\x00directory"
	FIFO   = "\x00FIFO"
	Loop   = "\x00loop"
	Absent = "\x00absent" // takes back what a test adds to each tree
)

// Tree makes a tree of some files, by name, and opens it.
func Tree(t testing.TB, files map[string]string) *host.FS {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if text == Absent {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch text {
		case Dir:
			err = os.MkdirAll(path, 0o755)
		case FIFO:
			err = unix.Mkfifo(path, 0o644)
		case Loop:
			err = os.Symlink(filepath.Base(path), path)
		default:
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	return fs
}
