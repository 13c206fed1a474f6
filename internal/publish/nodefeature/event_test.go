package nodefeature

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/client-go/rest"

	"gdr-features/internal/label"
	"gdr-features/internal/publish"
)

// A change of readiness is an event; readiness that is known for the first time, or
// has another reason, is not.
func TestReadyChange(t *testing.T) {
	none, yes := label.Set{}, label.Set{label.Ready: "true"}
	no := label.Set{label.Ready: "false", label.Reason: "NoActivePort"}
	no2 := label.Set{label.Ready: "false", label.Reason: "NoRDMADevice"}
	unknown := label.Set{label.Reason: "Unreadable"}
	for _, test := range []struct {
		name          string
		before, after label.Set
		kind, reason  string
		says          string
	}{
		{"first", nil, yes, "", "", ""},
		{"first, and not ready", none, no, "", "", ""},
		{"as before", yes, yes, "", "", ""},
		{"ready", no, yes, "Normal", "GPUDirectRDMAReady", "every prerequisite"},
		{"ready after it was unknown", unknown, yes, "", "", ""},
		{"lost", yes, no, "Warning", "GPUDirectRDMALost", "NoActivePort"},
		{"another reason", no, no2, "", "", ""},
		{"gone", yes, none, "Warning", "GPUDirectRDMALost", ": no GPU is found"},
		{"gone, and was not ready", no, none, "", "", ""},
	} {
		kind, reason, message := readyChange(test.before, test.after)
		if kind != test.kind || reason != test.reason || !strings.Contains(message, test.says) {
			t.Errorf("%s: %s %s %q", test.name, kind, reason, message)
		}
	}
}

// Events are kept while the server does not take them, go to the agent's namespace where
// the default one is not allowed, and are dropped where neither is; labels are published in
// any case.
func TestEvents(t *testing.T) {
	a := newAPI(t)
	p, hook := a.publisher(node)
	at := time.Unix(1e9, 0)
	turn := func(state, requests string) {
		t.Helper()
		c := small(t, state)
		at = at.Add(time.Minute)
		c.Seen = at
		a.must(p, true, c, requests)
	}
	turn("ready", "GET APPLY")
	turn("ports-down", "GET APPLY EVENT")
	e := a.events[0]
	if e.InvolvedObject.Kind != "Node" || e.InvolvedObject.Name != node || e.InvolvedObject.UID != uid || e.Type != "Warning" ||
		e.Namespace != "default" || !e.FirstTimestamp.Time.Equal(at) || e.Source.Component != "gdr-features" {
		t.Errorf("event %v", e)
	}
	a.says("EVENT", 400) // a webhook that names no status
	turn("ready", "GET APPLY EVENT")
	if len(p.events) != 0 {
		t.Errorf("%d events wait", len(p.events))
	}
	a.says("EVENT", -1)
	turn("ports-down", "GET APPLY EVENT")
	a.says("EVENT", 500)
	turn("ready", "GET APPLY EVENT")
	a.must(p, false, publish.Content{Labels: p.published, Report: small(t, "ready").Report, Seen: at}, "GET EVENT")
	a.says("EVENT", 403)
	turn("ports-down", "GET APPLY EVENT EVENT-HERE EVENT EVENT-HERE")
	var got []string
	for _, e := range a.events {
		got = append(got, e.Namespace+" "+e.InvolvedObject.Namespace+" "+e.Reason)
	}
	want := []string{"default  GPUDirectRDMALost", "default  GPUDirectRDMALost", namespace + " " + namespace + " GPUDirectRDMAReady", namespace + " " + namespace + " GPUDirectRDMALost"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	a.says("EVENT-HERE", 403)
	turn("ready", "GET APPLY EVENT EVENT-HERE")
	turn("ports-down", "GET APPLY EVENT EVENT-HERE")
	if n := len(hook.AllEntries()); n != 1 || len(p.events) != 0 {
		t.Errorf("%d lines logged, %d events wait", n, len(p.events))
	}
	for range 2 * maxQueued {
		p.queueEvent(label.Set{label.Ready: "true"}, label.Set{label.Ready: "false"}, at)
	}
	if n := len(p.events); n != maxQueued || p.events[n-1].Reason != lostReady {
		t.Errorf("%d events wait", n)
	}
}

// hangs is a connection on which no answer comes.
type hangs struct{}

func (hangs) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// An API server that does not answer to events does not hold up labels for long.
func TestEventsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _ := logtest.NewNullLogger()
		access := &rest.Config{Host: "http://192.0.2.1", Transport: hangs{}, QPS: -1}
		p, err := New(access, TokenOf(access), namespace, node, time.Now, log)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			p.queueEvent(label.Set{label.Ready: "true"}, label.Set{label.Ready: "false"}, time.Now())
		}
		start := time.Now()
		p.sendEvents(t.Context())
		if took := time.Since(start); took != eventsTimeout || len(p.events) != 2 {
			t.Errorf("%d events wait after %v", len(p.events), took)
		}
	})
}
