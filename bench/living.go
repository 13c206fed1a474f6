package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// life is what an agent takes that lives while nothing happens. Unlike in an hour
// at once, it sleeps in between and finds everything cold.
type life struct {
	cpu float64 // ms in its lifetime
	// bare is what a program takes in the same time that only looks at the ports.
	bare float64
}

// share is the part of one core that is, in percent.
func (l life) share() float64 { return l.cpu / lifetime.Seconds() / 1e3 * 100 }

const (
	// lifetime is its interval: it reads everything once, and looks at the ports
	// every second.
	lifetime = time.Minute
	// birth is how long it may take to publish, infancy what it does thereafter.
	birth   = 10 * time.Second
	infancy = 3 * time.Second
)

// live runs the agent on a tree, and beside it a program that only looks at the
// ports.
func live(ctx context.Context, bin binaries, tree, dir string) (l life, err error) {
	features := filepath.Join(dir, "staging", "features.d")
	if err := os.MkdirAll(features, 0o755); err != nil {
		return l, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var log strings.Builder
	agent := exec.CommandContext(ctx, bin.agent, "run", "--root", tree, "--publish", "file", "--features-dir", features, "--listen", "")
	agent.Env, agent.Stderr = []string{}, &log
	bare := exec.CommandContext(ctx, bin.life, tree)
	for _, cmd := range []*exec.Cmd{agent, bare} {
		if err := cmd.Start(); err != nil {
			return l, err
		}
		defer func() {
			cancel()
			_ = cmd.Wait() // it was killed
		}()
	}
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(features, "gdr-features.features")); err == nil {
			break
		}
		if time.Since(began) > birth {
			return l, fmt.Errorf("the agent has not published within %v: %s", birth, &log)
		}
	}
	time.Sleep(infancy)
	before, err := ran(agent.Process.Pid, bare.Process.Pid)
	if err != nil {
		return l, err
	}
	select {
	case <-time.After(lifetime):
	case <-ctx.Done():
		return l, ctx.Err()
	}
	after, err := ran(agent.Process.Pid, bare.Process.Pid)
	if err != nil {
		return l, err
	}
	return life{cpu: after[0] - before[0], bare: after[1] - before[1]}, nil
}

// ran is the time in ms that the threads of processes have run: the first number of
// /proc/PID/task/TID/schedstat, in ns. The times in its stat are of ticks, which an
// agent that runs for a moment falls between.
func ran(pids ...int) ([]float64, error) {
	sums := make([]float64, len(pids))
	for i, pid := range pids {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil || len(threads) == 0 {
			return nil, errors.Join(err, fmt.Errorf("/proc/%d/task/*/schedstat: none; this needs a kernel with CONFIG_SCHED_INFO, and the process alive", pid))
		}
		for _, name := range threads {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			var ns int64
			if _, err := fmt.Sscan(string(text), &ns); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			sums[i] += float64(ns) / 1e6
		}
	}
	return sums, nil
}

func lifeTable(w io.Writer, l life) {
	fmt.Fprintf(w, "\n%-40s %8s\n", fmt.Sprintf("%v of a life with nothing to do, 8 GPUs", lifetime), "CPU ms")
	fmt.Fprintf(w, "%-40s %8.0f  (%.3f %% of a core)\n", "the agent", l.cpu, l.share())
	fmt.Fprintf(w, "%-40s %8.0f\n", "for comparison: only looking at ports", l.bare)
}
