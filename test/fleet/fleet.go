package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/klog/v2"

	"gdr-features/host"
	"gdr-features/internal/report"
)

// commandTimeout is how long the writes after a command may take.
const commandTimeout = 15 * time.Minute

type options struct {
	server, ca, namespace, nodes, before, after string
}

// fleet is the agents of many nodes.
type fleet struct {
	members       []*member
	before, after report.Report
	writes        times
	now           func() time.Time
}

func newFleet(ctx context.Context, o options, now func() time.Time) (*fleet, error) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard) // thousands log the same when the API server ends
	f := &fleet{now: now}
	f.writes.now = now
	for dir, to := range map[string]*report.Report{o.before: &f.before, o.after: &f.after} {
		var err error
		if *to, err = readMachine(ctx, dir); err != nil {
			return nil, err
		}
	}
	ca, err := os.ReadFile(o.ca)
	if err != nil {
		return nil, err
	}
	nodes, err := os.ReadFile(o.nodes)
	if err != nil {
		return nil, err
	}
	log := logrus.New()
	log.SetLevel(logrus.ErrorLevel)
	for line := range strings.Lines(string(nodes)) {
		var name, token string
		if _, err := fmt.Sscan(line, &name, &token); err != nil {
			return nil, fmt.Errorf("%s: %w", o.nodes, err)
		}
		f.members = append(f.members, f.newMember(name, access(o.server, ca, token, &f.writes), o.namespace, log))
	}
	return f, nil
}

// readMachine reads a machine as the agent does.
func readMachine(ctx context.Context, dir string) (report.Report, error) {
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		return report.Report{}, err
	}
	defer fs.Close()
	r := report.Collect(ctx, fs, report.ForPublishing)
	if len(r.Labels) == 0 {
		return r, fmt.Errorf("%s: this machine has no labels", dir)
	}
	return r, nil
}

// start starts all agents, each at a random time within a period, with at most some
// at once that have not published yet: a DaemonSet waits for Pods that are not
// ready.
func (f *fleet) start(ctx context.Context, within time.Duration, atOnce int) {
	f.writes.clear()
	slots := make(chan struct{}, atOnce)
	for _, m := range f.members {
		after := rand.N(within + 1) //nolint:gosec // no secret
		m.done = sync.OnceFunc(func() { <-slots })
		time.AfterFunc(after, func() {
			slots <- struct{}{}
			m.run(ctx, &f.before)
		})
	}
}

// change changes the machines of some nodes and sends their agents an event, as the kernel
// does.
func (f *fleet) change(from, to int) {
	f.writes.clear()
	for _, m := range f.members[from:to] {
		m.change(&f.after)
	}
}

// written waits until there are n writes and gives their times.
func (f *fleet) written(ctx context.Context, n int) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for f.writes.count() < n {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return result{}, fmt.Errorf("%d of %d have written: %w", f.writes.count(), n, errors.Join(ctx.Err(), f.writes.failure()))
		}
	}
	return f.writes.sum(), nil
}
