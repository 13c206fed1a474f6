package agent

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"gdr-features/internal/publish"
	"gdr-features/internal/report"
)

var errDown = errors.New("connection refused")

// gaps returns the pauses between calls in a row that failed.
func gaps(tries []attempt) (between []time.Duration) {
	var last time.Duration = -1
	for _, t := range tries {
		if t.failed && last >= 0 {
			between = append(between, t.at-last)
		}
		if last = -1; t.failed {
			last = t.at
		}
	}
	return between
}

// A publisher that fails is tried again soon, then every two to four seconds for as long
// as it takes; the first failure and the recovery are logged. Other publishers are not
// affected.
func TestFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := &fake{name: "bad", err: errDown}, &fake{name: "good"}
		h := newHarness(t, ready, bad, good)
		h.run()
		h.sleepUntil(200 * s)
		bad.setErr(nil)
		h.sleepUntil(205 * s)
		if got := bad.published(); got != "PIX true" {
			t.Errorf("published %q", got)
		}
		tries := bad.publications()
		between := gaps(tries)
		if n := len(between); n < 40 || n > 100 {
			t.Errorf("tried %d times in 200 s", n)
		}
		for i, gap := range between {
			least, most := 2*s, 4*s
			if i < 2 {
				least, most = []time.Duration{500 * ms, 1 * s}[i], []time.Duration{1 * s, 2 * s}[i]
			}
			if gap < least || gap > most {
				t.Errorf("try %d after %v, want %v to %v", i+1, gap, least, most)
			}
		}
		if n := len(good.publications()); n != 4 {
			t.Errorf("the other one was called %d times", n)
		}
		if warned, recovered := h.logged(logrus.WarnLevel, "fails"), h.logged(logrus.InfoLevel, "works again"); warned != 1 || recovered != 1 {
			t.Errorf("%d warnings, %d recoveries", warned, recovered)
		}

		bad.setErr(errDown)
		h.machine.setLabels(other)
		h.sleepUntil(300 * s)
		again := gaps(bad.publications()[len(tries):])
		if len(again) < 3 || again[0] > s || again[1] > 2*s {
			t.Errorf("in the next outage, tried after %v", again)
		}
		if warned := h.logged(logrus.WarnLevel, "fails"); warned != 2 {
			t.Errorf("%d warnings", warned)
		}
		h.stopCleanly()
	})
}

// After a failure the newest state is published.
func TestChangeWhileFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one", err: errDown}
		h := newHarness(t, ready, f)
		h.agent.Interval = s
		h.run()
		h.sleepUntil(20 * s)
		h.machine.setLabels(other)
		h.sleepUntil(30 * s)
		f.setErr(nil)
		h.sleepUntil(35 * s)
		if got := f.published(); got != "SYS true" {
			t.Errorf("published %q", got)
		}
		h.stopCleanly()
	})
}

// Events do not make a failing publisher try faster.
func TestEventsWhileFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one", err: errDown}
		h := newHarness(t, ready, f)
		h.agent.Interval = 200 * ms
		h.run()
		for range 200 {
			time.Sleep(100 * ms)
			f.edit()
		}
		h.stopCleanly()
		if n := len(f.publications()); n < 4 || n > 14 {
			t.Errorf("tried %d times in 20 s", n)
		}
	})
}

// A change by others is reverted at once, without reading the machine.
func TestRevert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		h := newHarness(t, ready, f)
		h.run()
		h.sleepUntil(10 * s)
		f.edit()
		synctest.Wait()
		if got := f.published(); got != "PIX true" {
			t.Errorf("published %q", got)
		}
		if n := len(h.machine.readAt()); n != 2 {
			t.Errorf("read %d times", n)
		}
		if n := h.logged(logrus.WarnLevel, "reverted"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		f.changed <- struct{}{} // a change that changed nothing
		synctest.Wait()
		if n := h.logged(logrus.WarnLevel, "reverted"); n != 1 {
			t.Errorf("logged %d times after a change of nothing", n)
		}
		h.stopCleanly()
	})
}

// A change that others repeat is not reverted without limit.
func TestFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		h := newHarness(t, ready, f)
		h.run()
		h.sleepUntil(10 * s)
		before := len(f.publications())
		for range 600 {
			f.edit()
			time.Sleep(100 * ms)
		}
		synctest.Wait()
		fought := len(f.publications()) - before
		if fought < 10 || fought > 20 {
			t.Errorf("published %d times in a minute", fought)
		}
		h.sleepUntil(130 * s)
		if got := f.published(); got != "PIX true" {
			t.Errorf("published %q after the fight", got)
		}
		h.stopCleanly()
	})
}

// Two writers that insist write less and less often; that is logged once and counted.
func TestInsist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		h := newHarness(t, ready, f)
		var monitor results
		h.agent.Monitor = &monitor
		h.run()
		h.sleepUntil(10 * s)
		before, told := len(f.publications()), atomic.LoadInt64(&monitor.reverted)
		for range 7200 { // the other one answers within half a second
			f.mu.Lock()
			theirs := len(f.is) == 0
			f.mu.Unlock()
			if !theirs {
				f.edit()
			}
			time.Sleep(500 * ms)
		}
		synctest.Wait()
		if n := len(f.publications()) - before; n < 18 || n > 35 {
			t.Errorf("published %d times in an hour", n)
		}
		if n := atomic.LoadInt64(&monitor.reverted) - told; n < 18 || n > 35 {
			t.Errorf("told of %d reverts", n)
		}
		if n := h.logged(logrus.WarnLevel, "again and again"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		h.sleepUntil(2 * time.Hour)
		f.edit()
		synctest.Wait()
		if got := f.published(); got != "PIX true" {
			t.Errorf("published %q although the others had stopped", got)
		}
		h.stopCleanly()
	})
}

