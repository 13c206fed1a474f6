package host

import (
	"strings"

	"golang.org/x/sys/unix"
)

// opened is a source whose files in one directory of the kernel's are opened from there, if
// they are simply there: below it and without a link on the way.
type opened struct {
	Source
	dir    string // with a slash at its end
	fd     int    // -1 for none
	listed bool   // from fd
	found  bool   // some file was there
}

// In returns the same tree for a reader of several files in a directory: the kernel looks for
// the directory only once. The caller closes it.
func (f *FS) In(dir string) *FS {
	in := &opened{Source: f.Source, dir: dir + "/", fd: -1}
	if k, ok := f.Source.(*kernel); ok {
		op, name := k.at(dir)
		if _, ok := op.(walked); !ok { // for kernels without openat2
			if fd, err := op.open(name, unix.O_RDONLY|unix.O_DIRECTORY); err == nil {
				in.fd = fd
			}
		}
	}
	return &FS{Source: in}
}

// below returns the name below the directory; ok is false for others.
func (o *opened) below(name string) (below string, ok bool) {
	below, ok = strings.CutPrefix(name, o.dir)
	return below, ok && o.fd >= 0
}

func (o *opened) Open(name string) (File, error) {
	if below, ok := o.below(name); ok {
		if fd, err := o.open(below, forReading); err == nil {
			return &file{fd: fd, name: name}, nil
		}
	}
	return o.Source.Open(name)
}

func (o *opened) open(below string, flags uint64) (fd int, err error) {
	how := unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	}
	fd, err = unix.Openat2(o.fd, below, &how)
	o.found = o.found || err == nil
	return fd, err
}

// Inode looks in the directory alone for a file, once another one was found there: it was not removed.
func (o *opened) Inode(name string) (uint64, error) {
	if below, ok := o.below(name); ok && o.found {
		fd, err := o.open(below, unix.O_PATH)
		if err == nil {
			defer unix.Close(fd)
			return inodeOf(fd, name)
		}
		if Absent(err) {
			return 0, PathError("stat", name, err)
		}
	}
	return o.Source.Inode(name)
}

func (o *opened) Names(name string) ([]string, error) {
	if below, ok := o.below(name + "/"); !ok || below != "" {
		return o.Source.Names(name)
	}
	if o.listed {
		if _, err := unix.Seek(o.fd, 0, unix.SEEK_SET); err != nil {
			return nil, PathError("readdir", name, err)
		}
	}
	o.listed = true
	return namesIn(o.fd, name)
}

func (o *opened) Link(name string) (string, error) {
	below, ok := o.below(name)
	if !ok || strings.Contains(below, "/") {
		return o.Source.Link(name)
	}
	to, err := readlinkat(o.fd, below)
	if err != nil {
		return "", PathError("readlink", name, err)
	}
	return to, nil
}

func (o *opened) Close() error {
	if o.fd < 0 {
		return nil
	}
	return unix.Close(o.fd)
}
