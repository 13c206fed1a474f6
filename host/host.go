// Package host reads the files of one machine: the one this process runs on, or
// a directory tree that was copied or mounted from another one.
//
// Bad input is normal here. Every read is bounded, no open blocks (a FIFO in
// place of a file is an empty file), links are resolved inside the given root
// by the kernel (openat2, RESOLVE_IN_ROOT), and every error names the path as
// the machine itself would.
package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits of one read. The largest line sysfs gives is one page.
const (
	maxLine  = 4096
	maxNames = 1 << 17
)

// Sentinel errors, to be tested with errors.Is.
var (
	// ErrEmpty: the file is there and holds nothing.
	ErrEmpty = errors.New("file is empty")
	// ErrTooLarge: the file or directory holds more than such a file ever does.
	ErrTooLarge = errors.New("more data than expected")
	// ErrLoop: the path does not end, however often its links are followed.
	ErrLoop = errors.New("too many links")
)

// FS is the file tree of one machine. Names are relative to its root and begin
// with "sys/", "proc/" or another top directory: "sys/module/nvidia/version".
type FS struct {
	root, sys, proc opener
	dir, sysfs      string
	source          Source // answers instead of the openers; nil for none
}

// opener opens files below one directory and never above it.
type opener interface {
	open(name string, flags int) (fd int, err error)
	readlink(name string) (string, error)
	close() error
}

// Options says where the tree lies.
type Options struct {
	// Root is the directory that holds sys/ and proc/; "" is "/".
	Root string
	// Sysfs and Procfs are directories that stand in for Root's sys/ and
	// proc/, "" for none: a pod sees the host's /sys where it was mounted.
	Sysfs, Procfs string
}

// Open checks that the directories of o exist and can be entered.
func Open(o Options) (*FS, error) {
	dir := o.Root
	if dir == "" {
		dir = "/"
	}
	f := &FS{dir: dir, sysfs: o.Sysfs}
	for _, part := range []struct {
		dir string
		to  *opener
	}{{dir, &f.root}, {o.Sysfs, &f.sys}, {o.Procfs, &f.proc}} {
		if part.dir == "" {
			continue
		}
		op, err := openDir(part.dir)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		*part.to = op
	}
	return f, nil
}

// Close gives the directory handles back.
func (f *FS) Close() error {
	var errs []error
	for _, op := range []opener{f.root, f.sys, f.proc} {
		if op != nil {
			errs = append(errs, op.close())
		}
	}
	return errors.Join(errs...)
}

// Root is the directory given to Open, "/" by default.
func (f *FS) Root() string { return f.dir }

// Sysfs is the directory that stands in for Root's sys/, "" for none.
func (f *FS) Sysfs() string { return f.sysfs }

// at finds the opener that serves name and the name below it.
func (f *FS) at(name string) (opener, string) {
	if f.sys != nil && strings.HasPrefix(name, "sys/") {
		return f.sys, name[len("sys/"):]
	}
	if f.proc != nil && strings.HasPrefix(name, "proc/") {
		return f.proc, name[len("proc/"):]
	}
	return f.root, name
}

// Open opens a file for reading. The caller closes it. Reads never block on a
// FIFO.
func (f *FS) Open(name string) (*File, error) {
	if f.source != nil {
		return f.openSource(name)
	}
	op, below := f.at(name)
	fd, err := op.open(below, unix.O_RDONLY)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &File{fd: fd, name: name}, nil
}

// Exists tells whether name is there, following links. A name that may not be
// looked at is an error.
func (f *FS) Exists(name string) (bool, error) {
	if f.source != nil {
		return f.existsInSource(name)
	}
	op, below := f.at(name)
	fd, err := op.open(below, unix.O_PATH)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, pathError("stat", name, err)
	}
	return true, unix.Close(fd)
}

