package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// view is one tree as one of the openers shows it.
type view struct {
	name string
	*FS
	// base is put before every name: plain knows no root but "/".
	base string
	// confined: links must not lead out of the tree.
	confined bool
}

// path is a file's name in this view.
func (v view) path(name string) string { return v.base + name }

// views opens dir in every way there is: as a part of "/", confined by the
// kernel, and confined by os.Root as on kernels without openat2.
func views(t *testing.T, dir string) []view {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	byKernel, err := Open(Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := []view{
		{"plain", New(&kernel{root: plain{}}, "/"), strings.TrimPrefix(dir, "/") + "/", false},
		{"confined", byKernel, "", true},
		{"walked", New(&kernel{root: walked{root}}, dir), "", true},
	}
	t.Cleanup(func() {
		for _, v := range all {
			if err := v.Close(); err != nil {
				t.Errorf("%s: Close: %v", v.name, err)
			}
		}
	})
	return all
}

// write makes a file and the directories above it.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// link makes a symbolic link and the directories above it.
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

func mkfifo(t *testing.T, dir, name string) {
	t.Helper()
	if err := unix.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
		t.Fatal(err)
	}
}

// oddTree holds one of everything that can be in the place of a file.
func oddTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "sys/line", "value\n")
	write(t, dir, "sys/bare", "value")
	write(t, dir, "sys/spaces", " \t two  words \r\n")
	write(t, dir, "sys/empty", "")
	write(t, dir, "sys/blank", " \n\t\n")
	write(t, dir, "sys/dir/inner", "inner\n")
	mkfifo(t, dir, "sys/fifo")
	link(t, dir, "sys/link", "line")
	link(t, dir, "sys/dir/up", "../line")
	link(t, dir, "sys/deep", "dir/up")
	link(t, dir, "sys/dangling", "nowhere")
	link(t, dir, "sys/loop", "pool")
	link(t, dir, "sys/pool", "loop")
	return dir
}

// asNobody runs f without the rights of root, so that it meets files it may not
// read even where the tests run as root.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with its goroutine
		if err := unix.Setfsuid(65534); err != nil {
			t.Errorf("setfsuid: %v", err)
			return
		}
		f()
	}()
	<-done
}

// wantPath checks that an error names the file as its machine does.
func wantPath(t *testing.T, err error, path string) {
	t.Helper()
	pathError, ok := err.(*fs.PathError) //nolint:errorlint // the outermost error is what people read first
	if !ok {
		t.Errorf("%v (%T): no *fs.PathError", err, err)
		return
	}
	if pathError.Path != path {
		t.Errorf("%v: names %q, want %q", err, pathError.Path, path)
	}
}
