package nodefeature

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/label"
	"gdr-features/internal/publish"
)

// must publishes, and must write or not, by these requests.
func (a *api) must(p *Publisher, wrote bool, c publish.Content, requests string) {
	a.Helper()
	if got, err := p.Publish(a.Context(), c); got != wrote || err != nil {
		a.Errorf("wrote %v, want %v; error %v", got, wrote, err)
	}
	a.asked(requests)
}

// One request to write, one to see; and none to a Node where the token names it.
func TestPublish(t *testing.T) {
	a := newAPI(t)
	p, hook := a.publisher(node)
	c := small(t, "ready")
	a.must(p, true, c, "GET APPLY")
	o := a.is()
	want := metav1.ObjectMeta{
		Name: "gdr-features-node-1", Namespace: namespace, UID: "1", ResourceVersion: "1",
		Labels:          map[string]string{"nfd.node.kubernetes.io/node-name": node, "app.kubernetes.io/managed-by": "gdr-features"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: uid}},
	}
	if diff := cmp.Diff(want, o.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c.Labels.Prefixed("feature.node.kubernetes.io/"), o.Spec.Labels); diff != "" || len(c.Labels) < 10 {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string(c.Labels), o.Spec.Features.Attributes["gdr.node"].Elements); diff != "" {
		t.Errorf("gdr.node (-want +got):\n%s", diff)
	}
	a.must(p, false, c, "GET")
	last, err := p.Last(t.Context())
	if diff := cmp.Diff(c.Labels, last); diff != "" || err != nil {
		t.Errorf("read back with error %v (-want +got):\n%s", err, diff)
	}
	a.asked("GET")

	c = small(t, "ports-down")
	a.must(p, true, c, "GET APPLY EVENT")
	if diff := cmp.Diff(map[string]string(c.Labels), known(a.is())); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	a.must(p, true, publish.Content{}, "GET APPLY")
	if o := a.is(); len(o.Spec.Labels) > 0 || len(o.Spec.Features.Instances) > 0 || len(o.OwnerReferences) != 1 {
		t.Errorf("emptied: %v", o)
	}
	a.must(p, false, publish.Content{}, "GET")
	if n := len(hook.AllEntries()); n > 0 {
		t.Errorf("%d lines logged", n)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A node without labels gets no object.
func TestNothing(t *testing.T) {
	a := newAPI(t)
	p, _ := a.publisher(node)
	a.must(p, false, publish.Content{}, "GET")
	if last, err := p.Last(t.Context()); len(last) > 0 || err != nil {
		t.Errorf("last %v, error %v", last, err)
	}
	a.asked("GET")
	if err := p.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	a.asked("DELETE")
}

// Labels that the report does not have, since they are from before, are
// published and in gdr.node too.
func TestKeptLabels(t *testing.T) {
	a := newAPI(t)
	p, _ := a.publisher(node)
	c := small(t, "kallsyms-missing")
	kept := maps.Clone(c.Labels)
	kept[label.DMABuf] = "true"
	c.Labels = kept
	a.must(p, true, c, "GET APPLY")
	o := a.is()
	if o.Spec.Labels[label.DefaultPrefix+label.DMABuf] != "true" || o.Spec.Features.Attributes["gdr.node"].Elements[label.DMABuf] != "true" {
		t.Errorf("labels %v", o.Spec)
	}
}

// What others do to the object is undone: what they changed by the apply, what
// they added by a merge patch.
func TestEdited(t *testing.T) {
	c := small(t, "ready")
	tests := []struct {
		name     string
		edit     func(o *v1alpha1.NodeFeature)
		stays    bool // another manager applies it again and again
		requests string
	}{
		{"a label", func(o *v1alpha1.NodeFeature) { o.Spec.Labels[label.DefaultPrefix+label.Ready] = "false" }, false, "GET APPLY"},
		{"no labels", func(o *v1alpha1.NodeFeature) { o.Spec.Labels = nil }, false, "GET APPLY"},
		{"no features", func(o *v1alpha1.NodeFeature) { o.Spec.Features = v1alpha1.Features{} }, false, "GET APPLY"},
		{"a feature", func(o *v1alpha1.NodeFeature) { o.Spec.Features.Attributes["gdr.node"].Elements["more"] = "1" }, false, "GET APPLY"},
		{"the node's name", func(o *v1alpha1.NodeFeature) { o.Labels = nil }, false, "GET APPLY"},
		{"the owner", func(o *v1alpha1.NodeFeature) { o.OwnerReferences = nil }, false, "GET APPLY"},
		{"more labels", func(o *v1alpha1.NodeFeature) { o.Spec.Labels["example.com/other"] = "1" }, true, "GET APPLY MERGE"},
		{"more features", func(o *v1alpha1.NodeFeature) {
			o.Spec.Features.Flags = map[string]v1alpha1.FlagFeatureSet{"x": {Elements: map[string]v1alpha1.Nil{"y": {}}}}
			o.Spec.Features.Attributes["gdr.other"] = v1alpha1.NewAttributeFeatures(map[string]string{"a": "b"})
		}, true, "GET APPLY MERGE"},
		{"what is not ours", func(o *v1alpha1.NodeFeature) {
			o.Labels["mine"], o.Annotations = "1", map[string]string{"a": "b"}
			o.Finalizers = []string{"example.com/f"}
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "2"})
		}, true, "GET"},
		{"a detail of the owner", func(o *v1alpha1.NodeFeature) {
			yes := true
			o.OwnerReferences[0].BlockOwnerDeletion = &yes
		}, true, "GET"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := newAPI(t)
			p, _ := a.publisher(node)
			a.must(p, true, c, "GET APPLY")
			before := a.is()
			a.edit(test.edit, test.stays)
			a.must(p, strings.Contains(test.requests, "APPLY"), c, test.requests)
			if diff := cmp.Diff(before.Spec, a.is().Spec); diff != "" {
				t.Errorf("spec (-before +after):\n%s", diff)
			}
			a.must(p, false, c, "GET")
		})
	}
}

