package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// grace is how long a process may take to end before it is killed.
const grace = 10 * time.Second

// process is a program that runs until it is stopped, and can be started again. It is for
// one goroutine; others may call alive only while it is not being stopped or
// started.
type process struct {
	dir, name string
	env, args []string
	pid       int
	cancel    context.CancelFunc
	signal    os.Signal // that ends it
	ended     chan struct{}
	how       string // how it ended, once it has
	stopped   bool   // by us, or never started
}

// start runs a program, by its path below .bin, in dir, where its output goes to a file. It
// gets only the given environment, and ends with this process.
func start(dir, name string, env []string, args ...string) (*process, error) {
	p := &process{dir: dir, name: name, env: env, args: args, stopped: true}
	return p, p.start()
}

// start runs the program, for the first time or again.
func (p *process) start() error {
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program(p.name), p.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	cmd.Env = append([]string{"HOME=" + p.dir}, p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(p.signal) }
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		cancel()
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	ended := make(chan struct{})
	p.pid = cmd.Process.Pid
	p.cancel, p.ended, p.how, p.stopped = cancel, ended, "", false
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the error tells no more than the state
		p.how = cmd.ProcessState.String()
	}()
	return nil
}

// stop asks the process to end and waits for it. It is an error if the process has ended by
// itself.
func (p *process) stop() error { return p.end(syscall.SIGTERM) }

// kill is like stop, but does not ask.
func (p *process) kill() error { return p.end(syscall.SIGKILL) }

func (p *process) end(signal os.Signal) error {
	if p.stopped {
		return nil
	}
	err := p.alive()
	p.signal = signal
	p.cancel()
	<-p.ended
	p.stopped = true
	return err
}

// restart ends the process and runs it again.
func (p *process) restart() error {
	if err := p.stop(); err != nil {
		return err
	}
	return p.start()
}

// alive returns an error with the end of the log if the process has ended.
func (p *process) alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended: %s\n%s", p.name, p.how, p.tail())
	default:
		return nil
	}
}

// log returns the name of the file that takes the output.
func (p *process) log() string { return filepath.Join(p.dir, filepath.Base(p.name)+".log") }

// tail returns the last lines of the log.
func (p *process) tail() []byte {
	const most = 30
	log, err := os.ReadFile(p.log())
	if err != nil {
		return []byte(err.Error())
	}
	lines := bytes.SplitAfter(log, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-most):], nil)
}

const (
	// attempt is the timeout of a single call in until.
	attempt = 5 * time.Second
	// patience is the limit of until where a test does not judge how long something takes:
	// other tests use the CPUs at the same time.
	patience = time.Minute
)

// until calls done until it gives no error. It fails with the last error at the limit, and
// as soon as one of the processes has ended.
func until(ctx context.Context, limit time.Duration, done func(context.Context) error, processes ...*process) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		one, cancel := context.WithTimeout(ctx, attempt)
		err := done(one)
		cancel()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		for _, p := range processes {
			if err := p.alive(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %w", limit, last)
		case <-tick.C:
		}
	}
}
