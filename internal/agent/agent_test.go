package agent

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/sirupsen/logrus"

	"gdr-features/internal/label"
	"gdr-features/internal/nodelabel"
	"gdr-features/source/family"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

// Nothing is published before the second reading, which comes soon; then the machine is
// read once an interval.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		h := newHarness(t, ready, f)
		h.run()
		h.sleepUntil(200 * s)
		if took, err := h.stop(); took != 0 || err != nil {
			t.Errorf("ended after %v with %v", took, err)
		}
		if diff := cmp.Diff([]time.Duration{0, 500 * ms, 60500 * ms, 120500 * ms, 180500 * ms}, h.machine.readAt()); diff != "" {
			t.Errorf("read at (-want +got):\n%s", diff)
		}
		want := []attempt{{500 * ms, "PIX true", false}, {60500 * ms, "PIX true", false}, {120500 * ms, "PIX true", false}, {180500 * ms, "PIX true", false}}
		if diff := cmp.Diff(want, f.publications(), cmp.AllowUnexported(attempt{})); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		if f.closed != 1 || f.removed != 0 {
			t.Errorf("closed %d times, removed %d times", f.closed, f.removed)
		}
		if n := h.logged(logrus.InfoLevel, "published"); n != 1 {
			t.Errorf("%d times logged as published", n)
		}
	})
}

// While a label has yet to settle the machine is read every half second, then once an
// interval again.
func TestSettling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := &fake{name: "one"}, &fake{name: "two"}
		h := newHarness(t, ready, one, two)
		h.run()
		h.sleepUntil(1 * s)
		h.machine.setLabels(notReady)
		h.sleepUntil(70 * s)
		for _, f := range []*fake{one, two} {
			if got := f.published(); got != "PIX true" {
				t.Errorf("%s: after 9.5 s published %q", f.name, got)
			}
		}
		h.sleepUntil(70500 * ms)
		for _, f := range []*fake{one, two} {
			if got := f.published(); got != "PIX false NoActivePort" {
				t.Errorf("%s: after 10 s published %q", f.name, got)
			}
		}
		h.sleepUntil(200 * s)
		want := []time.Duration{0, 500 * ms}
		for at := 60500 * ms; at <= 70500*ms; at += 500 * ms {
			want = append(want, at)
		}
		want = append(want, 130500*ms, 190500*ms)
		if diff := cmp.Diff(want, h.machine.readAt()); diff != "" {
			t.Errorf("read at (-want +got):\n%s", diff)
		}
		h.machine.setLabels(ready)
		h.sleepUntil(251 * s)
		if got := one.published(); got != "PIX true" {
			t.Errorf("ready again, published %q", got)
		}
		h.stopCleanly()
	})
}

// A publisher that hangs does not keep others waiting, and gets the newest state when it
// works again.
func TestSlowPublisher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, slow := &fake{name: "good"}, &fake{name: "slow", slow: 10 * time.Minute}
		h := newHarness(t, ready, slow, good)
		h.run()
		h.sleepUntil(1 * s)
		if got := good.published(); got != "PIX true" {
			t.Errorf("the other published %q", got)
		}
		h.machine.setLabels(other)
		h.sleepUntil(5 * time.Minute)
		if got := good.published(); got != "SYS true" {
			t.Errorf("the other published %q later", got)
		}
		slow.mu.Lock()
		slow.slow = 0
		slow.mu.Unlock()
		h.sleepUntil(10*time.Minute + 2*s)
		if got := slow.published(); got != "SYS true" {
			t.Errorf("the slow one published %q at last, calls %v", got, slow.publications())
		}
		h.stopCleanly()
	})
}

// A problem of the machine is logged when it is new, and again when it comes back after
// ten minutes or more: one that comes and goes does not fill the log.
func TestProblems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, ready, &fake{name: "one"})
		errA, errB := errors.New("cannot read A"), errors.New("cannot read B")
		h.machine.problems = []error{errA, errB}
		h.run()
		h.sleepUntil(200 * s)
		if a, b := h.logged(logrus.WarnLevel, "read A"), h.logged(logrus.WarnLevel, "read B"); a != 1 || b != 1 {
			t.Errorf("logged %d and %d times", a, b)
		}
		for _, step := range []struct {
			away time.Duration // how long A is not among the problems
			want int           // lines about it then
		}{{time.Minute, 1}, {9 * time.Minute, 1}, {11 * time.Minute, 2}, {time.Minute, 2}} {
			for _, problems := range [][]error{{errB}, {errA, errB}} {
				h.machine.mu.Lock()
				h.machine.problems = problems
				h.machine.mu.Unlock()
				time.Sleep(step.away)
			}
			if a, b := h.logged(logrus.WarnLevel, "read A"), h.logged(logrus.WarnLevel, "read B"); a != step.want || b != 1 {
				t.Errorf("away for %v: logged %d and %d times, want %d and 1", step.away, a, b, step.want)
			}
		}
		h.stopCleanly()
	})
}

