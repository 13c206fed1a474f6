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
)

const (
	ms = time.Millisecond
	s  = time.Second
)

// Nothing is published before the second reading, which is not long in coming;
// then the machine is read once an interval.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		st := newStage(t, ready, f)
		st.run()
		st.until(200 * s)
		if took, err := st.stop(); took != 0 || err != nil {
			t.Errorf("ended after %v with %v", took, err)
		}
		if diff := cmp.Diff([]time.Duration{0, 500 * ms, 60500 * ms, 120500 * ms, 180500 * ms}, st.machine.readAt()); diff != "" {
			t.Errorf("read at (-want +got):\n%s", diff)
		}
		want := []try{{500 * ms, "PIX true", false}, {60500 * ms, "PIX true", false}, {120500 * ms, "PIX true", false}, {180500 * ms, "PIX true", false}}
		if diff := cmp.Diff(want, f.made(), cmp.AllowUnexported(try{})); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		if f.closed != 1 || f.removed != 0 {
			t.Errorf("closed %d times, removed %d times", f.closed, f.removed)
		}
		if n := st.logged(logrus.InfoLevel, "published"); n != 1 {
			t.Errorf("%d times logged as published", n)
		}
	})
}

// What has yet to settle is looked at every half second until it has, then the
// interval counts again.
func TestHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := &fake{name: "one"}, &fake{name: "two"}
		st := newStage(t, ready, one, two)
		st.run()
		st.until(1 * s)
		st.machine.becomes(notReady)
		st.until(70 * s)
		for _, f := range []*fake{one, two} {
			if got := f.shows(); got != "PIX true" {
				t.Errorf("%s: after 9.5 s it is %q", f.name, got)
			}
		}
		st.until(70500 * ms)
		for _, f := range []*fake{one, two} {
			if got := f.shows(); got != "PIX false NoActivePort" {
				t.Errorf("%s: after 10 s it is %q", f.name, got)
			}
		}
		st.until(200 * s)
		want := []time.Duration{0, 500 * ms}
		for at := 60500 * ms; at <= 70500*ms; at += 500 * ms {
			want = append(want, at)
		}
		want = append(want, 130500*ms, 190500*ms)
		if diff := cmp.Diff(want, st.machine.readAt()); diff != "" {
			t.Errorf("read at (-want +got):\n%s", diff)
		}
		st.machine.becomes(ready)
		st.until(251 * s)
		if got := one.shows(); got != "PIX true" {
			t.Errorf("ready again, and it is %q", got)
		}
		st.quit()
	})
}

// A publisher that does not come back does not keep others waiting, and gets the
// newest when it does.
func TestSlowPublisher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, slow := &fake{name: "good"}, &fake{name: "slow", slow: 10 * time.Minute}
		st := newStage(t, ready, slow, good)
		st.run()
		st.until(1 * s)
		if got := good.shows(); got != "PIX true" {
			t.Errorf("the other shows %q", got)
		}
		st.machine.becomes(other)
		st.until(5 * time.Minute)
		if got := good.shows(); got != "SYS true" {
			t.Errorf("the other shows %q later", got)
		}
		slow.mu.Lock()
		slow.slow = 0
		slow.mu.Unlock()
		st.until(10*time.Minute + 2*s)
		if got := slow.shows(); got != "SYS true" {
			t.Errorf("the slow one shows %q at last, made %v", got, slow.made())
		}
		st.quit()
	})
}

// What is wrong with the machine is logged when it is news, and again when it
// comes back after ten minutes or more: what comes and goes does not fill the log.
func TestProblems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, ready, &fake{name: "one"})
		a, b := errors.New("cannot read A"), errors.New("cannot read B")
		st.machine.problems = []error{a, b}
		st.run()
		st.until(200 * s)
		if a, b := st.logged(logrus.WarnLevel, "read A"), st.logged(logrus.WarnLevel, "read B"); a != 1 || b != 1 {
			t.Errorf("logged %d and %d times", a, b)
		}
		for _, step := range []struct {
			away time.Duration // how long A is not among the problems
			want int           // lines about it then
		}{{time.Minute, 1}, {9 * time.Minute, 1}, {11 * time.Minute, 2}, {time.Minute, 2}} {
			for _, problems := range [][]error{{b}, {a, b}} {
				st.machine.mu.Lock()
				st.machine.problems = problems
				st.machine.mu.Unlock()
				time.Sleep(step.away)
			}
			if a, b := st.logged(logrus.WarnLevel, "read A"), st.logged(logrus.WarnLevel, "read B"); a != step.want || b != 1 {
				t.Errorf("away for %v: logged %d and %d times, want %d and 1", step.away, a, b, step.want)
			}
		}
		st.quit()
	})
}

