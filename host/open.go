package host

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// How every file is opened: no waiting for a FIFO's writer, no terminal taken.
const readFlags = unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY

// plain opens files of the running machine.
type plain struct{}

func (plain) open(name string, flags int) (int, error) {
	return ignoringEINTR(func() (int, error) { return unix.Open("/"+name, flags|readFlags, 0) })
}

func (plain) readlink(name string) (string, error) {
	return readlinkat(unix.AT_FDCWD, "/"+name)
}

func (plain) close() error { return nil }

// confined opens files below a directory as if it were "/": absolute links and
// ".." stay inside (openat2(2), RESOLVE_IN_ROOT).
type confined struct{ fd int }

func (c confined) open(name string, flags int) (int, error) {
	how := unix.OpenHow{
		Flags:   uint64(flags | readFlags), //nolint:gosec // open flags are not negative
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	}
	if flags&unix.O_PATH != 0 {
		how.Flags &^= unix.O_NONBLOCK | unix.O_NOCTTY // O_PATH takes neither
	}
	// A rename anywhere on the machine, at the wrong moment, makes the kernel
	// unsure where ".." leads; it asks to try again.
	const tries = 1000
	for try := 1; ; try++ {
		fd, err := ignoringEINTR(func() (int, error) { return unix.Openat2(c.fd, name, &how) })
		if err != unix.EAGAIN || try == tries { //nolint:errorlint // a bare errno from the call itself
			return fd, err
		}
	}
}

// readlink asks for the link itself, then reads it by its handle: the way to it
// is resolved in the root like any other.
func (c confined) readlink(name string) (string, error) {
	fd, err := c.open(name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	to, err := readlinkat(fd, "")
	if err == unix.ENOENT { //nolint:errorlint // a bare errno; the kernel's answer for a handle to no link
		return "", unix.EINVAL
	}
	return to, err
}

func (c confined) close() error { return unix.Close(c.fd) }

// walked is confined for kernels without openat2. Its errors are bare too.
type walked struct{ root *os.Root }

func (w walked) open(name string, flags int) (int, error) {
	if flags&unix.O_PATH != 0 { // os.Root opens files, not handles
		flags &^= unix.O_PATH
	}
	file, err := w.root.OpenFile(strings.TrimPrefix(name, "/"), flags|readFlags, 0)
	if err != nil {
		return -1, bare(err)
	}
	defer file.Close()
	return unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

func (w walked) readlink(name string) (string, error) {
	to, err := w.root.Readlink(strings.TrimPrefix(name, "/"))
	if err != nil {
		return "", bare(err)
	}
	return to, nil
}

// bare takes the kernel's errno out of an error of os.Root. What os.Root itself
// refuses, a link that would leave the root, is what openat2 says to that.
func bare(err error) error {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno
	}
	return unix.EXDEV
}

func (w walked) close() error { return w.root.Close() }

func readlinkat(fd int, name string) (string, error) {
	var buf [512]byte
	n, err := ignoringEINTR(func() (int, error) { return unix.Readlinkat(fd, name, buf[:]) })
	if err != nil {
		return "", err
	}
	if n < len(buf) {
		return string(buf[:n]), nil
	}
	long := make([]byte, unix.PathMax)
	n, err = ignoringEINTR(func() (int, error) { return unix.Readlinkat(fd, name, long) })
	if err != nil {
		return "", err
	}
	return string(long[:n]), nil
}

// ignoringEINTR repeats a call that a signal interrupted.
func ignoringEINTR(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR { //nolint:errorlint // a bare errno from the call itself
			return n, err
		}
	}
}

// File is a file opened for reading.
type File struct {
	fd   int
	name string
	from Handle // nil for the kernel
}

// Name is the file's name on its machine, with a leading slash.
func (f *File) Name() string { return "/" + f.name }

// Read fills buf as far as one read goes; 0 and no error is the end. A FIFO or
// device that would block is at its end.
func (f *File) Read(buf []byte) (int, error) {
	if f.from != nil {
		return f.named(f.from.Read(buf))
	}
	n, err := ignoringEINTR(func() (int, error) { return unix.Read(f.fd, buf) })
	if err == unix.EAGAIN { //nolint:errorlint // a bare errno from the call itself
		return 0, nil
	}
	if err != nil {
		return 0, pathError("read", f.name, err)
	}
	return n, nil
}

// ReadAt fills buf from an offset and gives what was there: less than asked for
// is no error here, since configuration space ends early without privilege.
func (f *File) ReadAt(buf []byte, offset int64) (int, error) {
	if f.from != nil {
		return f.named(f.from.ReadAt(buf, offset))
	}
	done := 0
	for done < len(buf) {
		n, err := ignoringEINTR(func() (int, error) {
			return unix.Pread(f.fd, buf[done:], offset+int64(done))
		})
		if err != nil {
			return done, pathError("read", f.name, err)
		}
		if n == 0 {
			break
		}
		done += n
	}
	return done, nil
}

// Close gives the handle back.
func (f *File) Close() error {
	if f.from != nil {
		return f.from.Close()
	}
	return unix.Close(f.fd)
}

// fill reads until buf is full or the file ends.
func (f *File) fill(buf []byte) (int, error) {
	done := 0
	for done < len(buf) {
		n, err := f.Read(buf[done:])
		if err != nil {
			return done, err
		}
		if n == 0 {
			break
		}
		done += n
	}
	return done, nil
}
