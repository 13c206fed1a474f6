package agent

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"gdr-features/internal/publish"
	"gdr-features/internal/report"
)

var errDown = errors.New("connection refused")

// gaps gives the times between the calls that failed, from the first on.
func gaps(tries []try) (between []time.Duration) {
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

// A publisher that fails is tried again soon, then every two to four seconds for
// as long as it takes; the first failure and the cure are logged. Others do not
// notice.
func TestFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := &fake{name: "bad", err: errDown}, &fake{name: "good"}
		st := newStage(t, ready, bad, good)
		st.run()
		st.until(200 * s)
		bad.fails(nil)
		st.until(205 * s)
		if got := bad.shows(); got != "PIX true" {
			t.Errorf("shows %q", got)
		}
		tries := bad.made()
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
		if n := len(good.made()); n != 4 {
			t.Errorf("the other one was asked %d times", n)
		}
		if warned, cured := st.logged(logrus.WarnLevel, "fails"), st.logged(logrus.InfoLevel, "works again"); warned != 1 || cured != 1 {
			t.Errorf("%d warnings, %d times cured", warned, cured)
		}

		bad.fails(errDown)
		st.machine.becomes(other)
		st.until(300 * s)
		again := gaps(bad.made()[len(tries):])
		if len(again) < 3 || again[0] > s || again[1] > 2*s {
			t.Errorf("the next time tried after %v", again)
		}
		if warned := st.logged(logrus.WarnLevel, "fails"); warned != 2 {
			t.Errorf("%d warnings", warned)
		}
		st.quit()
	})
}

// What has changed during a failure is published as it is in the end.
func TestChangeWhileFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one", err: errDown}
		st := newStage(t, ready, f)
		st.agent.Interval = s
		st.run()
		st.until(20 * s)
		st.machine.becomes(other)
		st.until(30 * s)
		f.fails(nil)
		st.until(35 * s)
		if got := f.shows(); got != "SYS true" {
			t.Errorf("shows %q", got)
		}
		st.quit()
	})
}

// Events do not make a failing publisher try faster.
func TestEventsWhileFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one", err: errDown}
		st := newStage(t, ready, f)
		st.agent.Interval = 200 * ms
		st.run()
		for range 200 {
			time.Sleep(100 * ms)
			f.edited()
		}
		st.quit()
		if n := len(f.made()); n < 4 || n > 14 {
			t.Errorf("tried %d times in 20 s", n)
		}
	})
}

// What somebody else changes is set right at once, without a look at the machine.
func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		st := newStage(t, ready, f)
		st.run()
		st.until(10 * s)
		f.edited()
		synctest.Wait()
		if got := f.shows(); got != "PIX true" {
			t.Errorf("shows %q", got)
		}
		if n := len(st.machine.readAt()); n != 2 {
			t.Errorf("read %d times", n)
		}
		if n := st.logged(logrus.WarnLevel, "restored"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		f.changed <- struct{}{} // a change that changed nothing
		synctest.Wait()
		if n := st.logged(logrus.WarnLevel, "restored"); n != 1 {
			t.Errorf("logged %d times after a change of nothing", n)
		}
		st.quit()
	})
}

// Somebody who insists is not fought without end.
func TestFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		st := newStage(t, ready, f)
		st.run()
		st.until(10 * s)
		before := len(f.made())
		for range 600 {
			f.edited()
			time.Sleep(100 * ms)
		}
		synctest.Wait()
		fought := len(f.made()) - before
		if fought < 10 || fought > 20 {
			t.Errorf("published %d times in a minute", fought)
		}
		st.until(130 * s)
		if got := f.shows(); got != "PIX true" {
			t.Errorf("shows %q after the fight", got)
		}
		st.quit()
	})
}

// Many restorations do not use up what may be restored later, if there is time
// between them.
func TestRestoreNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		st := newStage(t, ready, f)
		st.agent.Interval = 30 * time.Minute
		st.run()
		st.until(1 * s)
		for i := range 60 {
			st.until(time.Duration(11*(i+1)) * s)
			f.edited()
			synctest.Wait()
			if got := f.shows(); got != "PIX true" {
				t.Fatalf("edited %d times, shows %q", i+1, got)
			}
		}
		st.quit()
	})
}

