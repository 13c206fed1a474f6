package nodefeature

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/publish"
)

// What is refused is asked for less and less often; so is what fails otherwise, once
// the object is known.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _ := logtest.NewNullLogger()
		known := false
		s := newSentry(time.Now, log, func() bool { return known })
		during := func(err error) time.Duration {
			start := time.Now()
			for range 20 {
				if err := s.rest(t.Context()); err != nil {
					t.Fatal(err)
				}
				s.failed(t.Context(), err)
			}
			return time.Since(start)
		}
		if took := during(errors.New("connection refused")); took != 0 {
			t.Errorf("rested %v after what is no refusal", took)
		}
		if took := during(apierrors.NewUnauthorized("who are you?")); took < 10*time.Minute || took > 27*time.Minute {
			t.Errorf("20 refusals took %v", took)
		}
		if !s.lost() {
			t.Error("not lost after minutes")
		}
		known = true
		if took := during(errors.New("connection refused")); took < 8*time.Minute || took > 20*time.Minute || s.lost() {
			t.Errorf("rested %v while the object is known; lost %v", took, s.lost())
		}
		known = false
		s.watching()
		if took := during(errors.New("EOF")); took != 0 || s.lost() {
			t.Errorf("rested %v when all was well before; lost %v", took, s.lost())
		}
		time.Sleep(stale - 1)
		if s.lost() {
			t.Error("lost before its time")
		}
		s.watching()
		time.Sleep(2 * stale)
		if s.lost() {
			t.Error("lost while it is watched")
		}
	})
}

// A server that is busy is left alone: nothing is asked a second time at once, nor
// in another way, and the errors say so.
func TestBusy(t *testing.T) {
	a := newAPI(t)
	p, _ := a.publisher(node)
	c := small(t, "ready")
	var full *publish.Busy
	for what, requests := range map[string]string{http.MethodGet: "GET", "APPLY": "GET APPLY"} {
		for _, status := range []int{http.StatusTooManyRequests, http.StatusGatewayTimeout} {
			a.says(what, status)
			if _, err := p.Publish(t.Context(), c); !errors.As(err, &full) {
				t.Errorf("%s %d: error %v", what, status, err)
			}
			a.asked(requests)
		}
		a.says(what, -1)
	}
	a.must(p, true, c, "GET APPLY")

	synctest.Test(t, func(t *testing.T) {
		log, _ := logtest.NewNullLogger()
		known := newStore()
		p := &Publisher{now: time.Now, watch: true, sentry: newSentry(time.Now, log, known.known), store: known} // it has no client
		if _, err := p.Last(t.Context()); !errors.As(err, &full) || !errors.Is(err, errUnheard) {
			t.Errorf("no answer to the watch: error %v", err)
		}
		s := p.sentry
		start := time.Now()
		for range 12 {
			if err := s.rest(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.failed(t.Context(), apierrors.NewTooManyRequests("later", 1))
		}
		if took := time.Since(start); took < 2*time.Minute || took > 6*time.Minute {
			t.Errorf("12 tries took %v", took)
		}
	})
}

// Where watching is refused the object is read, and soon.
func TestWatchRefused(t *testing.T) {
	a := newAPI(t)
	p, _ := a.publisher(node)
	p.watch = true
	p.sentry.failed(t.Context(), apierrors.NewForbidden(v1alpha1.Resource(resource), p.client.name, nil))
	start := time.Now()
	a.must(p, true, small(t, "ready"), "GET APPLY")
	a.must(p, false, small(t, "ready"), "GET") // nor does the next one wait to hear of it again
	if took := time.Since(start); took > requestLimit/2 {
		t.Errorf("it took %v", took)
	}
}

// A watch may fail after it has begun: the server says so in an event.
func TestHear(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	s := newSentry(time.Now, log, func() bool { return true })
	for _, tc := range []struct {
		event *metav1.Status
		want  mood
		lines int
	}{
		{nil, well, 0},
		{&apierrors.NewResourceExpired("too old").ErrStatus, well, 0},
		{&apierrors.NewTimeoutError("Too large resource version", 1).ErrStatus, busy, 1},
		{&apierrors.NewInternalError(errors.New("etcd")).ErrStatus, troubled, 1},
		{nil, well, 2},
	} {
		e := apiwatch.Event{Type: apiwatch.Bookmark}
		if tc.event != nil {
			e = apiwatch.Event{Type: apiwatch.Error, Object: tc.event}
		}
		s.hear(t.Context(), e)
		if n := len(hook.AllEntries()); s.mood != tc.want || n != tc.lines {
			t.Errorf("after %v: mood %d, want %d; %d lines logged, want %d", tc.event, s.mood, tc.want, n, tc.lines)
		}
	}
}

// A watch that is stopped ends, whatever nobody has taken of it. (A goroutine that
// stays makes synctest fail.)
func TestOverhear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _ := logtest.NewNullLogger()
		s := newSentry(time.Now, log, func() bool { return true })
		got := apiwatch.NewRaceFreeFake()
		w := s.overhear(t.Context(), got)
		got.Add(&v1alpha1.NodeFeature{})
		got.Error(&apierrors.NewTimeoutError("Too large resource version", 1).ErrStatus)
		if e := <-w.ResultChan(); e.Type != apiwatch.Added {
			t.Errorf("%v", e)
		}
		synctest.Wait() // the next one is offered
		if s.mood != busy {
			t.Errorf("mood %d", s.mood)
		}
		w.Stop()
		synctest.Wait()
		if !got.IsStopped() {
			t.Error("the watch below goes on")
		}

		w = s.overhear(t.Context(), apiwatch.NewRaceFreeFake()) // of which nothing is heard
		w.Stop()
		synctest.Wait()

		got = apiwatch.NewRaceFreeFake()
		w = s.overhear(t.Context(), got)
		got.Stop()
		if e, ok := <-w.ResultChan(); ok {
			t.Errorf("%v after the end", e)
		}
		s.watching()
	})
}

