package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asAnybody runs a test as a user who owns nothing, in a thread that ends with it.
func asAnybody(t *testing.T, test func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends
		const nobody = 65534
		if os.Geteuid() == 0 {
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
				done <- errno
				return
			}
		}
		test()
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestReadWrite asks about files of each mode, as root where the test is, and as somebody
// else.
func TestReadWrite(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"anybody": 0o666, "reader": 0o444, "writer": 0o222, "owner": 0o600} {
		write(t, dir, "dev/"+name, "")
		if err := os.Chmod(filepath.Join(dir, "dev", name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("anybody", filepath.Join(dir, "dev/link")); err != nil {
		t.Fatal(err)
	}
	tree, err := Open(Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	root := os.Geteuid() == 0
	for name, anybody := range map[string]bool{"anybody": true, "link": true, "reader": false, "writer": false, "owner": !root} {
		if got, err := tree.ReadWrite("dev/" + name); err != nil || got != (anybody || root) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		asAnybody(t, func() {
			if got, err := tree.ReadWrite("dev/" + name); err != nil || got != anybody {
				t.Errorf("%s, as somebody else: %v, %v; want %v", name, got, err, anybody)
			}
		})
	}
	if _, err := tree.ReadWrite("dev/missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	copied := New(odd{tree}, "copy")
	if _, err := copied.ReadWrite("dev/anybody"); !errors.Is(err, errors.ErrUnsupported) || copied.Live() || !tree.Live() {
		t.Errorf("a source other than the kernel: %v", err)
	}
}

// odd is a source that is not the kernel.
type odd struct{ Source }
