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

// process is a program that runs until it is stopped.
type process struct {
	name, log string
	cancel    context.CancelFunc
	ended     chan struct{}
	how       string // it ended, once it has
}

// start runs a program of .bin in dir, where its output goes to a file. It sees
// the given environment and nothing of ours, and does not outlive us.
func start(dir, name string, env []string, args ...string) (*process, error) {
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program(name), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append([]string{"HOME=" + dir}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{name: name, log: log.Name(), cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // says no more than the state
		p.how = cmd.ProcessState.String()
	}()
	return p, nil
}

// stop ends the process and waits for it. It is an error if it had ended before.
func (p *process) stop() error {
	err := p.alive()
	p.cancel()
	<-p.ended
	return err
}

// alive gives an error with the end of the log if the process has ended.
func (p *process) alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended: %s\n%s", p.name, p.how, p.tail())
	default:
		return nil
	}
}

// tail gives the last lines of the log.
func (p *process) tail() []byte {
	const most = 30
	log, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	lines := bytes.SplitAfter(log, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-most):], nil)
}

// until polls until done gives no error. It fails at the limit, with the last
// error, and as soon as one of the processes has ended.
func until(ctx context.Context, limit time.Duration, done func(context.Context) error, processes ...*process) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := done(ctx)
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
