package nodefeature

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/test/testsize"
)

// client-go limits how often it handles errors by a clock that all tests share, each of
// which has a time of its own.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	m.Run()
}

// answer is how an API server answers to requests that list or watch.
type answer string

const (
	works   answer = "works"
	silent  answer = "accepts a watch and sends nothing"
	lists   answer = "lists, and accepts a watch and sends nothing" // a server that streams no lists
	brief   answer = "lists, accepts a watch, sends nothing, and ends it in order after 50 s"
	refuses answer = "connection refused"
	errs    answer = "error event" // is all that a watch sends
	late    answer = "late error"  // is all that a watch sends, of a server that streams no lists

	denies     answer = "403"
	overloaded answer = "429"
	broken     answer = "500"
	listOnly   answer = "403 to a watch, but not to a list"
)

// listsAlone reports whether the server lists, and streams no lists.
func (a answer) listsAlone() bool { return a == lists || a == late || a == brief }

// server answers the requests of publishers without a network, so that its time can be that
// of a synctest bubble.
type server struct {
	mu      sync.Mutex
	answer  answer
	times   []time.Time // of requests to list or watch
	gets    int
	streams []*io.PipeWriter
	// restarted: versions from before are forgotten: a watch from one of them
	// gets an error event.
	restarted bool
}

var failures = map[answer]*apierrors.StatusError{
	denies:     apierrors.NewForbidden(v1alpha1.Resource(resource), "x", nil),
	listOnly:   apierrors.NewForbidden(v1alpha1.Resource(resource), "x", nil),
	overloaded: apierrors.NewTooManyRequests("later", 1),
	broken:     apierrors.NewInternalError(errors.New("etcd")),
	errs:       apierrors.NewTimeoutError("etcd", 1),
	late:       apierrors.NewTimeoutError("etcd", 1),
}

var expired = apierrors.NewResourceExpired("too old resource version")

// RoundTrip implements http.RoundTripper.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	watch, streams := r.URL.Query().Get("watch") != "", r.URL.Query().Get("sendInitialEvents") != ""
	if !watch && r.URL.Query().Get("fieldSelector") == "" {
		s.gets++
		return respond(http.StatusNotFound, &apierrors.NewNotFound(v1alpha1.Resource(resource), "x").ErrStatus), nil
	}
	s.times = append(s.times, time.Now())
	status := failures[s.answer]
	switch {
	case s.answer == refuses:
		return nil, syscall.ECONNREFUSED
	case !watch && (s.answer == works || s.answer == listOnly || s.answer.listsAlone()):
		return respond(http.StatusOK, &v1alpha1.NodeFeatureList{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "NodeFeatureList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "5"},
		}), nil
	case s.answer.listsAlone() && streams:
		return respond(http.StatusForbidden, &failures[denies].ErrStatus), nil
	case status != nil && (!watch || s.answer != errs && s.answer != late):
		return respond(int(status.ErrStatus.Code), &status.ErrStatus), nil
	}
	out, in := io.Pipe()
	s.streams = append(s.streams, in)
	context.AfterFunc(r.Context(), func() { _ = in.CloseWithError(io.EOF) })
	send := func(kind string, object any) {
		if status, ok := object.(*metav1.Status); ok {
			named := status.DeepCopy()
			named.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			object = named
		}
		_ = json.NewEncoder(in).Encode(map[string]any{"type": kind, "object": object})
	}
	resumes := s.restarted && !streams
	bookmark := &v1alpha1.NodeFeature{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "NodeFeature"},
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: "5"},
	}
	go func(a answer) {
		switch {
		case a == works && resumes:
			send("ERROR", &expired.ErrStatus)
		case a == works: // there is no object
			if first := bookmark.DeepCopy(); streams {
				first.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
				send("BOOKMARK", first)
			}
			for r.Context().Err() == nil {
				time.Sleep(time.Minute)
				if s.is() == works {
					send("BOOKMARK", bookmark)
				}
			}
		case a == brief:
			time.Sleep(50 * time.Second)
			_ = in.CloseWithError(io.EOF)
		case a == late:
			time.Sleep(2 * resumedAfter)
			fallthrough
		case a == errs:
			send("ERROR", &status.ErrStatus)
		}
	}(s.answer)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: out}, nil
}

func respond(status int, object any) *http.Response {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text))}
}

func (s *server) is() answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer
}

// holds changes the answer, and sends no more bookmarks to the watches that there are.
func (s *server) holds(a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.times = a, nil
}

// becomes changes the answer, ends all watches and forgets the requests there were.
func (s *server) becomes(a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarted = s.restarted || s.answer == refuses
	s.answer, s.times = a, nil
	for _, stream := range s.streams {
		_ = stream.CloseWithError(io.EOF)
	}
	s.streams = nil
}

// requests returns the times of the requests to list or watch since the last change.
func (s *server) requests() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.times)
}

// watched returns a publisher that watches its object on a server.
func (s *server) watched(t *testing.T) (*Publisher, *logtest.Hook) {
	t.Helper()
	log, hook := logtest.NewNullLogger()
	p, err := New(&rest.Config{Host: "http://api", Transport: s, QPS: -1}, TokenOf(&rest.Config{}), namespace, node, time.Now, log)
	if err != nil {
		t.Fatal(err)
	}
	p.Watch(t.Context())
	// The bubble's end waits for the reflector's pause, which ignores its context.
	t.Cleanup(func() { time.Sleep(2 * time.Minute) })
	return p, hook
}