// Inode gives the number of the file that name ends at, following links. What
// was removed and made anew has another one: sysfs counts on.
func (f *FS) Inode(name string) (uint64, error) {
	if f.source != nil {
		return 0, pathError("stat", name, unix.ENOTSUP)
	}
	op, below := f.at(name)
	fd, err := op.open(below, unix.O_PATH)
	if err != nil {
		return 0, pathError("stat", name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, pathError("stat", name, err)
	}
	return st.Ino, nil
}

// Bytes reads a whole file of at most limit bytes. A larger one gives its
// beginning and ErrTooLarge, an empty one ErrEmpty.
func (f *FS) Bytes(name string, limit int) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	buf := make([]byte, limit+1)
	n, err := file.fill(buf)
	if err != nil {
		return nil, err
	}
	switch {
	case n == 0:
		return nil, pathError("read", name, ErrEmpty)
	case n > limit:
		return buf[:limit], pathError("read", name, ErrTooLarge)
	}
	return buf[:n], nil
}

// Line reads a file of one line, as sysfs attributes are, without the newline
// and the spaces around it. An empty file is ErrEmpty.
func (f *FS) Line(name string) (string, error) {
	file, err := f.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var buf [256]byte
	n, err := file.Read(buf[:]) // one read gives all of an attribute
	if err != nil {
		return "", err
	}
	text := buf[:n]
	if n == len(buf) {
		long := make([]byte, maxLine+1)
		copy(long, text)
		more, err := file.fill(long[n:])
		if err != nil {
			return "", err
		}
		if n+more > maxLine {
			return "", pathError("read", name, ErrTooLarge)
		}
		text = long[:n+more]
	}
	line := strings.TrimSpace(string(text))
	if line == "" {
		return "", pathError("read", name, ErrEmpty)
	}
	return line, nil
}

// Link gives the text of a symbolic link.
func (f *FS) Link(name string) (string, error) {
	if f.source != nil {
		return f.linkInSource(name)
	}
	op, below := f.at(name)
	to, err := op.readlink(below)
	if err != nil {
		return "", pathError("readlink", name, err)
	}
	return to, nil
}

// Base gives the last element of a link's target: the name of a driver, of an
// IOMMU group, of a physical function.
func (f *FS) Base(name string) (string, error) {
	to, err := f.Link(name)
	if err != nil {
		return "", err
	}
	return filepath.Base(to), nil
}

// Resolve follows every link in name and gives the name of what it ends at. It
// is for the few places where a link's text is not enough.
func (f *FS) Resolve(name string) (string, error) {
	const maxLinks = 40 // the kernel's own limit, MAXSYMLINKS
	todo := strings.Split(name, "/")
	var done []string
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(done) > 0 {
				done = done[:len(done)-1]
			}
			continue
		}
		here := strings.Join(append(done[:len(done):len(done)], part), "/")
		to, err := f.Link(here)
		if errors.Is(err, unix.EINVAL) { // there, and not a link
			done = append(done, part)
			continue
		}
		if err != nil {
			return "", err
		}
		if links++; links > maxLinks {
			return "", pathError("resolve", name, ErrLoop)
		}
		if strings.HasPrefix(to, "/") {
			done = nil
		}
		todo = append(strings.Split(to, "/"), todo...)
	}
	return strings.Join(done, "/"), nil
}

// pathError names the file as the machine itself would: with a leading slash.
func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: "/" + name, Err: err}
}

// Absent tells that err says no more than "there is no such file".
func Absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// openDir opens a directory as the root of a tree. "/" needs no confinement.
func openDir(dir string) (opener, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	if dir == "/" {
		return plain{}, nil
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	c := confined{fd: fd}
	probe, err := c.open(".", unix.O_PATH)
	if err == nil {
		return c, unix.Close(probe)
	}
	// Before Linux 5.6, and under seccomp profiles of that age, there is no
	// openat2: os.Root goes link by link, and refuses absolute ones.
	if err := unix.Close(fd); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return walked{root}, nil
}
