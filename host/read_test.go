package host

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLine(t *testing.T) {
	dir := oddTree(t)
	for _, size := range []int{255, 256, 257, 4096, 4097} {
		write(t, dir, "sys/long"+strconv.Itoa(size), strings.Repeat("x", size))
	}
	tests := []struct {
		name string
		want string
		err  error
	}{
		{name: "sys/line", want: "value"},
		{name: "sys/bare", want: "value"},
		{name: "sys/spaces", want: "two  words"},
		{name: "sys/link", want: "value"},
		{name: "sys/dir/up", want: "value"},
		{name: "sys/deep", want: "value"},
		{name: "sys/dir/../line", want: "value"},
		{name: "sys/long255", want: strings.Repeat("x", 255)},
		{name: "sys/long256", want: strings.Repeat("x", 256)},
		{name: "sys/long257", want: strings.Repeat("x", 257)},
		{name: "sys/long4096", want: strings.Repeat("x", 4096)},
		{name: "sys/long4097", err: ErrTooLarge},
		{name: "sys/empty", err: ErrEmpty},
		{name: "sys/blank", err: ErrEmpty},
		{name: "sys/fifo", err: ErrEmpty},
		{name: "sys/missing", err: fs.ErrNotExist},
		{name: "sys/missing/line", err: fs.ErrNotExist},
		{name: "sys/dangling", err: fs.ErrNotExist},
		{name: "sys/dir", err: unix.EISDIR},
		{name: "sys/line/below", err: unix.ENOTDIR},
		{name: "sys/loop", err: unix.ELOOP},
	}
	for _, v := range views(t, dir) {
		for _, tt := range tests {
			t.Run(v.name+"/"+tt.name, func(t *testing.T) {
				got, err := v.Line(v.path(tt.name))
				if !errors.Is(err, tt.err) {
					t.Fatalf("error %v, want %v", err, tt.err)
				}
				if Absent(err) != (tt.err == fs.ErrNotExist) { //nolint:errorlint // the table's own value
					t.Errorf("Absent(%v) = %v", err, Absent(err))
				}
				if err != nil {
					wantPath(t, err, "/"+v.path(tt.name))
				}
				if got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			})
		}
	}
}

