package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gdr-features/test/vm/wire"
)

// machine remembers what it has started.
type machine struct {
	running map[int]*os.Process
}

func (m *machine) do(q wire.Request) (wire.Response, error) {
	switch q.Command {
	case wire.Run:
		return run(q)
	case wire.Start:
		return m.start(q)
	case wire.Kill:
		return m.kill(q)
	case wire.Read:
		data, err := os.ReadFile(q.Path)
		return wire.Response{Data: data}, err
	case wire.Await:
		return await(q)
	case wire.Write:
		return wire.Response{}, write(q)
	case wire.List:
		return list(q)
	case wire.Link:
		target, err := os.Readlink(q.Path)
		return wire.Response{Out: target}, err
	case wire.Insert:
		return wire.Response{}, insert(q.Path)
	case wire.Remove:
		return wire.Response{}, unix.DeleteModule(q.Path, unix.O_NONBLOCK)
	case wire.AddRXE:
		return wire.Response{}, addRXE(q.Path, q.Device)
	case wire.Up:
		return wire.Response{}, join(q.Device, q.Path)
	case wire.Apart:
		return wire.Response{}, exclusive()
	case wire.Clock:
		return moveClock(time.Duration(q.Offset) * time.Second)
	}
	return wire.Response{}, fmt.Errorf("command %q", q.Command)
}

// moveClock moves the clock on the wall and gives what it says then.
func moveClock(by time.Duration) (wire.Response, error) {
	var now unix.Timeval
	if err := unix.Gettimeofday(&now); err != nil {
		return wire.Response{}, err
	}
	to := time.Unix(now.Unix()).Add(by)
	now = unix.NsecToTimeval(to.UnixNano())
	return wire.Response{Out: to.UTC().Format(time.RFC3339)}, unix.Settimeofday(&now)
}

// spawn starts a program as somebody. Its environment is empty.
func spawn(q wire.Request, out, errs *os.File) (*os.Process, error) {
	system := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: q.UID, Gid: q.UID}}
	if q.Own {
		q.Args = append([]string{self, inOwn}, q.Args...)
		system.Cloneflags = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS
	}
	return os.StartProcess(q.Args[0], q.Args, &os.ProcAttr{Env: []string{}, Files: []*os.File{nil, out, errs}, Sys: system})
}

func run(q wire.Request) (wire.Response, error) {
	out, err := collect()
	if err != nil {
		return wire.Response{}, err
	}
	errs, err := collect()
	if err != nil {
		return wire.Response{}, err
	}
	p, err := spawn(q, out.in, errs.in)
	// The ends that the program writes to are closed before the others are read,
	// which end when no writer is left.
	r := wire.Response{Out: out.text(), Err: errs.text()}
	if err != nil {
		return r, err
	}
	state, err := p.Wait()
	r.Status = state.ExitCode()
	return r, err
}

// collector reads what a program writes while it runs.
type collector struct {
	in   *os.File
	done chan string
}

func collect() (*collector, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &collector{w, make(chan string, 1)}
	go func() {
		defer r.Close()
		var text bytes.Buffer
		_, _ = io.Copy(&text, r)
		c.done <- text.String()
	}()
	return c, nil
}

func (c *collector) text() string {
	_ = c.in.Close()
	return <-c.done
}

func (m *machine) start(q wire.Request) (wire.Response, error) {
	log, err := os.Create(q.Path)
	if err != nil {
		return wire.Response{}, err
	}
	defer log.Close()
	p, err := spawn(q, log, log)
	if err != nil {
		return wire.Response{}, err
	}
	m.running[p.Pid] = p
	return wire.Response{PID: p.Pid}, nil
}

func (m *machine) kill(q wire.Request) (wire.Response, error) {
	p := m.running[q.PID]
	if p == nil {
		return wire.Response{}, fmt.Errorf("process %d was not started here", q.PID)
	}
	delete(m.running, q.PID)
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return wire.Response{}, err
	}
	state, err := p.Wait()
	return wire.Response{Status: state.ExitCode()}, err
}

// await looks for a change here: asking over the line again and again would cost
// more of the machine's time than what is waited for. A file that is not there is
// empty.
func await(q wire.Request) (wire.Response, error) {
	const every, times = 10 * time.Millisecond, 500
	for range times {
		data, err := os.ReadFile(q.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return wire.Response{}, err
		}
		if !bytes.Equal(data, q.Data) {
			return wire.Response{Data: data}, nil
		}
		time.Sleep(every)
	}
	return wire.Response{Data: q.Data}, nil
}

// write changes a file that is there, as those of sysfs are.
func write(q wire.Request) error {
	file, err := os.OpenFile(q.Path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := file.WriteAt(q.Data, q.Offset); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

func list(q wire.Request) (wire.Response, error) {
	entries, err := os.ReadDir(q.Path)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return wire.Response{Out: strings.Join(names, "\n")}, err
}

func insert(path string) error {
	module, err := os.Open(path) //nolint:gosec // the test names it
	if err != nil {
		return err
	}
	defer module.Close()
	return unix.FinitModule(int(module.Fd()), "", 0) //nolint:gosec // a file handle
}
