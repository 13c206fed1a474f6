// Package uevent receives the kernel's events about devices, drivers and modules. It
// needs no privileges, and in a Pod it works in the Pod's own network namespace: the
// kernel sends to every namespace that the initial user namespace owns
// (lib/kobject_uevent.c, uevent_net_broadcast).
package uevent

import (
	"context"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Event is an event about one device, driver or module.
type Event struct {
	// Action is "add", "remove", "change", "bind", "unbind", "move", ...
	Action string
	// Subsystem is "pci", "module", "infiniband", "net", ...
	Subsystem string
	// Path is that of the device, below /sys.
	Path string
}

// Lost tells that events did not fit into the socket buffer: anything may have happened.
var Lost = Event{Action: "lost"}

const (
	// kernelGroup is the multicast group that the kernel sends to; udev's is 2.
	kernelGroup = 1
	// maxMessage in bytes is more than a message can have (UEVENT_BUFFER_SIZE and the path).
	maxMessage = 16 << 10
)

// Parse reads a message: "action@path", then "KEY=value", each ended by a zero byte
// (Documentation/core-api/kobject.rst). ok is false for others, such as those of udev.
func Parse(message []byte) (e Event, ok bool) {
	head, rest, _ := strings.Cut(string(message), "\x00")
	if e.Action, e.Path, ok = strings.Cut(head, "@"); !ok || e.Action == "" {
		return Event{}, false
	}
	for field := range strings.SplitSeq(rest, "\x00") {
		if name, found := strings.CutPrefix(field, "SUBSYSTEM="); found {
			e.Subsystem = name
		}
	}
	return e, e.Subsystem != ""
}

// Run calls handle for each event until ctx ends or the socket fails.
type Run func(ctx context.Context, handle func(Event)) error

// Listen opens a socket to the kernel, from which the result reads. The error tells that this
// kernel or sandbox does not allow it.
func Listen() (Run, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: kernelGroup}); err != nil {
		return nil, errors.Join(os.NewSyscallError("bind", err), unix.Close(fd))
	}
	file := os.NewFile(uintptr(fd), "uevents") //nolint:gosec // a file handle is not negative
	return func(ctx context.Context, handle func(Event)) error { return run(ctx, file, handle) }, nil
}

func run(ctx context.Context, file *os.File, handle func(Event)) error {
	stop := context.AfterFunc(ctx, func() { _ = file.Close() })
	defer stop()
	defer file.Close()
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, maxMessage)
	for {
		var n int
		var from unix.Sockaddr
		var failed error
		err := conn.Read(func(fd uintptr) bool {
			n, from, failed = unix.Recvfrom(int(fd), buf, 0) //nolint:gosec // a file handle
			return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
		})
		switch {
		case ctx.Err() != nil:
			return nil // the socket was closed because ctx ended
		case err != nil:
			return err
		case errors.Is(failed, unix.ENOBUFS):
			handle(Lost)
			continue
		case failed != nil:
			return os.NewSyscallError("recvfrom", failed)
		}
		if sender, is := from.(*unix.SockaddrNetlink); !is || sender.Pid != 0 {
			continue // not from the kernel
		}
		if e, ok := Parse(buf[:n]); ok {
			handle(e)
		}
	}
}