// What cannot be read stays as the previous agent published it.
func TestReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one", is: ready, lastErr: errors.New("no answer")}
		h := newHarness(t, label.Set{}, f)
		h.machine.unknown = nodelabel.All(family.Known())
		h.run()
		h.sleepUntil(7 * s)
		if len(f.publications()) > 0 {
			t.Errorf("published without knowing what is: %v", f.publications())
		}
		f.mu.Lock()
		asked := len(f.asked)
		f.lastErr = nil
		f.mu.Unlock()
		if asked < 3 {
			t.Errorf("asked %d times in 7 s", asked)
		}
		h.sleepUntil(12 * s)
		if diff := cmp.Diff([]attempt{{0, "PIX true", false}}, f.publications(), cmp.AllowUnexported(attempt{}), cmpopts.IgnoreFields(attempt{}, "at")); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		h.sleepUntil(10 * time.Minute)
		if got := f.published(); got != "PIX true" {
			t.Errorf("published %q", got)
		}
		if warned, recovered := h.logged(logrus.WarnLevel, "fails"), h.logged(logrus.InfoLevel, "works again"); warned != 1 || recovered != 1 {
			t.Errorf("%d warnings, %d recoveries", warned, recovered)
		}
		h.stopCleanly()
	})
}

// An agent ends once a slow machine has answered, even if it never could read back what
// is published.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, ready, &fake{name: "one"}, &fake{name: "two", lastErr: errors.New("no answer")})
		h.machine.slow = 4 * s
		h.run()
		h.sleepUntil(6 * s) // 1.5 s into the second reading
		took, err := h.stop()
		if err != nil || took != 2500*ms {
			t.Errorf("ended after %v with %v", took, err)
		}
	})
}

// An interval shorter than the pause for a recheck is respected.
func TestShortInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, ready, &fake{name: "one"})
		h.agent.Interval = 200 * ms
		h.run()
		h.sleepUntil(1900 * ms)
		h.stopCleanly()
		if n := len(h.machine.readAt()); n != 10 {
			t.Errorf("read %d times in 2 s", n)
		}
	})
}

// A publication that is under way when the agent ends is completed; one that ends with
// the agent is no failure.
func TestEndsWhilePublishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stubborn, obedient := &fake{name: "one", slow: 2 * s, stubborn: true}, &fake{name: "two", slow: time.Minute}
		h := newHarness(t, ready, stubborn, obedient)
		h.run()
		h.sleepUntil(1 * s)
		obedient.mu.Lock()
		obedient.slow = 0 // to close
		obedient.mu.Unlock()
		if took, err := h.stop(); took != 3500*ms || err != nil { // 1.5 s to publish, 2 s to close
			t.Errorf("ended after %v with %v", took, err)
		}
		if got := stubborn.published(); got != "PIX true" {
			t.Errorf("published %q", got)
		}
		if n := h.logged(logrus.WarnLevel, ""); n != 0 {
			t.Errorf("%d warnings", n)
		}
	})
}

// Shutdown waits for publishers to finish, but not for ever.
func TestShutdownTimeout(t *testing.T) {
	for _, test := range []struct {
		name       string
		slow, want time.Duration
		err        bool
	}{
		{"finishes", 1100 * ms, 1100 * ms, false},
		{"does not", time.Hour, shutdownTimeout, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, two := &fake{name: "one"}, &fake{name: "two"}
				h := newHarness(t, ready, one, two)
				h.run()
				h.sleepUntil(10 * s)
				one.slow = test.slow
				took, err := h.stop()
				if took != test.want || (err != nil) != test.err {
					t.Errorf("ended after %v with %v", took, err)
				}
				if one.closed != 1 || two.closed != 1 {
					t.Errorf("closed %d and %d times", one.closed, two.closed)
				}
				if one.published() != "PIX true" || one.removed != 0 {
					t.Errorf("published %q, removed %d times", one.published(), one.removed)
				}
			})
		})
	}
}

// Readings are heard while a publication takes long: a state that did not hold for the settle
// time is not published, and hardware is not confirmed by readings with others between them.
func TestSettlesWhilePublishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		h := newHarness(t, ready, f)
		h.agent.Interval = 500 * ms
		h.run()
		h.sleepUntil(30 * s)
		f.mu.Lock()
		f.slow = 15 * s
		f.mu.Unlock()
		for _, step := range []struct {
			labels label.Set
			lasts  time.Duration
		}{{notReady, s}, {ready, 13 * s}, {notReady, 3 * s}, {other, 400 * ms}, {ready, 13 * s}, {other, 400 * ms}, {ready, time.Minute}} {
			h.machine.setLabels(step.labels)
			time.Sleep(step.lasts)
		}
		f.mu.Lock()
		f.slow = 0 // to close
		f.mu.Unlock()
		h.stopCleanly()
		for _, p := range f.publications() {
			if p.at > 30*s && p.labels != "PIX true" {
				t.Errorf("published %q after %v", p.labels, p.at)
			}
		}
	})
}

// After a reboot what the machine does not have any more is published without settling, and only
// then: not after a restart of the agent, nor where a boot's id is unknown.
func TestReboot(t *testing.T) {
	for _, test := range []struct {
		before, now string
		at          time.Duration // when it is published
	}{{"a", "b", 0}, {"a", "a", 10 * s}, {"", "b", 10 * s}, {"a", "", 10 * s}, {"", "", 10 * s}} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{name: "one", is: ready, boot: test.before}
			h := newHarness(t, notReady, f)
			h.agent.BootID = test.now
			h.run()
			h.sleepUntil(20 * s)
			h.stopCleanly()
			for _, p := range f.publications() {
				if p.labels != short(ready) {
					t.Logf("boot %q, then %q: %q after %v", test.before, test.now, p.labels, p.at)
					if p.at != test.at {
						t.Errorf("want after %v", test.at)
					}
					return
				}
			}
			t.Error("not published")
		})
	}
}
