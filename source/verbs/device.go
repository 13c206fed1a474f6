package verbs

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"gdr-features/host"
)

const (
	class = "sys/class/infiniband_verbs"
	// Nodes is where device nodes are, for the running machine and no other.
	Nodes = "/dev/infiniband"
)

// node is what a device is asked through.
type node struct {
	name   string // "uverbs0"
	number uint64 // of the character device
	load   uint64 // changes with every load of the driver
}

func find(fs *host.FS) (map[string]node, error) {
	nodes, err := List(fs)
	if err != nil {
		return nil, err
	}
	found := make(map[string]node, len(nodes))
	for _, listed := range nodes {
		number, unnumbered := number(fs, listed.Node)
		load, gone := fs.Inode(class + "/" + listed.Node)
		if cmp.Or(listed.Err, unnumbered, gone) == nil {
			found[listed.Device] = node{listed.Node, number, load}
		}
	}
	return found, nil
}

// unchanged reports whether a node is still as it was found: a device has another
// directory after its driver was loaded again, and a device may be renamed.
func (n node) unchanged(fs *host.FS, device string) bool {
	load, err := fs.Inode(class + "/" + n.name)
	if err != nil || load != n.load {
		return false
	}
	now, err := fs.Line(class + "/" + n.name + "/ibdev")
	return err == nil && now == device
}

// number reads the device number, "231:192".
func number(fs *host.FS, name string) (uint64, error) {
	file := class + "/" + name + "/dev"
	text, err := fs.Line(file)
	if err != nil {
		return 0, err
	}
	major, minor, _ := strings.Cut(text, ":")
	a, err := strconv.ParseUint(major, 10, 32)
	b, err2 := strconv.ParseUint(minor, 10, 32)
	if err != nil || err2 != nil {
		return 0, fmt.Errorf("/%s: %q is no device number", file, text)
	}
	return unix.Mkdev(uint32(a), uint32(b)), nil
}

// errOther: the file there is another device, or none.
var errOther = errors.New("not the character device that sysfs names")

// open opens a node, and nothing else that might be in its place: merely opening
// some devices has effects.
func open(dir string, n node) (kernel, error) {
	path := dir + "/" + n.name
	handle, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(handle)
	var st unix.Stat_t
	if err := unix.Fstat(handle, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != n.number {
		return nil, &os.PathError{Op: "open", Path: path, Err: errOther}
	}
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(handle), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return uverbs(fd), nil
}

type uverbs int

func (fd uverbs) ioctl(r *request) unix.Errno {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), ioctlNumber, uintptr(unsafe.Pointer(r))) //nolint:gosec // how ioctl is called
		if errno != unix.EINTR {
			return errno
		}
	}
}

func (fd uverbs) close() { _ = unix.Close(int(fd)) }
