// Package host reads the files of one machine: the one this process runs on, a
// directory tree that was copied or mounted from another one, or a recording.
//
// Bad input is normal here. Every read is bounded, no open blocks (a FIFO in
// place of a file is an empty file), links are resolved inside the given root
// by the kernel (openat2, RESOLVE_IN_ROOT), and every error is a *fs.PathError
// that names the path as the machine itself would, "/sys/module/nvidia/version".
package host

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Sentinel errors, to be tested with errors.Is.
var (
	// ErrEmpty: the file is there and holds nothing.
	ErrEmpty = errors.New("file is empty")
	// ErrTooLarge: the file or directory holds more than such a file ever does.
	ErrTooLarge = errors.New("more data than expected")
	// ErrLoop: following the links of a path does not end.
	ErrLoop = errors.New("too many links")
)

// Source answers for the files of one machine. Names are relative to its root,
// without a leading slash: "sys/module/nvidia/version". Errors are
// *fs.PathError, see PathError.
type Source interface {
	// Open opens a file for reading, or a directory if name ends in a slash. It
	// does not wait for the writer of a FIFO.
	Open(name string) (File, error)
	// Names lists a directory, sorted. On an error it gives the names read so far; too
	// many names are ErrTooLarge.
	Names(name string) ([]string, error)
	// Link returns the target of a symbolic link as it is written there. For anything but
	// a link the error is unix.EINVAL.
	Link(name string) (string, error)
	// Inode returns the inode number of the file that name leads to, following
	// links. In sysfs a directory that was removed and made again has another number.
	// Sources other than the kernel give 0.
	Inode(name string) (uint64, error)
}

// File is an open file, with Read and ReadAt as in package io. sysfs gives an
// attribute of one line with the first Read.
type File interface {
	io.Reader
	io.ReaderAt
	io.Closer
}

// PathError is the error of an operation on a file, with the name that the
// machine itself would give it.
func PathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: "/" + strings.TrimSuffix(name, "/"), Err: err}
}

// ErrNotRecorded is the error of a Source that replays a machine, for what was not asked then.
var ErrNotRecorded = errors.New("not in the snapshot")

// Absent reports whether err says that there is no such file.
func Absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// Unread reports whether err says that something was not read that may be there: not that there is
// no such file, nor that a recording was made before anybody asked for it.
func Unread(err error) bool {
	return err != nil && !Absent(err) && !errors.Is(err, ErrNotRecorded)
}

// FS is the file tree of one machine: a Source, and what is commonly read of one.
type FS struct {
	Source
	root, sysfs string
}

// Options says where the tree is.
type Options struct {
	// Root is the directory that holds sys/ and proc/; "" is "/".
	Root string
	// Sysfs and Procfs are directories to use in place of Root's sys/ and
	// proc/, "" for none: a pod sees the host's /sys where it was mounted.
	Sysfs, Procfs string
}

// Open opens the tree of files that o names. It is an error if one of its
// directories does not exist or cannot be entered.
func Open(o Options) (*FS, error) {
	if o.Root == "" {
		o.Root = "/"
	}
	k, err := openKernel(o)
	if err != nil {
		return nil, err
	}
	return &FS{Source: k, root: o.Root, sysfs: o.Sysfs}, nil
}

// New returns the tree that a source answers for. root is the name to show for it.
func New(source Source, root string) *FS { return &FS{Source: source, root: root} }

// Close releases what Open opened.
func (f *FS) Close() error {
	if c, ok := f.Source.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Root is the directory given to Open, "/" by default, or the name given to New.
func (f *FS) Root() string { return f.root }

// Sysfs is the directory in use in place of Root's sys/, "" for none.
func (f *FS) Sysfs() string { return f.sysfs }

// Exists reports whether name leads to anything, following links. It is an error
// if that cannot be determined.
func (f *FS) Exists(name string) (bool, error) {
	_, err := f.Inode(name)
	if Absent(err) {
		return false, nil
	}
	return err == nil, err
}

// Live reports whether the kernel answers for the files, on the running machine or in a
// directory. Other sources know nothing of this process.
func (f *FS) Live() bool {
	_, ok := f.Source.(*kernel)
	return ok
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
	n, err := file.ReadAt(buf, 0)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case n == 0:
		return nil, PathError("read", name, ErrEmpty)
	case n > limit:
		return buf[:limit], PathError("read", name, ErrTooLarge)
	}
	return buf[:n], nil
}

// maxLine is the largest attribute that sysfs gives, a page.
const maxLine = 4096

// Line reads a file of one line, as sysfs attributes are, without the newline
// and the spaces around it. An empty file is ErrEmpty, one of more than 4096
// bytes ErrTooLarge.
func (f *FS) Line(name string) (string, error) {
	file, err := f.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text := make([]byte, 64) // most are shorter than this
	n, err := file.Read(text)
	if err == nil && (n == 0 || n == len(text) || text[n-1] != '\n') { // there may be more
		text = append(text[:n], make([]byte, maxLine+1-n)...)
		var more int
		more, err = file.ReadAt(text[n:], int64(n))
		n += more
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return "", err
	case n > maxLine:
		return "", PathError("read", name, ErrTooLarge)
	}
	line := strings.TrimSpace(string(text[:n]))
	if line == "" {
		return "", PathError("read", name, ErrEmpty)
	}
	return line, nil
}

// Link is an entry of a directory of links: its name and target, or why that could not
// be read, as Source.Link says it.
type Link struct {
	Name, Target string
	Err          error
}

// Links lists a directory of links, as Source.Names and Source.Link do for each.
func (f *FS) Links(name string) ([]Link, error) {
	dir := f.In(name)
	defer dir.Close()
	names, err := dir.Names(name)
	links := make([]Link, 0, len(names))
	for _, link := range names {
		to, err := dir.Link(name + "/" + link)
		links = append(links, Link{link, to, err})
	}
	return links, err
}

// Base returns the last element of a link's target: the name of a driver, of an
// IOMMU group, of a physical function.
func (f *FS) Base(name string) (string, error) {
	to, err := f.Link(name)
	if err != nil {
		return "", err
	}
	return path.Base(to), nil
}

// Resolve follows every link in name and gives the name of the file it leads
// to, as filepath.EvalSymlinks does within a root.
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
		to, err := f.Link(strings.Join(append(done[:len(done):len(done)], part), "/"))
		if errors.Is(err, unix.EINVAL) { // not a link
			done = append(done, part)
			continue
		}
		if err != nil {
			return "", err
		}
		if links++; links > maxLinks {
			return "", PathError("resolve", name, ErrLoop)
		}
		if strings.HasPrefix(to, "/") {
			done = nil
		}
		todo = append(strings.Split(to, "/"), todo...)
	}
	return strings.Join(done, "/"), nil
}