// People read the errors: they say what was tried, on which file of the machine, and
// how it failed.
func TestErrors(t *testing.T) {
	dir := oddTree(t)
	write(t, dir, "sys/large", strings.Repeat("x", 5000))
	tree, err := Open(Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	of := func(_ any, err error) error { return err }
	tests := []struct {
		err  error
		want string
	}{
		{of(tree.Line("sys/missing")), "open /sys/missing: no such file or directory"},
		{of(tree.Line("sys/empty")), "read /sys/empty: file is empty"},
		{of(tree.Line("sys/large")), "read /sys/large: more data than expected"},
		{of(tree.Line("sys/dir")), "read /sys/dir: is a directory"},
		{of(tree.Bytes("sys/empty", 10)), "read /sys/empty: file is empty"},
		{of(tree.Bytes("sys/large", 10)), "read /sys/large: more data than expected"},
		{of(tree.Names("sys/line")), "open /sys/line: not a directory"},
		{of(tree.Open("sys/line/")), "open /sys/line: not a directory"},
		{of(tree.Link("sys/line")), "readlink /sys/line: invalid argument"},
		{of(tree.Exists("sys/line/below")), "stat /sys/line/below: not a directory"},
		{of(tree.Resolve("sys/loop")), "resolve /sys/loop: too many links"},
		{of(Open(Options{Root: filepath.Join(dir, "sys/line")})), filepath.Join(dir, "sys/line") + " is not a directory"},
	}
	for _, tt := range tests {
		if tt.err == nil || tt.err.Error() != tt.want {
			t.Errorf("got %q, want %q", tt.err, tt.want)
		}
	}
}

func TestBytes(t *testing.T) {
	dir := oddTree(t)
	write(t, dir, "sys/four", " ab\n")
	tests := []struct {
		name, file string
		limit      int
		want       string
		err        error
	}{
		{"nothing is trimmed", "sys/four", 100, " ab\n", nil},
		{"exactly the limit", "sys/four", 4, " ab\n", nil},
		{"beyond the limit", "sys/four", 3, " ab", ErrTooLarge},
		{"blank is not empty", "sys/blank", 100, " \n\t\n", nil},
		{"empty", "sys/empty", 100, "", ErrEmpty},
		{"FIFO", "sys/fifo", 100, "", ErrEmpty},
		{"directory", "sys/dir", 100, "", unix.EISDIR},
		{"missing", "sys/missing", 100, "", fs.ErrNotExist},
	}
	for _, v := range views(t, dir) {
		for _, tt := range tests {
			t.Run(v.name+"/"+tt.name, func(t *testing.T) {
				got, err := v.Bytes(v.path(tt.file), tt.limit)
				if !errors.Is(err, tt.err) {
					t.Fatalf("error %v, want %v", err, tt.err)
				}
				if err != nil {
					wantPath(t, err, "/"+v.path(tt.file))
				}
				if string(got) != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			})
		}
	}
}

// Reading a FIFO that is held open for writing could wait for ever: no handle may
// block.
func TestNoHandleWaits(t *testing.T) {
	dir := oddTree(t)
	writer, err := os.OpenFile(filepath.Join(dir, "sys/fifo"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	for _, v := range views(t, dir) {
		t.Run(v.name, func(t *testing.T) {
			file, err := v.Open(v.path("sys/fifo"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if flags(t, descriptor(file), unix.F_GETFL)&unix.O_NONBLOCK == 0 {
				t.Fatal("the handle blocks")
			}
			if n, err := file.ReadAt(make([]byte, 16), 0); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("ReadAt = %d, %v; want the end", n, err)
			}
			if text, err := v.Line(v.path("sys/fifo")); !errors.Is(err, ErrEmpty) {
				t.Errorf("Line = %q, %v; want %v", text, err, ErrEmpty)
			}
		})
	}
}

// Programs started later inherit no handle.
func TestHandlesAreClosedOnExec(t *testing.T) {
	for _, v := range views(t, oddTree(t)) {
		file, err := v.Open(v.path("sys/line"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		dir, err := v.Open(v.path("sys/dir/"))
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		handles := map[string]int{"file": descriptor(file), "directory": descriptor(dir)}
		if c, ok := v.Source.(*kernel).root.(confined); ok {
			handles["root"] = c.fd
		}
		for name, fd := range handles {
			if flags(t, fd, unix.F_GETFD)&unix.FD_CLOEXEC == 0 {
				t.Errorf("%s: the %s stays open", v.name, name)
			}
		}
	}
}

func descriptor(f File) int { return f.(*file).fd }

// flags asks for the flags of a file, or of its handle.
func flags(t *testing.T, fd, which int) int {
	t.Helper()
	flags, err := unix.FcntlInt(uintptr(fd), which, 0)
	if err != nil {
		t.Fatal(err)
	}
	return flags
}

func TestExists(t *testing.T) {
	tests := []struct {
		name string
		want bool
		err  error
	}{
		{name: "sys/line", want: true},
		{name: "sys/dir", want: true},
		{name: "sys/deep", want: true},
		{name: "sys/fifo", want: true},
		{name: "sys/missing"},
		{name: "sys/dangling"},
		{name: "sys/line/below", err: unix.ENOTDIR},
		{name: "sys/loop", err: unix.ELOOP},
	}
	for _, v := range views(t, oddTree(t)) {
		for _, tt := range tests {
			t.Run(v.name+"/"+tt.name, func(t *testing.T) {
				got, err := v.Exists(v.path(tt.name))
				if got != tt.want || !errors.Is(err, tt.err) {
					t.Fatalf("got %v, %v; want %v, %v", got, err, tt.want, tt.err)
				}
				if err != nil {
					wantPath(t, err, "/"+v.path(tt.name))
				}
			})
		}
	}
}

// Inode is that of the file itself, and changes when the file is made anew.
func TestInode(t *testing.T) {
	dir := oddTree(t)
	for _, v := range views(t, dir) {
		inode := func(name string) uint64 {
			t.Helper()
			number, err := v.Inode(v.path(name))
			if err != nil {
				t.Errorf("%s: %v", v.name, err)
			}
			return number
		}
		info, err := os.Stat(filepath.Join(dir, "sys/line"))
		if err != nil {
			t.Fatal(err)
		}
		if want := info.Sys().(*syscall.Stat_t).Ino; inode("sys/line") != want || inode("sys/link") != want {
			t.Errorf("%s: %d by the link, %d by the file, want %d", v.name, inode("sys/link"), inode("sys/line"), want)
		}
		if inode("sys/dir") == inode("sys/line") {
			t.Errorf("%s: the same for two files", v.name)
		}
		if _, err := v.Inode(v.path("sys/missing")); !Absent(err) {
			t.Errorf("%s: %v", v.name, err)
		} else {
			wantPath(t, err, "/"+v.path("sys/missing"))
		}
	}
}

func TestReadAt(t *testing.T) {
	dir := oddTree(t)
	write(t, dir, "sys/config", "0123456789")
	tests := []struct {
		name   string
		offset int64
		size   int
		want   string
	}{
		{"from the start", 0, 4, "0123"},
		{"from the middle", 3, 4, "3456"},
		{"up to the end", 6, 4, "6789"},
		{"beyond the end", 8, 4, "89"},
		{"behind the end", 10, 4, ""},
		{"far behind the end", 4096, 4, ""},
	}
	for _, v := range views(t, dir) {
		file, err := v.Open(v.path("sys/config"))
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range tests {
			t.Run(v.name+"/"+tt.name, func(t *testing.T) {
				buf := make([]byte, tt.size)
				n, err := file.ReadAt(buf, tt.offset)
				if string(buf[:n]) != tt.want || errors.Is(err, io.EOF) != (n < tt.size) || n == tt.size && err != nil {
					t.Errorf("got %q, %v; want %q", buf[:n], err, tt.want)
				}
			})
		}
		if err := file.Close(); err != nil {
			t.Errorf("%s: Close: %v", v.name, err)
		}
		if _, err := file.ReadAt(make([]byte, 1), 0); !errors.Is(err, unix.EBADF) {
			t.Errorf("%s: ReadAt after Close: %v, want %v", v.name, err, unix.EBADF)
		} else if want := "read /" + v.path("sys/config") + ": bad file descriptor"; err.Error() != want {
			t.Errorf("%s: ReadAt after Close: %q, want %q", v.name, err, want)
		}
	}
}

// What may not be read is an error of its own, and never "absent".
func TestPermission(t *testing.T) {
	dir := oddTree(t)
	for _, name := range []string{"sys/line", "sys/dir"} {
		if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(dir, "sys/dir"), 0o755) }) //nolint:errcheck // for removal only
	// The testing package keeps the directory above for its owner only.
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, v := range views(t, dir) {
		calls := []struct {
			name, file string
			call       func(name string) error
		}{
			{"Line", "sys/line", func(name string) error { _, err := v.Line(name); return err }},
			{"Bytes", "sys/line", func(name string) error { _, err := v.Bytes(name, 10); return err }},
			{"Names", "sys/dir", func(name string) error { _, err := v.Names(name); return err }},
			{"Line below", "sys/dir/inner", func(name string) error { _, err := v.Line(name); return err }},
			{"Exists below", "sys/dir/inner", func(name string) error { _, err := v.Exists(name); return err }},
			{"Inode below", "sys/dir/inner", func(name string) error { _, err := v.Inode(name); return err }},
			{"Link below", "sys/dir/up", func(name string) error { _, err := v.Link(name); return err }},
			{"Resolve below", "sys/dir/up", func(name string) error { _, err := v.Resolve(name); return err }},
		}
		for _, tt := range calls {
			t.Run(v.name+"/"+tt.name, func(t *testing.T) {
				asNobody(t, func() {
					err := tt.call(v.path(tt.file))
					if !errors.Is(err, fs.ErrPermission) || Absent(err) {
						t.Errorf("error %v, want %v", err, fs.ErrPermission)
						return
					}
					wantPath(t, err, "/"+v.path(tt.file))
				})
			})
		}
		// And what may be read still is.
		asNobody(t, func() {
			if text, err := v.Bytes(v.path("sys/spaces"), 100); err != nil {
				t.Errorf("%s: a readable file: %q, %v", v.name, text, err)
			}
		})
	}
}

// TestLineOfNothing: a Source's Read may give no bytes and no error.
func TestLineOfNothing(t *testing.T) {
	if text, err := New(nothing{}, "nothing").Line("sys/line"); text != "" || !errors.Is(err, ErrEmpty) {
		t.Errorf("%q, %v", text, err)
	}
}

// nothing is a Source of files whose Read gives nothing.
type nothing struct{ Source }

func (nothing) Open(string) (File, error) { return nothing{}, nil }

func (nothing) Read([]byte) (int, error) { return 0, nil }

func (nothing) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

func (nothing) Close() error { return nil }