// However an API server fails, it is asked less and less often, and at no regular
// times. Failures are logged once, and so is that the watch works again.
func TestWatchBackoff(t *testing.T) {
	for _, from := range []answer{works, silent} {
		for _, a := range []answer{refuses, denies, overloaded, broken, errs, late} {
			t.Run(string(from)+", then "+string(a), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &server{answer: from}
					p, hook := s.watched(t)
					time.Sleep(10 * time.Minute)
					s.becomes(a)
					time.Sleep(20 * time.Second)
					if n := len(s.requests()); n < 2 || n > 12 {
						t.Errorf("%d requests in the first 20 s", n)
					}
					s.becomes(a)
					time.Sleep(time.Hour)
					times := s.requests()
					if n := len(times); n < 80 || n > 450 {
						t.Errorf("%d requests in an hour", n)
					}
					pauses := map[time.Duration]bool{}
					for i := range max(0, len(times)-1) {
						pauses[times[i+1].Sub(times[i])] = true
					}
					if len(pauses) < 30 {
						t.Errorf("%d different pauses", len(pauses))
					}
					p.cache.mu.Lock()
					if p.cache.alive {
						t.Error("a watch counts as alive")
					}
					p.cache.mu.Unlock()
					for range 2 { // the second one renews the watch
						s.becomes(works)
						time.Sleep(61 * time.Second)
					}
					if a == late { // until the first event
						time.Sleep(2 * time.Minute)
					}
					var lines []string
					for _, e := range hook.AllEntries() {
						lines = append(lines, e.Level.String()+" "+e.Message)
					}
					want := []string{"warning cannot watch the NodeFeature; trying again until it works", "info the NodeFeature is watched again"}
					if from == silent { // which is another cause
						want = slices.Insert(want, 0, want[0])
					}
					if n := len(lines); a == late && 2 <= n && n < 20 { // the first of these watches count, one by one
						lines, want = lines[n-2:], want[len(want)-2:]
					}
					if !slices.Equal(lines, want) {
						t.Errorf("logged %q", lines)
					}
				})
			})
		}
	}
}

// TestRareErrors: watches that end with an error now and then, and in order between, count as alive. Some
// end before the first bookmark, by a proxy's limit.
func TestRareErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: brief}
		p, _ := s.watched(t)
		for range 2 * maxBreaks {
			time.Sleep(time.Hour)
			s.becomes(late)
			time.Sleep(2 * time.Minute)
			s.becomes(brief)
		}
		time.Sleep(time.Hour)
		alive := 0
		for range 100 {
			time.Sleep(10 * time.Second)
			p.cache.mu.Lock()
			if p.cache.alive {
				alive++
			}
			p.cache.mu.Unlock()
		}
		if alive < 80 {
			t.Errorf("alive at %d of 100 times", alive)
		}
	})
}

// After an outage of the API server, be it short or long, all nodes watch again within a
// minute, and never many of them in the same second. (That all notice the outage at
// the same time does no harm: there is no server to answer.)
func TestNoHerd(t *testing.T) {
	const nodes = 200
	for _, outage := range testsize.Share([]time.Duration{5 * time.Second, 30 * time.Second, 10 * time.Minute}) {
		t.Run(outage.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answer: works}
				var all []*Publisher
				for range nodes {
					p, _ := s.watched(t)
					all = append(all, p)
				}
				time.Sleep(10 * time.Minute)
				s.becomes(refuses)
				time.Sleep(outage)
				for _, phase := range []struct {
					answer answer
					lasts  time.Duration
				}{{overloaded, 10 * time.Second}, {works, 61 * time.Second}} {
					s.becomes(phase.answer)
					time.Sleep(phase.lasts)
					perSecond, most := map[time.Duration]int{}, 0
					for _, at := range s.requests() {
						second := time.Since(at).Truncate(time.Second)
						perSecond[second]++
						most = max(most, perSecond[second])
					}
					t.Logf("%s: %d requests, %d in the busiest second", phase.answer, len(s.requests()), most)
					if most > nodes/4 {
						t.Errorf("%s: %d requests of %d nodes in a second", phase.answer, most, nodes)
					}
				}
				for _, p := range all {
					if err := p.cache.confirmed(); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// An agent that starts while the API server is down knows its object soon after the server is
// back: seconds after a short outage, at most a minute after a long one.
func TestStartDuringOutage(t *testing.T) {
	const nodes = 200
	for _, test := range []struct{ outage, half, all time.Duration }{
		{2 * time.Second, 6 * time.Second, 11 * time.Second},
		{10 * time.Second, 10 * time.Second, 41 * time.Second},
		{10 * time.Minute, 25 * time.Second, 61 * time.Second},
	} {
		t.Run(test.outage.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answer: refuses}
				var all []*Publisher
				for range nodes {
					p, _ := s.watched(t)
					all = append(all, p)
				}
				known := func() (count int) {
					for _, p := range all {
						p.cache.mu.Lock()
						if p.cache.known {
							count++
						}
						p.cache.mu.Unlock()
					}
					return count
				}
				time.Sleep(test.outage)
				s.becomes(works)
				time.Sleep(test.half)
				if n := known(); n < nodes/2 {
					t.Errorf("%d of %d agents know their object after %v", n, nodes, test.half)
				}
				time.Sleep(test.all - test.half)
				if n := known(); n < nodes {
					t.Errorf("%d of %d agents know their object after %v", n, nodes, test.all)
				}
			})
		})
	}
}