// Errors come back as what they are, and the next try works.
func TestErrors(t *testing.T) {
	c := small(t, "ready")
	for _, test := range []struct {
		request string
		status  int
		is      func(error) bool
	}{
		{"GET", 403, apierrors.IsForbidden},
		{"GET", 401, apierrors.IsUnauthorized},
		{"GET", 500, apierrors.IsInternalError},
		{"APPLY", 403, apierrors.IsForbidden},
		{"APPLY", 409, apierrors.IsConflict},
		{"APPLY", 429, apierrors.IsTooManyRequests},
		{"APPLY", 500, apierrors.IsInternalError},
		{"APPLY", 0, func(err error) bool { return strings.Contains(err.Error(), "EOF") }},
		{"APPLY", noSuchKind, func(err error) bool {
			return apierrors.IsNotFound(err) && strings.Contains(err.Error(), "is Node Feature Discovery installed?")
		}},
		{"MERGE", 409, apierrors.IsConflict},
	} {
		t.Run(test.request+http.StatusText(test.status), func(t *testing.T) {
			a := newAPI(t)
			a.theirs = func(o *v1alpha1.NodeFeature) { o.Spec.Labels["example.com/other"] = "1" }
			p, _ := a.publisher(node)
			a.says(test.request, test.status)
			if wrote, err := p.Publish(t.Context(), c); wrote || err == nil || !test.is(err) {
				t.Errorf("wrote %v, error %v", wrote, err)
			}
			a.says(test.request, -1)
			if wrote, err := p.Publish(t.Context(), c); !wrote || err != nil {
				t.Errorf("then wrote %v, error %v", wrote, err)
			}
		})
	}
}

func TestNoServer(t *testing.T) {
	a := newAPI(t)
	p, _ := a.publisher(node)
	p.config.Host = "http://127.0.0.1:1"
	q, err := New(p.config, namespace, node, p.log)
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"last":    func() error { _, err := q.Last(t.Context()); return err }(),
		"publish": func() error { _, err := q.Publish(t.Context(), small(t, "ready")); return err }(),
		"remove":  q.Remove(t.Context()),
	} {
		if err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := New(&rest.Config{Host: "http://[not a host"}, namespace, node, p.log); err == nil {
		t.Error("no error for a host that is none")
	}
}

