package agent

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"gdr-features/internal/report"
)

// readings lists what an agent reads, and when, while something happens.
func readings(t *testing.T, happen func(events chan<- report.Parts, changed *atomic.Bool)) map[time.Duration]report.Parts {
	t.Helper()
	seen := map[time.Duration]report.Parts{}
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		events := make(chan report.Parts)
		var changed atomic.Bool
		start := time.Now()
		log := logrus.New()
		log.SetOutput(t.Output())
		a := Agent{
			Interval: time.Minute, Now: time.Now, Log: log, Events: events,
			PortsChanged: func(context.Context) bool { return changed.Swap(false) },
			Collect: func(_ context.Context, parts report.Parts) report.Report {
				seen[time.Since(start)] = parts
				return report.Report{}
			},
		}
		ended := make(chan error)
		go func() { ended <- a.Run(ctx) }()
		time.Sleep(10*time.Second + 10*time.Millisecond) // between two looks at the ports
		happen(events, &changed)
		time.Sleep(80 * time.Second)
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return seen
}

func TestSchedule(t *testing.T) {
	const ms = time.Millisecond
	began := 10*time.Second + 10*ms
	for name, test := range map[string]struct {
		happen func(chan<- report.Parts, *atomic.Bool)
		want   map[time.Duration]report.Parts
	}{
		"nothing": {
			func(chan<- report.Parts, *atomic.Bool) {},
			map[time.Duration]report.Parts{0: report.All, time.Minute: report.All},
		},
		"a port changes": {
			func(_ chan<- report.Parts, changed *atomic.Bool) { changed.Store(true) },
			map[time.Duration]report.Parts{0: report.All, 11 * time.Second: report.RDMA, time.Minute: report.All},
		},
		"one event": {
			func(events chan<- report.Parts, _ *atomic.Bool) { events <- report.Drivers },
			map[time.Duration]report.Parts{
				0: report.All, began + 100*ms: report.Drivers, began + 1100*ms: report.Drivers, time.Minute: report.All,
			},
		},
		"a burst": {
			func(events chan<- report.Parts, _ *atomic.Bool) {
				events <- report.Drivers
				time.Sleep(50 * ms)
				events <- report.RDMA
			},
			map[time.Duration]report.Parts{
				0: report.All, began + 150*ms: report.Drivers | report.RDMA, began + 1150*ms: report.Drivers | report.RDMA, time.Minute: report.All,
			},
		},
		"another part soon after": { // does not put off the second reading of the first
			func(events chan<- report.Parts, _ *atomic.Bool) {
				events <- report.Drivers
				time.Sleep(600 * ms)
				events <- report.RDMA
			},
			map[time.Duration]report.Parts{
				0: report.All, began + 100*ms: report.Drivers, began + 700*ms: report.RDMA,
				began + 1100*ms: report.Drivers, began + 1700*ms: report.RDMA, time.Minute: report.All,
			},
		},
		"a storm": {
			func(events chan<- report.Parts, _ *atomic.Bool) {
				for range 14 { // for 700 ms
					events <- report.RDMA
					time.Sleep(50 * ms)
				}
			},
			map[time.Duration]report.Parts{
				0: report.All, began + 500*ms: report.RDMA, began + 750*ms: report.RDMA, began + 1750*ms: report.RDMA, time.Minute: report.All,
			},
		},
		"a function comes": { // then everything is new, and the interval begins
			func(events chan<- report.Parts, _ *atomic.Bool) { events <- report.PCI },
			map[time.Duration]report.Parts{
				0: report.All, began + 100*ms: report.All, began + 1100*ms: report.All, began + 61100*ms: report.All,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, readings(t, test.happen)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A reading of the PCI bus in the middle of a change is not confirmed by a reading of the
// RDMA devices alone that follows at once.
func TestHardwareReadTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		h := newHarness(t, ready, f)
		events := make(chan report.Parts)
		h.agent.Events = events
		h.agent.Collect = func(ctx context.Context, parts report.Parts) report.Report {
			if parts&report.PCI == 0 {
				return report.Report{Labels: h.machine.labels, Fresh: parts}
			}
			return h.machine.collect(ctx, parts)
		}
		h.run()
		h.sleepUntil(10 * s)
		h.machine.setLabels(other)
		events <- report.PCI
		h.sleepUntil(10*s + 150*ms) // read once
		events <- report.RDMA
		h.sleepUntil(10*s + 400*ms)
		if got := f.published(); got != "PIX true" {
			t.Errorf("published after one reading: %q", got)
		}
		h.machine.setLabels(ready)
		h.sleepUntil(20 * s)
		for _, try := range f.publications() {
			if try.labels != "PIX true" {
				t.Errorf("published %q at %v", try.labels, try.at)
			}
		}
		h.stopCleanly()
	})
}

// A machine that does not answer in time is read again soon, and less and less often.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		start := time.Now()
		var at []time.Duration
		a := Agent{
			Interval: time.Minute, Now: time.Now, Log: logrus.New(),
			Collect: func(context.Context, report.Parts) report.Report {
				at = append(at, time.Since(start))
				if len(at) == 9 {
					end()
				}
				return report.Report{Late: len(at) < 8}
			},
		}
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
		const s = time.Second
		want := []time.Duration{0, 2 * s, 6 * s, 14 * s, 30 * s, 62 * s, 122 * s, 182 * s, 242 * s}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// Ten thousand events in a second cause a few readings, and one after the last of them.
func TestStormOfEvents(t *testing.T) {
	now := time.Unix(1700000000, 0)
	s := schedule{interval: time.Minute}
	s.due(now)
	var read []time.Time
	pass := func(d time.Duration) {
		now = now.Add(d)
		if parts, _ := s.due(now); parts != 0 {
			read = append(read, now)
		}
	}
	for range 10_000 {
		s.event(report.RDMA, now)
		pass(100 * time.Microsecond)
	}
	last := now
	for range 500 {
		pass(10 * time.Millisecond)
	}
	if len(read) < 2 || len(read) > 6 || !read[len(read)-1].After(last) {
		t.Errorf("%d readings; the last %v after the last event", len(read), read[len(read)-1].Sub(last))
	}
}