// What cannot be read stays as it was published by the agent before this one.
func TestReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one", is: ready, lastErr: errors.New("no answer")}
		st := newStage(t, label.Set{}, f)
		st.machine.unknown = label.All()
		st.run()
		st.until(7 * s)
		if len(f.made()) > 0 {
			t.Errorf("published without knowing what is: %v", f.made())
		}
		f.mu.Lock()
		asked := len(f.asked)
		f.lastErr = nil
		f.mu.Unlock()
		if asked < 3 {
			t.Errorf("asked %d times in 7 s", asked)
		}
		st.until(12 * s)
		if diff := cmp.Diff([]try{{0, "PIX true", false}}, f.made(), cmp.AllowUnexported(try{}), cmpopts.IgnoreFields(try{}, "at")); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		st.until(10 * time.Minute)
		if got := f.shows(); got != "PIX true" {
			t.Errorf("shows %q", got)
		}
		if warned, cured := st.logged(logrus.WarnLevel, "fails"), st.logged(logrus.InfoLevel, "works again"); warned != 1 || cured != 1 {
			t.Errorf("%d warnings, %d times cured", warned, cured)
		}
		st.quit()
	})
}

// An agent whose machine takes long to answer ends when it has answered, and one
// that never could read back ends too.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, ready, &fake{name: "one"}, &fake{name: "two", lastErr: errors.New("no answer")})
		st.machine.slow = 4 * s
		st.run()
		st.until(6 * s) // 1.5 s into the second reading
		took, err := st.stop()
		if err != nil || took != 2500*ms {
			t.Errorf("ended after %v with %v", took, err)
		}
	})
}

// An interval shorter than what is a hurry otherwise stays.
func TestShortInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, ready, &fake{name: "one"})
		st.agent.Interval = 200 * ms
		st.run()
		st.until(1900 * ms)
		st.quit()
		if n := len(st.machine.readAt()); n != 10 {
			t.Errorf("read %d times in 2 s", n)
		}
	})
}

// What is being published when the agent ends is published, whatever it waits
// for; what ends with the agent is no failure.
func TestEndsWhilePublishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stubborn, obedient := &fake{name: "one", slow: 2 * s, stubborn: true}, &fake{name: "two", slow: time.Minute}
		st := newStage(t, ready, stubborn, obedient)
		st.run()
		st.until(1 * s)
		obedient.mu.Lock()
		obedient.slow = 0 // to close
		obedient.mu.Unlock()
		if took, err := st.stop(); took != 3500*ms || err != nil { // 1.5 s to publish, 2 s to close
			t.Errorf("ended after %v with %v", took, err)
		}
		if got := stubborn.shows(); got != "PIX true" {
			t.Errorf("shows %q", got)
		}
		if n := st.logged(logrus.WarnLevel, ""); n != 0 {
			t.Errorf("%d warnings", n)
		}
	})
}

// Ending waits for publishers to finish, but not for ever.
func TestFarewell(t *testing.T) {
	for _, test := range []struct {
		name       string
		slow, want time.Duration
		err        bool
	}{
		{"finishes", 1100 * ms, 1100 * ms, false},
		{"does not", time.Hour, farewell, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, two := &fake{name: "one"}, &fake{name: "two"}
				st := newStage(t, ready, one, two)
				st.run()
				st.until(10 * s)
				one.slow = test.slow
				took, err := st.stop()
				if took != test.want || (err != nil) != test.err {
					t.Errorf("ended after %v with %v", took, err)
				}
				if one.closed != 1 || two.closed != 1 {
					t.Errorf("closed %d and %d times", one.closed, two.closed)
				}
				if one.shows() != "PIX true" || one.removed != 0 {
					t.Errorf("shows %q, removed %d times", one.shows(), one.removed)
				}
			})
		})
	}
}
