// Package agent keeps what is published about a node true: it reads the machine
// over and over and hands what it finds to the publishers.
package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"gdr-features/internal/hysteresis"
	"gdr-features/internal/publish"
	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
)

// Agent is what runs on a node.
type Agent struct {
	// Collect reads some parts of the machine. It comes back whatever the
	// machine does.
	Collect    func(context.Context, report.Parts) report.Report
	Publishers []publish.Publisher
	// Events tells which parts may have changed; nil for nobody who does.
	Events <-chan report.Parts
	// Moved tells whether a port has changed its state, of which no event
	// tells; it is asked every Poll. Nil for nobody to ask.
	Moved func(context.Context) bool
	Poll  time.Duration
	// Monitor is told what happens; nil for nobody.
	Monitor Monitor
	// Interval is the time between two readings when nothing happens.
	Interval time.Duration
	// Settle is how long the cause must hold that takes a state label away.
	Settle time.Duration
	Now    func() time.Time
	Log    logrus.FieldLogger
}

// Monitor is told what the agent does.
type Monitor interface {
	// Read tells of the machine as it was read; whole that all of it was.
	Read(r *report.Report, took time.Duration, whole bool)
	// Published tells how a publication went.
	Published(publisher string, wrote bool, err error)
}

const (
	// farewell is how long ending may take.
	farewell = 3 * time.Second
	// attempts is how often Once reads a machine that is another one each time.
	attempts = 6
	// soon is when a machine is read again that has not answered in time; twice
	// as much later each time, up to the interval.
	soon        = time.Second
	mostDoubled = 10
	// forget is how long a problem must be away before it is logged again. One
	// that comes and goes must not fill the log.
	forget = 10 * time.Minute
)

// sight is one look at the machine.
type sight struct {
	report report.Report
	at     time.Time
}

func (s *sight) reading() hysteresis.Reading {
	return hysteresis.Reading{
		Labels: s.report.Labels, Unknown: s.report.Unknown, At: s.at,
		Partial: s.report.Fresh&report.PCI == 0,
	}
}

// look reads the machine and logs what is wrong with it when that is news. known
// has when each problem was last there.
func (a *Agent) look(ctx context.Context, parts report.Parts, known map[string]time.Time) *sight {
	start := a.Now()
	s := &sight{report: a.Collect(ctx, parts), at: a.Now()}
	if a.Monitor != nil {
		a.Monitor.Read(&s.report, s.at.Sub(start), parts == report.All)
	}
	for _, problem := range sanitize.Errors(s.report.Problems) {
		if _, ok := known[problem]; !ok {
			a.Log.Warn(problem)
		}
		known[problem] = s.at
	}
	maps.DeleteFunc(known, func(_ string, last time.Time) bool { return s.at.Sub(last) >= forget })
	return s
}

// Run reads and publishes until ctx ends. What is published stays.
func (a *Agent) Run(ctx context.Context) error {
	var all sync.WaitGroup
	hurry := make(chan time.Duration, len(a.Publishers))
	var workers []*worker
	for _, p := range a.Publishers {
		w := newWorker(a, p, hurry)
		workers = append(workers, w)
		all.Go(func() { w.run(ctx) })
	}
	a.loop(ctx, workers, hurry)
	all.Wait()
	return a.leave(ctx)
}

// loop reads what is due and shows it to the workers.
func (a *Agent) loop(ctx context.Context, workers []*worker, hurry <-chan time.Duration) {
	due := wake{interval: a.Interval}
	if a.Moved != nil {
		due.poll = a.Poll
	}
	known := map[string]time.Time{}
	var last time.Time
	late := 0 // readings in a row that something was missing from
	for ctx.Err() == nil {
		parts, polled := due.take(a.Now())
		if polled && a.Moved(ctx) {
			parts |= report.RDMA
		}
		if parts != 0 {
			s := a.look(ctx, parts, known)
			last = s.at
			for _, w := range workers {
				w.show(s)
			}
			if late++; !s.report.Late {
				late = 0
			}
			if late > 0 { // a busy machine soon answers, a sick one does not
				due.hurry(last.Add(soon << min(late, mostDoubled)))
			}
		}
		a.pause(ctx, &due, last, hurry)
	}
}

// pause waits until something is due.
func (a *Agent) pause(ctx context.Context, due *wake, last time.Time, hurry <-chan time.Duration) {
	for {
		timer := time.NewTimer(due.next().Sub(a.Now()))
		select {
		case sooner := <-hurry:
			due.hurry(last.Add(sooner))
		case parts := <-a.Events:
			due.hear(parts, a.Now())
		case <-timer.C:
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// leave lets every publisher finish, which has a little time for it although ctx
// has ended.
func (a *Agent) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	return a.each(func(p publish.Publisher) error { return p.Close(ctx) })
}

// each does something with every publisher and joins the errors.
func (a *Agent) each(do func(publish.Publisher) error) error {
	var all error
	for _, p := range a.Publishers {
		if err := do(p); err != nil {
			all = errors.Join(all, fmt.Errorf("publisher %s: %w", p.Name(), err))
		}
	}
	return all
}

// Once reads the machine twice, a moment apart, or until two readings say the
// same about the hardware, and publishes what it found.
func (a *Agent) Once(ctx context.Context) error {
	var sights []*sight
	known := map[string]time.Time{}
	for len(sights) < 2 || len(sights) < attempts && !alike(sights) {
		if len(sights) > 0 {
			select {
			case <-time.After(hysteresis.Moment):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		sights = append(sights, a.look(ctx, report.All, known))
	}
	if !alike(sights) {
		return errors.New("the hardware looks different each time it is read; nothing was published")
	}
	all := a.each(func(p publish.Publisher) error { return a.publishOnce(ctx, p, sights) })
	return errors.Join(all, a.leave(ctx))
}

// alike tells whether the last two readings found the same hardware.
func alike(sights []*sight) bool {
	n := len(sights)
	return n >= 2 && maps.Equal(sights[n-2].report.Labels.Hardware(), sights[n-1].report.Labels.Hardware())
}

func (a *Agent) publishOnce(ctx context.Context, p publish.Publisher, sights []*sight) error {
	last, err := p.Last(ctx)
	if err != nil {
		return err
	}
	keeper := hysteresis.Published(0, last)
	content := publish.Content{}
	for _, s := range sights[len(sights)-2:] {
		labels, _, _ := keeper.Next(s.reading())
		content = publish.Content{Labels: labels, Report: &s.report, Seen: s.at}
	}
	wrote, err := p.Publish(ctx, content)
	if err == nil {
		a.log(p).WithField("labels", len(content.Labels)).Info(outcome(wrote))
	}
	return err
}

func (a *Agent) log(p publish.Publisher) logrus.FieldLogger {
	return a.Log.WithField("publisher", p.Name())
}

func outcome(wrote bool) string {
	if wrote {
		return "published"
	}
	return "nothing to change"
}

// Cleanup takes away what is published.
func (a *Agent) Cleanup(ctx context.Context) error {
	all := a.each(func(p publish.Publisher) error { return p.Remove(ctx) })
	return errors.Join(all, a.leave(ctx))
}
