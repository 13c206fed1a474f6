// The program guest is the first process of the virtual machine. It does what
// the test asks for over the second serial line (package wire).
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"gdr-features/test/vm/wire"
)

// line is the serial line that the test is at the other end of.
const line = "/dev/ttyS1"

func main() {
	if len(os.Args) > 2 && os.Args[1] == inOwn {
		if err := own(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "guest:", err)
			os.Exit(1)
		}
		return
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
	}
	// The first process must not end. Without QEMU's -no-reboot this would begin anew.
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
}

// serve tells that the machine has started, and does what is asked for from then
// on.
func serve() error {
	if err := mount(); err != nil {
		return err
	}
	tty, err := open(line)
	if err != nil {
		return err
	}
	answer := json.NewEncoder(tty)
	if err := answer.Encode(wire.Response{Out: "up"}); err != nil {
		return err
	}
	m := machine{running: map[int]*os.Process{}}
	for ask := json.NewDecoder(tty); ; {
		var q wire.Request
		if err := ask.Decode(&q); err != nil {
			return err
		}
		r, err := m.do(q)
		if err != nil {
			r.Failed = err.Error()
		}
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			return err
		}
		r.Up = time.Duration(now.Nano())
		if err := answer.Encode(r); err != nil {
			return err
		}
	}
}

// mount returns the machine the file systems that a node has.
func mount() error {
	for _, m := range []struct{ what, where string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/run"}, {"tmpfs", "/tmp"},
	} {
		if err := unix.Mount(m.what, m.where, m.what, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.where, err)
		}
	}
	return os.Chmod("/tmp", 0o1777) //nolint:gosec // as everywhere
}

// open opens a serial line that passes every byte as it is.
func open(name string) (*os.File, error) {
	tty, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0) //nolint:gosec // a constant
	if err != nil {
		return nil, err
	}
	raw := unix.Termios{Cflag: unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B115200}
	raw.Cc[unix.VMIN] = 1
	if err := unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, &raw); err != nil { //nolint:gosec // a file handle
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return tty, nil
}
