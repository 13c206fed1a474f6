package nodefeature

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gdr-features/internal/publish"
)

// What is known is confirmed while the watch is alive. After its end it is
// unconfirmed, and after a minute a failure that names the cause, until there is a
// watch again.
func TestConfirmed(t *testing.T) {
	for _, test := range []struct {
		answer answer
		cause  string // none where the object is read instead
	}{
		{refuses, "connection refused"},
		{overloaded, "later"},
		{broken, "an error on the server"},
		{errs, "unable to return a response in the time allotted"}, // of the list that follows
		{denies, ""},
		{listOnly, ""},
	} {
		t.Run(string(test.answer), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answer: works}
				p, _ := s.watched(t)
				time.Sleep(time.Hour)
				if err := p.cache.confirmed(); err != nil {
					t.Errorf("watched: %v", err)
				}
				s.becomes(test.answer)
				synctest.Wait()
				for range 59 {
					if err := p.cache.confirmed(); !errors.Is(err, publish.ErrUnconfirmed) {
						t.Errorf("error %v", err)
					}
					time.Sleep(time.Second)
				}
				time.Sleep(time.Second)
				err := p.cache.confirmed()
				if (err != nil) != (test.cause != "") || err != nil && !strings.Contains(err.Error(), "1m0s: ") || !strings.Contains(fmt.Sprint(err), test.cause) {
					t.Errorf("after a minute: %v", err)
				}
				if _, err := p.current(t.Context()); err != nil || (s.gets > 0) != (test.cause == "") {
					t.Errorf("read %d times, error %v", s.gets, err)
				}
				for len(p.Changed()) > 0 {
					<-p.Changed()
				}
				s.becomes(works)
				time.Sleep(61 * time.Second)
				if err := p.cache.confirmed(); err != nil || len(p.Changed()) != 1 {
					t.Errorf("watched again: error %v, %d changes to look at", err, len(p.Changed()))
				}
			})
		})
	}
}

// alive reports whether the watch is.
func alive(p *Publisher) bool {
	p.cache.mu.Lock()
	defer p.cache.mu.Unlock()
	return p.cache.alive
}

// A watch that has sent nothing for three minutes, not even a bookmark, does not count any more: the
// object is read each time until a watch sends something.
func TestSilentWatch(t *testing.T) {
	for _, a := range []answer{silent, lists} {
		t.Run(string(a), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answer: works}
				p, hook := s.watched(t)
				time.Sleep(24 * time.Hour)
				idle := len(s.requests())
				s.holds(a)
				began := time.Now()
				for s.gets == 0 && time.Since(began) < time.Hour {
					time.Sleep(time.Second)
					if _, err := p.current(t.Context()); err != nil || p.cache.confirmed() != nil {
						t.Fatalf("after %v: error %v", time.Since(began), err)
					}
				}
				noticed := time.Since(began)
				if noticed > maxSilence+time.Second || alive(p) {
					t.Errorf("silent for %v, and counted as alive: %v", noticed, alive(p))
				}
				if e := hook.AllEntries(); len(e) == 0 || !errors.Is(e[0].Data["error"].(error), errSilent) {
					t.Errorf("logged %v", e)
				}
				time.Sleep(time.Hour)
				if _, err := p.current(t.Context()); err != nil || s.gets != 2 {
					t.Errorf("read %d times, error %v", s.gets, err)
				}
				asked := len(s.requests())
				s.holds(works)
				time.Sleep(maxSilence + 2*time.Minute)
				if _, err := p.current(t.Context()); err != nil || !alive(p) || s.gets != 2 {
					t.Errorf("alive %v, read %d times, error %v", alive(p), s.gets, err)
				}
				t.Logf("read instead after %v; %d requests to watch in an hour of silence, %d in a day with bookmarks", noticed, asked, idle)
				if len(hook.AllEntries()) > 3 || asked > 70 || idle > 50 {
					t.Errorf("too many requests, or %d lines logged", len(hook.AllEntries()))
				}
			})
		})
	}
}

// Before the object is known it is read where watching is denied, and soon. An API server
// that is overloaded, down or silent is not sent another kind of request: the error
// says why nothing is known.
func TestUnknown(t *testing.T) {
	for _, test := range []struct {
		answer answer
		want   string
	}{
		{works, ""},
		{denies, ""},
		{refuses, "30s: Get "},
		{overloaded, "30s: the server has received too many requests"},
		{broken, "30s: an error on the server"},
		{silent, "30s: " + errNoWatch.Error()},
	} {
		t.Run(string(test.answer), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answer: test.answer}
				p, _ := s.watched(t)
				for _, want := range []string{test.want, strings.Replace(test.want, "30s", "1m0s", 1)} {
					start := time.Now()
					_, err := p.Last(t.Context())
					if (err != nil) != (want != "") || !strings.Contains(fmt.Sprint(err), want) {
						t.Errorf("error %v, want %s", err, want)
					}
					if took := time.Since(start); took > time.Second && took != requestTimeout {
						t.Errorf("it took %v", took)
					}
				}
				if want := map[answer]int{denies: 2}[test.answer]; s.gets != want {
					t.Errorf("read %d times, want %d", s.gets, want)
				}
			})
		})
	}
}

// Each cause in a row of failures is logged, not only the first.
func TestCauseOfWatchFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: refuses}
		_, hook := s.watched(t)
		time.Sleep(5 * time.Minute)
		s.becomes(denies)
		time.Sleep(5 * time.Minute)
		lines := hook.AllEntries()
		if len(lines) != 2 || !apierrors.IsForbidden(lines[1].Data["error"].(error)) || lines[1].Level != logrus.WarnLevel {
			t.Errorf("%d lines logged", len(lines))
		}
	})
}

// An overloaded server is left alone: no request is repeated at once, and the errors
// tell the agent to wait.
func TestOverloaded(t *testing.T) {
	a := newAPI(t)
	p, _ := a.publisher(node)
	c := small(t, "ready")
	for what, requests := range map[string]string{http.MethodGet: "GET", "APPLY": "GET APPLY"} {
		for _, status := range []int{http.StatusTooManyRequests, http.StatusGatewayTimeout} {
			a.says(what, status)
			_, err := p.Publish(t.Context(), c)
			if slow := (*publish.SlowRetry)(nil); !errors.As(err, &slow) {
				t.Errorf("%s %d: error %v", what, status, err)
			}
			a.asked(requests)
		}
		a.says(what, -1)
	}
	a.must(p, true, c, "GET APPLY")
}
