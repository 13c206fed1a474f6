package host

import (
	"strings"

	"golang.org/x/sys/unix"
)

// opened is a directory of the kernel's that is open. A file that is not simply there,
// below it and without a link on the way, is looked for by its full name.
type opened struct {
	below
	fd int
}

// in opens a directory. Where that fails, its files are looked for by their full names.
func (k *kernel) in(dir below) Source {
	op, name := k.at(dir.dir)
	if _, ok := op.(walked); ok { // a kernel without openat2
		return dir
	}
	fd, err := op.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return dir
	}
	return opened{dir, fd}
}

func (o opened) Open(name string) (File, error) {
	how := unix.OpenHow{
		Flags:   forReading | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	}
	fd, err := unix.Openat2(o.fd, name, &how)
	if err != nil {
		return o.below.Open(name)
	}
	return &file{fd: fd, name: o.name(name)}, nil
}

func (o opened) Names(name string) ([]string, error) {
	if name != "." {
		return o.below.Names(name)
	}
	if _, err := unix.Seek(o.fd, 0, unix.SEEK_SET); err != nil {
		return nil, PathError("readdir", o.dir, err)
	}
	return namesIn(o.fd, o.dir)
}

func (o opened) Link(name string) (string, error) {
	if strings.Contains(name, "/") {
		return o.below.Link(name)
	}
	to, err := readlinkat(o.fd, name)
	if err != nil {
		return "", PathError("readlink", o.name(name), err)
	}
	return to, nil
}

func (o opened) Close() error { return unix.Close(o.fd) }
