package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestNames(t *testing.T) {
	dir := oddTree(t)
	for _, name := range []string{"sys/none", "sys/many"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	many := fill(t, filepath.Join(dir, "sys/many"), 1000) // more than one getdents call gives
	slices.Sort(many)
	link(t, dir, "sys/linked", "dir")
	tests := []struct {
		name string
		want []string
		err  error
	}{
		{name: "sys/dir", want: []string{"inner", "up"}},
		{name: "sys/linked", want: []string{"inner", "up"}},
		{name: "sys/many", want: many},
		{name: "sys/none"},
		{name: "sys/missing", err: fs.ErrNotExist},
		{name: "sys/line", err: unix.ENOTDIR},
		{name: "sys/fifo", err: unix.ENOTDIR},
		{name: "sys/loop", err: unix.ELOOP},
	}
	for _, v := range views(t, dir) {
		for _, tt := range tests {
			t.Run(v.name+"/"+tt.name, func(t *testing.T) {
				got, err := v.Names(v.path(tt.name))
				if !errors.Is(err, tt.err) {
					t.Fatalf("error %v, want %v", err, tt.err)
				}
				if err != nil {
					wantPath(t, err, "/"+v.path(tt.name))
				}
				slices.Sort(got)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("names (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestNamesBound(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 131073 files")
	}
	dir, err := os.MkdirTemp("/dev/shm", "names") //nolint:usetesting // memory is much faster than a disk here
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	fill(t, dir, 131072)
	tree, err := Open(Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if names, err := tree.Names("."); len(names) != 131072 || err != nil {
		t.Errorf("got %d names, %v; want 131072", len(names), err)
	}
	write(t, dir, "one more", "")
	if names, err := tree.Names("."); len(names) != 131072 || !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %d names, %v; want 131072, %v", len(names), err, ErrTooLarge)
	}
}

// fill makes n empty files and gives their names.
func fill(t *testing.T, dir string, n int) []string {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("0000:00:00.%d", i)
		if err := unix.Mknodat(fd, names[i], unix.S_IFREG|0o644, 0); err != nil {
			t.Fatal(err)
		}
	}
	return names
}
