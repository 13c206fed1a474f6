package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// forReading opens a file without waiting for the writer of a FIFO.
const forReading = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY

// kernel is the Source of a directory tree, "/" or another.
type kernel struct{ root, sys, proc opener }

// opener opens files below one directory and never above it. Its errors are
// plain errnos.
type opener interface {
	open(name string, flags int) (fd int, err error)
	readlink(name string) (string, error)
	Close() error
}

func openKernel(o Options) (*kernel, error) {
	k := &kernel{}
	for _, part := range []struct {
		dir string
		to  *opener
	}{{o.Root, &k.root}, {o.Sysfs, &k.sys}, {o.Procfs, &k.proc}} {
		if part.dir == "" {
			continue
		}
		op, err := openDir(part.dir)
		if err != nil {
			return nil, errors.Join(err, k.Close())
		}
		*part.to = op
	}
	return k, nil
}

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

// at returns the opener that serves name and the name below it.
func (k *kernel) at(name string) (opener, string) {
	if below, ok := strings.CutPrefix(name, "sys/"); ok && k.sys != nil {
		return k.sys, below
	}
	if below, ok := strings.CutPrefix(name, "proc/"); ok && k.proc != nil {
		return k.proc, below
	}
	return k.root, name
}

func (k *kernel) Open(name string) (File, error) {
	op, below := k.at(name)
	fd, err := op.open(below, forReading)
	if err != nil {
		return nil, PathError("open", name, err)
	}
	return &file{fd: fd, name: name}, nil
}

func (k *kernel) Names(name string) ([]string, error) {
	op, below := k.at(name)
	fd, err := op.open(below, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, PathError("open", name, err)
	}
	defer unix.Close(fd)
	return namesIn(fd, name)
}

func namesIn(fd int, name string) (names []string, err error) {
	const most = 1 << 17
	buf := make([]byte, 8<<10)
	for {
		n, err := ignoringEINTR(func() (int, error) { return unix.ReadDirent(fd, buf) })
		if err != nil {
			err = PathError("readdir", name, err)
		} else if _, _, names = unix.ParseDirent(buf[:n], most+1, names); len(names) > most {
			names, err = names[:most], PathError("readdir", name, ErrTooLarge)
		}
		if n <= 0 || err != nil {
			slices.Sort(names)
			return names, err
		}
	}
}

func (k *kernel) Link(name string) (string, error) {
	op, below := k.at(name)
	to, err := op.readlink(below)
	if err != nil {
		return "", PathError("readlink", name, err)
	}
	return to, nil
}

func (k *kernel) Inode(name string) (uint64, error) {
	op, below := k.at(name)
	fd, err := op.open(below, unix.O_PATH)
	if err != nil {
		return 0, PathError("stat", name, err)
	}
	defer unix.Close(fd)
	return inodeOf(fd, name)
}

func inodeOf(fd int, name string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, PathError("stat", name, err)
	}
	return st.Ino, nil
}

// ReadWrite reports whether this process may open a file for reading and writing. It does not
// open it, which for some device nodes has effects. Without Live the error is
// errors.ErrUnsupported.
//
// It asks with access(2), which knows the mode of the file, capabilities, and the
// devices that the cgroup allows (kernel fs/open.c, do_faccessat; fs/namei.c,
// inode_permission). It asks for the real user, who is the effective one here. faccessat2
// would say more where the two differ, but x/sys takes its EPERM, which is also the cgroup's
// answer, for a missing system call.
func (f *FS) ReadWrite(name string) (bool, error) {
	k, ok := f.Source.(*kernel)
	if !ok {
		return false, PathError("access", name, errors.ErrUnsupported)
	}
	op, below := k.at(name)
	if _, ok := op.(walked); ok { // it would open the file
		return false, PathError("access", name, errors.ErrUnsupported)
	}
	fd, err := op.open(below, unix.O_PATH)
	if err != nil {
		return false, PathError("access", name, err)
	}
	defer unix.Close(fd)
	switch err := unix.Faccessat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.R_OK|unix.W_OK, 0); err {
	case nil:
		return true, nil
	case unix.EACCES, unix.EPERM, unix.EROFS:
		return false, nil
	default:
		return false, PathError("access", name, err)
	}
}