// What is known from a watch is confirmed as long as there is a watch: not from
// a moment after it has ended on, and after a while that is a failure, with the
// cause. Where watching is refused the object is read, which confirms it.
func TestConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _ := logtest.NewNullLogger()
		known := newStore()
		p := &Publisher{now: time.Now, watch: true, sentry: newSentry(time.Now, log, known.known), store: known}
		if err := known.Replace(nil, "1"); err != nil {
			t.Fatal(err)
		}
		s := p.sentry
		down := errors.New("connection refused")
		unconfirmed := func() bool { return errors.Is(p.confirmed(), publish.ErrUnconfirmed) }
		for _, end := range []struct {
			name  string
			do    func()
			cause error
		}{
			{"the watch ends", s.silent, errUnheard},
			{"the watch fails", func() { s.failed(t.Context(), down) }, down},
			{"the server has forgotten", func() { s.failed(t.Context(), apierrors.NewResourceExpired("too old")) }, errUnheard},
		} {
			s.watching()
			time.Sleep(time.Hour)
			if err := p.confirmed(); err != nil {
				t.Errorf("watched: %v", err)
			}
			end.do()
			if err := p.confirmed(); err != nil {
				t.Errorf("%s, a moment ago: %v", end.name, err)
			}
			time.Sleep(between)
			if !unconfirmed() {
				t.Errorf("%s, %v ago: %v", end.name, between, p.confirmed())
			}
			time.Sleep(stale)
			if err := p.confirmed(); unconfirmed() || !errors.Is(err, end.cause) {
				t.Errorf("%s, a minute ago: %v", end.name, err)
			}
		}
		s.failed(t.Context(), apierrors.NewUnauthorized("who are you?"))
		time.Sleep(stale)
		synctest.Wait()
		if err := p.confirmed(); err != nil {
			t.Errorf("read: %v", err)
		}
		s.listed()
		s.mood = busy
		if err := p.confirmed(); err != nil {
			t.Errorf("listed: %v", err)
		}

		s.watching()
		got := apiwatch.NewRaceFreeFake()
		w := s.overhear(t.Context(), got)
		got.Stop()
		<-w.ResultChan()
		if s.alive {
			t.Error("a watch that has ended is taken for one")
		}
		s.watching()
	})
}

// Each cause of a row of failures is logged, not the first alone.
func TestCauseOfWatchFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, hook := logtest.NewNullLogger()
		s := newSentry(time.Now, log, func() bool { return false })
		for range 5 {
			s.failed(t.Context(), errors.New("EOF"))
			time.Sleep(5 * time.Second)
		}
		for range 5 {
			s.failed(t.Context(), apierrors.NewForbidden(v1alpha1.Resource(resource), "x", nil))
			time.Sleep(time.Minute)
		}
		lines := hook.AllEntries()
		if len(lines) != 2 || !apierrors.IsForbidden(lines[1].Data["error"].(error)) {
			t.Errorf("%d lines logged", len(lines))
		}
		s.watching()
	})
}