// A news of the machine is not held up by a fight.
func TestNewsInFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		st := newStage(t, notReady, f)
		st.agent.Interval = s
		st.run()
		st.until(2 * s)
		for range 12 {
			f.edited()
			synctest.Wait()
		}
		st.machine.becomes(ready)
		time.Sleep(1100 * ms)
		synctest.Wait()
		if got := f.shows(); got != "PIX true" {
			t.Errorf("shows %q", got)
		}
		st.quit()
	})
}

// told counts what a monitor is told.
type told struct{ well, failed int }

func (*told) Read(*report.Report, time.Duration, bool) {}

func (m *told) Published(_ string, _ bool, err error) {
	if err != nil {
		m.failed++
		return
	}
	m.well++
}

// What is refused is tried less and less often, and soon again when it was not
// refused; a failure to read back what is published counts as one.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one", lastErr: publish.Denied(errDown)}
		st := newStage(t, ready, f)
		var monitor told
		st.agent.Monitor = &monitor
		st.run()
		st.until(time.Hour)
		if n := f.questions(); n < 30 || n > 75 || monitor.failed != n || monitor.well != 0 {
			t.Errorf("asked %d times in an hour, told of %d failures", n, monitor.failed)
		}
		f.mu.Lock()
		f.lastErr = nil
		f.mu.Unlock()
		st.until(time.Hour + 3*time.Minute)
		if got := f.shows(); got != "PIX true" || monitor.well == 0 {
			t.Errorf("shows %q", got)
		}
		f.fails(errors.Join(publish.Denied(errDown)))
		st.machine.becomes(other)
		tries := len(f.made())
		st.until(2 * time.Hour)
		if n := len(f.made()) - tries; n < 30 || n > 75 {
			t.Errorf("tried %d times in an hour", n)
		}
		st.quit()
	})
}

// A busy server is asked less and less often too, and the first times soon.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one", lastErr: publish.Overloaded(errDown)}
		st := newStage(t, ready, f)
		st.run()
		st.until(10 * time.Second)
		if n := f.questions(); n < 3 {
			t.Errorf("asked %d times in ten seconds", n)
		}
		st.until(time.Hour)
		if n := f.questions(); n < 60 || n > 130 {
			t.Errorf("asked %d times in an hour", n)
		}
		st.quit()
	})
}

// The cause that is logged last is the one that publishing fails for.
func TestCauseLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one", err: errors.New("read tcp 127.0.0.1:40001: EOF")}
		st := newStage(t, ready, f)
		st.run()
		st.until(s)
		f.fails(publish.Denied(errors.New("forbidden")))
		st.until(10 * time.Minute)
		if n := st.logged(logrus.WarnLevel, "for another reason"); n != 1 {
			t.Errorf("another cause was logged %d times", n)
		}
		for _, e := range st.hook.AllEntries() {
			if e.Level == logrus.WarnLevel && e.Message == "publishing still does not work, for another reason" && e.Data["error"].(error).Error() != "forbidden" {
				t.Errorf("logged %v", e.Data)
			}
		}
		st.quit()
	})
}

// What nobody confirms is no success and no failure.
func TestUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		st := newStage(t, ready, f)
		var monitor told
		st.agent.Monitor = &monitor
		st.run()
		st.until(30 * s)
		before := monitor
		f.fails(publish.ErrUnconfirmed)
		st.until(5*time.Minute + 30*s)
		if monitor != before || before.well != 1 {
			t.Errorf("told of %v, before %v", monitor, before)
		}
		if n := len(f.made()); n != 6 {
			t.Errorf("asked %d times", n)
		}
		f.fails(nil)
		st.until(6*time.Minute + 30*s)
		if monitor.well != before.well+1 || monitor.failed != 0 {
			t.Errorf("told of %v, before %v", monitor, before)
		}
		st.quit()
	})
}
