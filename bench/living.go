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
	cpu float64 // percent of a core
}

const (
	// lifetime is its interval: it reads everything once, and looks at the ports
	// every second.
	lifetime = time.Minute
	// birth is how long it may take to publish, infancy what it does thereafter.
	birth   = 10 * time.Second
	infancy = 3 * time.Second
)

// live runs the agent on a tree.
func live(ctx context.Context, agent, tree, dir string) (l life, err error) {
	features := filepath.Join(dir, "staging", "features.d")
	if err := os.MkdirAll(features, 0o755); err != nil {
		return l, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, agent, "run", "--root", tree, "--publish", "file", "--features-dir", features, "--listen", "")
	cmd.Env = []string{}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		return l, err
	}
	defer func() {
		cancel()
		if e := cmd.Wait(); e != nil && ctx.Err() == nil {
			err = errors.Join(err, e)
		}
	}()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(features, "gdr-features.features")); err == nil {
			break
		}
		if time.Since(began) > birth {
			return l, fmt.Errorf("the agent has not published within %v: %s", birth, &log)
		}
	}
	time.Sleep(infancy)
	before, err := ran(cmd.Process.Pid)
	if err != nil {
		return l, err
	}
	select {
	case <-time.After(lifetime):
	case <-ctx.Done():
		return l, ctx.Err()
	}
	after, err := ran(cmd.Process.Pid)
	l.cpu = 100 * (after - before).Seconds() / lifetime.Seconds()
	return l, err
}

// ran is the time that the threads of a process have run: the first number of
// /proc/PID/task/TID/schedstat, in ns. The times in its stat are of ticks, which an
// agent that runs for a moment falls between.
func ran(pid int) (sum time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		return 0, errors.Join(err, fmt.Errorf("/proc/%d/task/*/schedstat: none; this needs a kernel with CONFIG_SCHED_INFO, and the agent alive", pid))
	}
	for _, name := range threads {
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		var ns int64
		if _, err := fmt.Sscan(string(text), &ns); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

func lifeTable(w io.Writer, l life) {
	fmt.Fprintf(w, "\nan agent that lives for %v with nothing to do, 8 GPUs: %.0f ms of CPU, %.3f %% of a core\n", lifetime, l.cpu*lifetime.Seconds()*10, l.cpu)
}