// Any number of changes are reverted if there is time between them.
func TestRevertNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		h := newHarness(t, ready, f)
		h.agent.Interval = 30 * time.Minute
		h.run()
		h.sleepUntil(1 * s)
		for i := range 60 {
			h.sleepUntil(time.Duration(11*(i+1)) * s)
			f.edit()
			synctest.Wait()
			if got := f.published(); got != "PIX true" {
				t.Fatalf("edited %d times, published %q", i+1, got)
			}
		}
		h.stopCleanly()
	})
}

// A change of the machine is published even while changes by others are reverted.
func TestChangeInFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		h := newHarness(t, notReady, f)
		h.agent.Interval = s
		h.run()
		h.sleepUntil(2 * s)
		for range 12 {
			f.edit()
			synctest.Wait()
		}
		h.machine.setLabels(ready)
		time.Sleep(1100 * ms)
		synctest.Wait()
		if got := f.published(); got != "PIX true" {
			t.Errorf("published %q", got)
		}
		h.stopCleanly()
	})
}

// results counts what is reported to a monitor.
type results struct {
	well, failed int
	reverted     int64 // by atomic operations: it is read while reverts go on
}

func (m *results) Reverted(string) { atomic.AddInt64(&m.reverted, 1) }

func (*results) Read(*report.Report, time.Duration, bool) {}

func (m *results) Published(_ string, _ bool, err error) {
	if err != nil {
		m.failed++
		return
	}
	m.well++
}

// What is denied is tried less and less often, and soon after it is allowed; a
// failure to read back what is published counts as a failure.
func TestDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one", lastErr: publish.Denied(errDown)}
		h := newHarness(t, ready, f)
		var monitor results
		h.agent.Monitor = &monitor
		h.run()
		h.sleepUntil(time.Hour)
		if n := f.readBacks(); n < 30 || n > 75 || monitor.failed != n || monitor.well != 0 {
			t.Errorf("asked %d times in an hour, told of %d failures", n, monitor.failed)
		}
		f.mu.Lock()
		f.lastErr = nil
		f.mu.Unlock()
		h.sleepUntil(time.Hour + 3*time.Minute)
		if got := f.published(); got != "PIX true" || monitor.well == 0 {
			t.Errorf("published %q", got)
		}
		f.setErr(errors.Join(publish.Denied(errDown)))
		h.machine.setLabels(other)
		tries := len(f.publications())
		h.sleepUntil(2 * time.Hour)
		if n := len(f.publications()) - tries; n < 30 || n > 75 {
			t.Errorf("tried %d times in an hour", n)
		}
		h.stopCleanly()
	})
}

// An overloaded server is asked less and less often too, and the first times soon.
func TestOverloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one", lastErr: publish.Overloaded(errDown)}
		h := newHarness(t, ready, f)
		h.run()
		h.sleepUntil(10 * time.Second)
		if n := f.readBacks(); n < 3 {
			t.Errorf("asked %d times in ten seconds", n)
		}
		h.sleepUntil(time.Hour)
		if n := f.readBacks(); n < 60 || n > 130 {
			t.Errorf("asked %d times in an hour", n)
		}
		h.stopCleanly()
	})
}

// The last cause in the log is the current one.
func TestCauseLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one", err: errors.New("read tcp 127.0.0.1:40001: EOF")}
		h := newHarness(t, ready, f)
		h.run()
		h.sleepUntil(s)
		f.setErr(publish.Denied(errors.New("forbidden")))
		h.sleepUntil(10 * time.Minute)
		if n := h.logged(logrus.WarnLevel, "for another reason"); n != 1 {
			t.Errorf("another cause was logged %d times", n)
		}
		for _, e := range h.hook.AllEntries() {
			if e.Level == logrus.WarnLevel && e.Message == "publishing still fails, for another reason" && e.Data["error"].(error).Error() != "forbidden" {
				t.Errorf("logged %v", e.Data)
			}
		}
		h.stopCleanly()
	})
}

// What cannot be confirmed is neither a success nor a failure.
func TestUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		h := newHarness(t, ready, f)
		var monitor results
		h.agent.Monitor = &monitor
		h.run()
		h.sleepUntil(30 * s)
		before := monitor
		f.setErr(publish.ErrUnconfirmed)
		h.sleepUntil(5*time.Minute + 30*s)
		if monitor != before || before.well != 1 {
			t.Errorf("told of %v, before %v", monitor, before)
		}
		if n := len(f.publications()); n != 6 {
			t.Errorf("asked %d times", n)
		}
		f.setErr(nil)
		h.sleepUntil(6*time.Minute + 30*s)
		if monitor.well != before.well+1 || monitor.failed != 0 {
			t.Errorf("told of %v, before %v", monitor, before)
		}
		h.stopCleanly()
	})
}