// Where deleting is not allowed the object is emptied, once.
func TestRemove(t *testing.T) {
	c := small(t, "ready")
	a := newAPI(t)
	p, _ := a.publisher(node)
	a.must(p, true, c, "GET APPLY")
	a.says("DELETE", 403)
	for _, requests := range []string{"DELETE GET APPLY", "DELETE GET"} {
		if err := p.Remove(t.Context()); err != nil {
			t.Error(err)
		}
		a.asked(requests)
		if o := a.is(); len(o.Spec.Labels) > 0 || len(o.Spec.Features.Attributes) > 0 || len(o.Spec.Features.Instances) > 0 {
			t.Errorf("emptied: %v", o.Spec)
		}
	}
	a.says("DELETE", 500)
	if err := p.Remove(t.Context()); !apierrors.IsInternalError(err) {
		t.Errorf("error %v", err)
	}
	a.says("DELETE", -1)
	if err := p.Remove(t.Context()); err != nil || a.is() != nil {
		t.Errorf("deleted: %v, error %v", a.is(), err)
	}
	a.says("DELETE", 403)
	if err := p.Remove(t.Context()); err != nil || a.is() != nil {
		t.Errorf("nothing there, not allowed: %v, error %v", a.is(), err)
	}
}

// While the object is watched nothing is asked; where it cannot be watched it is
// read.
func TestWatched(t *testing.T) {
	a := newAPI(t)
	p, hook := a.publisher(node)
	p.watch = true
	ctx, cancel := contextFor(t, 50*time.Millisecond)
	defer cancel()
	if _, err := p.Last(ctx); err == nil {
		t.Error("no error without an answer")
	}
	if err := p.store.Replace(nil, "1"); err != nil {
		t.Fatal(err)
	}
	a.version = 1
	c := small(t, "ready")
	a.must(p, true, c, "APPLY")
	a.must(p, false, c, "")
	if last, err := p.Last(t.Context()); len(last) != len(c.Labels) || err != nil {
		t.Errorf("last %v, error %v", last, err)
	}
	a.must(p, true, small(t, "ports-down"), "APPLY EVENT")
	a.asked("")

	forbidden := apierrors.NewForbidden(v1alpha1.Resource(resource), p.client.name, nil)
	p.sentry.failed(t.Context(), forbidden)
	a.must(p, false, small(t, "ports-down"), "") // a while without does not matter
	p.sentry.expire()
	a.object = nil
	a.must(p, true, small(t, "ports-down"), "GET APPLY")
	a.says(http.MethodGet, 403)
	if _, err := p.Publish(t.Context(), c); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
	a.asked("GET")
	p.sentry.watching()
	a.must(p, false, small(t, "ports-down"), "")
	if n := len(hook.AllEntries()); n != 2 {
		t.Errorf("%d lines logged", n)
	}
}

// What is refused is asked for less and less often; so is what fails otherwise, once
// the object is known.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _ := logtest.NewNullLogger()
		known := false
		s := newSentry(log, func() bool { return known })
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
		p := &Publisher{watch: true, sentry: newSentry(log, known.known), store: known} // it has no client
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
	if took := time.Since(start); took > requestLimit/2 {
		t.Errorf("it took %v", took)
	}
}

// A watch may fail after it has begun: the server says so in an event.
func TestHear(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	s := newSentry(log, func() bool { return true })
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
		if got := s.hear(t.Context(), e); got != e {
			t.Errorf("%v became %v", e, got)
		}
		if n := len(hook.AllEntries()); s.mood != tc.want || n != tc.lines {
			t.Errorf("after %v: mood %d, want %d; %d lines logged, want %d", tc.event, s.mood, tc.want, n, tc.lines)
		}
	}
}
