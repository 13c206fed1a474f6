package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// cost is what one run of a program took.
type cost struct {
	cpu  float64 // user and system time, ms
	peak float64 // resident memory, MB
}

// series is one program on one tree, and what its runs took.
type series struct {
	name  string
	argv  []string
	want  string // part of the output
	costs []cost
}

// subject is one tree and the programs on it. ghw, and check with what it is held
// against, may be nil.
type subject struct {
	functions          int
	product, bare, ghw *series
	check, bareCheck   *series
	otherFamily        *series // labels on the same machine with NICs of another family
}

// programs are in the order they take turns in.
func (s subject) programs() []*series {
	if s.ghw == nil {
		return []*series{s.product, s.bare}
	}
	return []*series{s.product, s.bare, s.ghw, s.check, s.bareCheck, s.otherFamily}
}

// warmUp rounds come first and do not count.
const warmUp = 3

// measure runs every program on every tree in turns.
func measure(ctx context.Context, launch string, all []subject, rounds int) error {
	for round := range warmUp + rounds {
		for _, s := range all {
			for _, p := range s.programs() {
				c, err := p.once(ctx, launch)
				if err != nil {
					return fmt.Errorf("%s on %d functions: %w", p.name, s.functions, err)
				}
				if round >= warmUp {
					p.costs = append(p.costs, c)
				}
			}
		}
	}
	return nil
}

// once runs the program through launch, in an empty environment: no settings of the
// Go runtime, and no user's own pci.ids.
func (s *series) once(ctx context.Context, launch string) (c cost, err error) {
	report, w, err := os.Pipe()
	if err != nil {
		return c, err
	}
	defer report.Close()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, launch, s.argv...)
	cmd.Env, cmd.ExtraFiles = []string{}, []*os.File{w}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = errors.Join(cmd.Run(), w.Close())
	if err != nil {
		return c, fmt.Errorf("%w: %s", err, &stderr)
	}
	var user, system, peak float64
	var status int
	if _, err := fmt.Fscan(report, &user, &system, &peak, &status); err != nil {
		return c, fmt.Errorf("what it cost: %w", err)
	}
	if status != 0 || !strings.Contains(stdout.String(), s.want) {
		return c, fmt.Errorf("exit status %d, %q on standard output, which must contain %q: %s", status, &stdout, s.want, &stderr)
	}
	return cost{cpu: (user + system) / 1e3, peak: peak * 1024 / 1e6}, nil
}

// cpu returns the times of all runs.
func (s *series) cpu() []float64 {
	all := make([]float64, len(s.costs))
	for i, c := range s.costs {
		all[i] = c.cpu
	}
	return all
}

// peak is the largest of the series.
func (s *series) peak() float64 {
	peak := 0.0
	for _, c := range s.costs {
		peak = max(peak, c.peak)
	}
	return peak
}

// median returns the value in the middle, or half way between the two there.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
