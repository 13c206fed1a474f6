//go:build unix

package image_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"gdr-features/internal/fleet/image"
	"gdr-features/test/library"
)

// TestHostile: whatever is in an image, reading it ends soon and needs little memory, and says
// what could not be read.
func TestHostile(t *testing.T) {
	dir := t.TempDir()
	library.Write(t, dir, modern())
	lib := filepath.Join(dir, library.Lib)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.Remove(filepath.Join(lib, "libibverbs.so.1")))
	check(syscall.Mkfifo(filepath.Join(lib, "libibverbs.so.1"), 0o644)) // opening it would not end
	check(os.MkdirAll(filepath.Join(dir, "usr/lib64"), 0o755))
	check(os.Symlink("/usr/lib64/libibverbs.so.1", filepath.Join(dir, "usr/lib64/libibverbs.so.1")))
	check(os.MkdirAll(filepath.Join(dir, "opt/large"), 0o755))
	// A file of a terabyte, which claims a table of symbols that large.
	large := library.Library{Symbols: []string{library.RegisterDMABuf}}.Bytes()
	check(os.WriteFile(filepath.Join(dir, "opt/large/libibverbs.so.1"), large, 0o644))
	check(os.Truncate(filepath.Join(dir, "opt/large/libibverbs.so.1"), 1<<40))
	check(os.Symlink("../../../../../../../../../../etc", filepath.Join(dir, "etc/up")))
	check(os.WriteFile(filepath.Join(dir, "etc/ld.so.cache"), []byte("glibc-ld.so.cache1.1\xff\xff\xff\xff"+strings.Repeat("\xff", 100)), 0o644))
	check(os.WriteFile(filepath.Join(dir, "etc/ld.so.conf"), []byte("include /etc/ld.so.conf\n"+strings.Repeat("/no/such/directory\n", 3000)), 0o644))
	for n := range 200 {
		check(os.WriteFile(filepath.Join(dir, "etc/libibverbs.d", strings.Repeat("x", n)+"driver"), []byte(strings.Repeat("driver a\n", 20)), 0o644))
	}
	root, err := os.OpenRoot(dir)
	check(err)
	defer root.Close()
	start := time.Now()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	i := image.Read(root.FS(), map[string]string{image.LibraryPath: strings.Repeat("/opt/none:", 5000)})
	runtime.ReadMemStats(&after)
	if took, used := time.Since(start), after.TotalAlloc-before.TotalAlloc; took > time.Minute || used > 64<<20 {
		t.Errorf("%v, %d MB", took, used>>20)
	}
	if i.Verbs != nil || len(i.Problems) == 0 {
		t.Errorf("%+v", i)
	}
	j := image.Read(root.FS(), map[string]string{image.LibraryPath: "/opt/large"})
	if j.Verbs == nil || !j.Verbs.Exports(image.RegisterDMABuf) {
		t.Errorf("a sparse file whose tables are small: %+v, %v", j.Verbs, j.Problems)
	}
}

// TestChain: a chain of libraries that need one another is not followed.
func TestChain(t *testing.T) {
	files := modern()
	needs := "libibverbs.so.1"
	for n := range 2000 {
		name := "liba" + strings.Repeat("a", n%100) + string(rune('a'+n/100)) + ".so"
		files[library.Lib+"/"+name] = &fstest.MapFile{Data: library.Library{Needs: map[string][]string{needs: nil}}.Bytes()}
		needs = name
	}
	files[verbs].Data = library.Library{Needs: map[string][]string{needs: nil, "libno.so": nil}}.Bytes()
	opened := &counted{FS: files}
	if i := image.Read(opened, nil); i.Verbs == nil || len(i.Verbs.Lacks) != 1 || opened.files > 200 {
		t.Errorf("%+v, %d files opened", i.Verbs, opened.files)
	}
}

// counted counts the files that are opened.
type counted struct {
	fs.FS
	files int
}

func (c *counted) Open(name string) (fs.File, error) {
	c.files++
	return c.FS.Open(name)
}

func (c *counted) ReadLink(name string) (string, error)   { return fs.ReadLink(c.FS, name) }
func (c *counted) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(c.FS, name) }

// denied is a tree of which one directory may not be entered, and another not be listed.
type denied struct {
	fs.FS
	enter, list string
}

func (d denied) Open(name string) (fs.File, error) {
	if name == d.list || strings.HasPrefix(name, d.enter+"/") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.FS.Open(name)
}

func (d denied) ReadLink(name string) (string, error) { return fs.ReadLink(d.FS, name) }

func (d denied) Lstat(name string) (fs.FileInfo, error) {
	if strings.HasPrefix(name, d.enter+"/") {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: fs.ErrPermission}
	}
	return fs.Lstat(d.FS, name)
}

// TestDenied: what may not be read is a problem, and not missing.
func TestDenied(t *testing.T) {
	i := image.Read(denied{modern(), library.Lib, "none"}, nil)
	if i.Verbs != nil || len(i.Problems) == 0 {
		t.Errorf("a directory that may not be entered: %+v, %v", i.Verbs, i.Problems)
	}
	i = image.Read(denied{modern(), "none", "etc/libibverbs.d"}, nil)
	if p := i.Provider("mlx5"); p == nil || p.Library == nil || i.ListErr == nil {
		t.Errorf("a list that may not be read: %+v, %v", p, i.ListErr)
	}
}
