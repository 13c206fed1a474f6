// Package agent keeps what is published about a node up to date: it reads the machine
// again and again and gives what it finds to the publishers.
package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"

	"gdr-features/internal/nodelabel"
	"gdr-features/internal/publish"
	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
)

// Agent reads the machine and drives the publishers.
type Agent struct {
	// Collect reads these parts of the machine. It returns even if a read hangs.
	Collect    func(context.Context, report.Parts) report.Report
	Publishers []publish.Publisher
	// Events receives the parts that may have changed; nil without a source of events.
	Events <-chan report.Parts
	// PortsChanged reports whether a port's state has changed since the last call; may be nil.
	PortsChanged func(context.Context) bool
	// Monitor is notified of what happens; may be nil.
	Monitor Monitor
	// Interval is the time between two readings when nothing happens.
	Interval time.Duration
	// Settle is how long a condition must persist before a state label is taken away.
	Settle time.Duration
	// BootID is the kernel's random id of this boot; "" where it is unknown.
	BootID string
	Now    func() time.Time
	Log    logrus.FieldLogger
}

// Monitor is notified of what the agent does.
type Monitor interface {
	// Read reports a reading; whole tells that all parts were read.
	Read(r *report.Report, took time.Duration, whole bool)
	// Published reports the result of a publication.
	Published(publisher string, wrote bool, err error)
	// Reverted reports that a publication has reverted a change by others.
	Reverted(publisher string)
}

const (
	// pollEvery is how often the state of the ports is read: the kernel sends no event for it.
	pollEvery = time.Second
	// shutdownTimeout is how long ending may take.
	shutdownTimeout = 3 * time.Second
	// maxReadings is how many times Once reads hardware that looks different each time.
	maxReadings = 6
	// lateRetry is the pause after which a machine that did not answer in time is read
	// again. It doubles each time, maxDoublings times at most, up to the interval.
	lateRetry    = time.Second
	maxDoublings = 10
	// problemMemory is how long a problem must be gone before it is logged again. A
	// problem that comes and goes must not fill the log.
	problemMemory = 10 * time.Minute
)

type sample struct {
	report report.Report
	at     time.Time
}

func (s *sample) reading() nodelabel.Reading {
	return nodelabel.Reading{
		Labels: s.report.Labels, Unknown: s.report.Unknown, At: s.at,
		Partial: s.report.Fresh&report.PCI == 0,
	}
}

// read reads the machine and logs new problems. known has when each was last found.
func (a *Agent) read(ctx context.Context, parts report.Parts, known map[string]time.Time) *sample {
	start := a.Now()
	s := &sample{report: a.Collect(ctx, parts), at: a.Now()}
	if a.Monitor != nil {
		a.Monitor.Read(&s.report, s.at.Sub(start), parts == report.All)
	}
	for _, problem := range sanitize.Errors(s.report.Problems) {
		if _, ok := known[problem]; !ok {
			a.Log.Warn(problem)
		}
		known[problem] = s.at
	}
	maps.DeleteFunc(known, func(_ string, last time.Time) bool { return s.at.Sub(last) >= problemMemory })
	return s
}

// Run reads and publishes until ctx ends. What is published stays.
func (a *Agent) Run(ctx context.Context) error {
	var all sync.WaitGroup
	rescan := make(chan time.Duration, len(a.Publishers))
	var workers []*worker
	for _, p := range a.Publishers {
		w := &worker{
			agent: a, publisher: p, samples: make(chan *sample, 1), rescan: rescan,
			details: details{settle: a.Settle}, backoff: publish.Backoff{},
			reverts: rate.NewLimiter(rate.Every(10*time.Second), 10),
		}
		workers = append(workers, w)
		all.Go(func() { w.run(ctx) })
	}
	a.loop(ctx, workers, rescan)
	all.Wait()
	return a.close(ctx)
}

// loop reads what is due for the workers, which ask for the next reading by rescan.
func (a *Agent) loop(ctx context.Context, workers []*worker, rescan <-chan time.Duration) {
	plan := schedule{interval: a.Interval}
	if a.PortsChanged != nil {
		plan.poll = pollEvery
	}
	known := map[string]time.Time{}
	var last time.Time
	late := 0 // readings in a row in which something did not answer in time
	for ctx.Err() == nil {
		parts, poll := plan.due(a.Now())
		if poll && a.poll(ctx) {
			parts |= report.RDMA
		}
		if parts != 0 {
			s := a.read(ctx, parts, known)
			last = s.at
			for _, w := range workers {
				w.offer(s)
			}
			late++
			if !s.report.Late {
				late = 0
			} else { // a busy machine soon answers, a broken one does not
				plan.readAllBy(last.Add(lateRetry << min(late, maxDoublings)))
			}
		}
		a.pause(ctx, &plan, last, rescan)
	}
}

func (a *Agent) poll(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pollEvery)
	defer cancel()
	return a.PortsChanged(ctx)
}

func (a *Agent) pause(ctx context.Context, plan *schedule, last time.Time, rescan <-chan time.Duration) {
	for {
		select {
		case within := <-rescan:
			plan.readAllBy(last.Add(within))
		case parts := <-a.Events:
			plan.event(parts, a.Now())
		case <-time.After(plan.next().Sub(a.Now())):
			return
		case <-ctx.Done():
			return
		}
	}
}

// close closes every publisher, with some time for it although ctx has ended.
func (a *Agent) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	return a.each(func(p publish.Publisher) error { return p.Close(ctx) })
}

func (a *Agent) each(do func(publish.Publisher) error) error {
	var all error
	for _, p := range a.Publishers {
		if err := do(p); err != nil {
			all = errors.Join(all, fmt.Errorf("publisher %s: %w", p.Name(), err))
		}
	}
	return all
}

// Once reads the machine until two readings in a row find the same hardware, and
// publishes what the last one found.
func (a *Agent) Once(ctx context.Context) error {
	known := map[string]time.Time{}
	last := a.read(ctx, report.All, known)
	for range maxReadings - 1 {
		select {
		case <-time.After(nodelabel.RecheckDelay):
		case <-ctx.Done():
			return ctx.Err()
		}
		before := last
		last = a.read(ctx, report.All, known)
		if maps.Equal(nodelabel.HardwareOf(before.report.Labels), nodelabel.HardwareOf(last.report.Labels)) {
			all := a.each(func(p publish.Publisher) error { return a.publishOnce(ctx, p, before, last) })
			return errors.Join(all, a.close(ctx))
		}
	}
	return errors.New("the hardware looks different each time it is read; nothing was published")
}

func (a *Agent) publishOnce(ctx context.Context, p publish.Publisher, samples ...*sample) error {
	last, err := p.Last(ctx)
	if err != nil {
		return err
	}
	filter := nodelabel.NewFilter(0, last.Labels)
	var content publish.Content
	for _, s := range samples {
		labels, _, _ := filter.Next(s.reading())
		content = publish.Content{Labels: labels, Report: &s.report, BootID: a.BootID, Seen: s.at}
	}
	wrote, err := p.Publish(ctx, content)
	if err != nil {
		return err
	}
	result := "published"
	if !wrote {
		result = "nothing to change"
	}
	a.log(p).WithField("labels", len(content.Labels)).Info(result)
	return nil
}

func (a *Agent) log(p publish.Publisher) logrus.FieldLogger {
	return a.Log.WithField("publisher", p.Name())
}

// Cleanup removes what is published.
func (a *Agent) Cleanup(ctx context.Context) error {
	all := a.each(func(p publish.Publisher) error { return p.Remove(ctx) })
	return errors.Join(all, a.close(ctx))
}
