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

// life is what a running agent costs while nothing happens. Unlike in idleHours, it sleeps
// between its readings and wakes with cold caches.
type life struct {
	cpu float64 // ms within lifetime
	// bare is what a program costs in the same time that only reads the state of ports.
	bare float64
}

// share is the CPU use, in percent of one core.
func (l life) share() float64 { return l.cpu / lifetime.Seconds() / 1e3 * 100 }

const (
	// lifetime is how long it is measured: its interval, in which it reads everything
	// once, and the ports every second.
	lifetime = time.Minute
	// startLimit is how long it may take to publish, and warmUpTime is left out after
	// that.
	startLimit = 10 * time.Second
	warmUpTime = 3 * time.Second
)

// times is the CPU time of the agent, times that of the program that only reads ports.
func (l life) times() float64 { return l.cpu / l.bare }

// cheapestLife measures the agent until it is cheap enough, at most three times, and gives the
// cheapest. Both programs wake up with cold caches, whose cost differs from minute to minute.
func cheapestLife(ctx context.Context, bin binaries, tree, dir string) (cheapest life, err error) {
	for i := range 3 {
		l, err := live(ctx, bin, tree, filepath.Join(dir, fmt.Sprint("life-", i)))
		if err != nil {
			return l, err
		}
		if i == 0 || l.times() < cheapest.times() {
			cheapest = l
		}
		if cheapest.times() <= mostOfPorts {
			break
		}
	}
	return cheapest, nil
}

// live measures the agent on a tree, and beside it a program that only reads the state of
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
		if time.Since(began) > startLimit {
			return l, fmt.Errorf("the agent has not published within %v: %s", startLimit, &log)
		}
	}
	time.Sleep(warmUpTime)
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

// ran is the CPU time of processes in ms: the sum of the first number, ns, of
// /proc/PID/task/TID/schedstat. The times in stat count ticks, which are too coarse for an
// agent that runs for a moment.
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
	fmt.Fprintf(w, "\n%-40s %8s\n", fmt.Sprintf("%v of an idle agent, 8 GPUs", lifetime), "CPU ms")
	fmt.Fprintf(w, "%-40s %8.0f  (%.3f %% of a core)\n", "the agent", l.cpu, l.share())
	fmt.Fprintf(w, "%-40s %8.0f\n", "for comparison: only reading ports", l.bare)
}