func (k *kernel) Close() error {
	var errs []error
	for _, op := range []opener{k.root, k.sys, k.proc} {
		if op != nil {
			errs = append(errs, op.Close())
		}
	}
	return errors.Join(errs...)
}

type file struct {
	fd   int
	name string
}

func (f *file) Read(buf []byte) (int, error) {
	return f.read(func() (int, error) { return unix.Read(f.fd, buf) })
}

func (f *file) ReadAt(buf []byte, offset int64) (done int, err error) {
	for done < len(buf) && err == nil {
		var n int
		n, err = f.read(func() (int, error) { return unix.Pread(f.fd, buf[done:], offset+int64(done)) })
		done += n
	}
	return done, err
}

// read treats a FIFO or terminal with nothing to read, which would block or cannot
// be read at an offset, as an empty file.
func (f *file) read(call func() (int, error)) (int, error) {
	switch n, err := ignoringEINTR(call); {
	case err == nil && n > 0:
		return n, nil
	case err == nil, err == unix.ESPIPE, err == unix.EAGAIN: //nolint:errorlint // bare errnos from the call itself
		return 0, io.EOF
	default:
		return 0, PathError("read", f.name, err)
	}
}

func (f *file) Close() error { return unix.Close(f.fd) }

// plain opens files of the running machine.
type plain struct{}

func (plain) open(name string, flags int) (int, error) {
	return ignoringEINTR(func() (int, error) { return unix.Open("/"+name, flags|unix.O_CLOEXEC, 0) })
}

func (plain) readlink(name string) (string, error) { return readlinkat(unix.AT_FDCWD, "/"+name) }

func (plain) Close() error { return nil }

// confined opens files below a directory as if it were "/": absolute links and
// ".." stay inside (openat2(2), RESOLVE_IN_ROOT).
type confined struct{ fd int }

func (c confined) open(name string, flags int) (int, error) {
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC), //nolint:gosec // open flags are not negative
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	}
	// While anything on the machine is renamed, the kernel may be unable to tell
	// where ".." leads, and asks to try again.
	const tries = 1000
	for try := 1; ; try++ {
		fd, err := ignoringEINTR(func() (int, error) { return unix.Openat2(c.fd, name, &how) })
		if err != unix.EAGAIN || try == tries { //nolint:errorlint // a bare errno from the call itself
			return fd, err
		}
	}
}

// readlink opens the link itself, then reads it by its handle, so that the path
// to it is resolved in the root like any other.
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

func (c confined) Close() error { return unix.Close(c.fd) }

// walked is confined for kernels without openat2.
type walked struct{ *os.Root }

func (w walked) open(name string, flags int) (int, error) {
	// os.Root takes no O_PATH. Without it, a file is opened for reading.
	file, err := w.OpenFile(strings.TrimPrefix(name, "/"), flags&^unix.O_PATH|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return -1, errnoOf(err)
	}
	defer file.Close()
	return unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

func (w walked) readlink(name string) (string, error) {
	to, err := w.Readlink(strings.TrimPrefix(name, "/"))
	if err != nil {
		return "", errnoOf(err)
	}
	return to, nil
}

// errnoOf takes the kernel's errno out of an error of package os. A link that leads
// out of an os.Root has none; openat2 says EXDEV to it.
func errnoOf(err error) error {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno
	}
	return unix.EXDEV
}

func readlinkat(fd int, name string) (string, error) {
	var buf [unix.PathMax]byte // no target is longer
	n, err := ignoringEINTR(func() (int, error) { return unix.Readlinkat(fd, name, buf[:]) })
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
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
