package nodefeature

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/features"
	"gdr-features/internal/journal"
	"gdr-features/internal/label"
	"gdr-features/internal/publish"
)

// must publishes, and checks whether that wrote and which requests it made.
func (a *api) must(p *Publisher, wrote bool, c publish.Content, requests string) {
	a.Helper()
	if got, err := p.Publish(a.Context(), c); got != wrote || err != nil {
		a.Errorf("wrote %v, want %v; error %v", got, wrote, err)
	}
	a.asked(requests)
}

// One request writes, one reads; and the Node is not read where the token names it.
func TestPublish(t *testing.T) {
	a := newAPI(t)
	p, hook := a.publisher(node)
	c := small(t, "ready")
	a.must(p, true, c, "GET APPLY")
	o := a.is()
	want := metav1.ObjectMeta{
		Name: "gdr-features-node-1", Namespace: namespace, UID: "1", ResourceVersion: "1",
		Labels:          map[string]string{"nfd.node.kubernetes.io/node-name": node, "app.kubernetes.io/managed-by": "gdr-features"},
		Annotations:     map[string]string{journal.Annotation: o.Annotations[journal.Annotation]}, // see journal_test.go
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: uid}},
	}
	if diff := cmp.Diff(want, o.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c.Labels.Prefixed("feature.node.kubernetes.io/"), o.Spec.Labels); diff != "" || len(c.Labels) < 10 {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(features.LabelsOf(c.Report, c.Labels).Elements, o.Spec.Features.Attributes["gdr.node"].Elements); diff != "" {
		t.Errorf("gdr.node (-want +got):\n%s", diff)
	}
	a.must(p, false, c, "GET")
	last, err := p.Last(t.Context())
	if diff := cmp.Diff(c.Labels, last.Labels); diff != "" || err != nil {
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

// The agent starts again on a machine that has not changed: nothing is written. After a reboot one
// write notes the boot, and leaves the journal and what was measured on the node valid.
func TestRestart(t *testing.T) {
	a := newAPI(t)
	c := small(t, "ready")
	write := func(boot string, wrote bool, requests string) {
		t.Helper()
		c.BootID = boot
		p, _ := a.publisher(node)
		if _, err := p.Last(t.Context()); err != nil {
			t.Error(err)
		}
		a.must(p, wrote, c, "GET "+requests)
		a.must(p, false, c, "GET")
		if last, err := p.Last(t.Context()); last.BootID != boot || err != nil {
			t.Errorf("boot %q, want %q; error %v", last.BootID, boot, err)
		}
		a.asked("GET")
	}
	write("a", true, "GET APPLY")
	before := a.is()
	write("a", false, "GET")
	write("b", true, "GET APPLY")
	after, name := a.is(), features.FingerprintKey
	was, is := before.Spec.Features.Attributes["gdr.node"].Elements[name], after.Spec.Features.Attributes["gdr.node"].Elements[name]
	if was == "" || is != was {
		t.Errorf("fingerprint %q, after the reboot %q", was, is)
	}
	if diff := cmp.Diff(before.Annotations, after.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// A node without labels gets no object.
func TestNothing(t *testing.T) {
	a := newAPI(t)
	p, _ := a.publisher(node)
	a.must(p, false, publish.Content{}, "GET")
	if last, err := p.Last(t.Context()); len(last.Labels) > 0 || err != nil {
		t.Errorf("last %v, error %v", last, err)
	}
	a.asked("GET")
	if err := p.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	a.asked("DELETE")
}

// Labels that are kept from before are published, and are in gdr.node, although the report
// does not have them.
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

// Changes by others are reverted: what they changed by the apply, what they added by replacing
// the spec.
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
		{"more labels", func(o *v1alpha1.NodeFeature) { o.Spec.Labels["example.com/other"] = "1" }, true, "GET APPLY REPLACE"},
		{"more features", func(o *v1alpha1.NodeFeature) {
			o.Spec.Features.Flags = map[string]v1alpha1.FlagFeatureSet{"x": {Elements: map[string]v1alpha1.Nil{"y": {}}}}
			o.Spec.Features.Attributes["gdr.other"] = v1alpha1.NewAttributeFeatures(map[string]string{"a": "b"})
		}, true, "GET APPLY REPLACE"},
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

// Errors are returned as they are, and the next try works.
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
		{"REPLACE", 409, apierrors.IsConflict},
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
	access := &rest.Config{Host: "http://127.0.0.1:1"}
	q, err := New(access, TokenOf(access), namespace, node, time.Now, p.log)
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
	if _, err := New(&rest.Config{Host: "http://[not a host"}, p.token, namespace, node, time.Now, p.log); err == nil {
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

// While the object is watched nothing is read; where watching is denied it is read, once
// the watch has been missing for a while.
func TestWatched(t *testing.T) {
	a := newAPI(t)
	p, hook := a.publisher(node)
	now := time.Now()
	p.cache = newObjectCache(func() time.Time { return now }, p.log)
	p.cache.opened(false)
	if err := p.cache.Replace(nil, "1"); err != nil {
		t.Fatal(err)
	}
	a.version = 1
	c := small(t, "ready")
	a.must(p, true, c, "APPLY")
	a.must(p, false, c, "")
	if last, err := p.Last(t.Context()); len(last.Labels) != len(c.Labels) || err != nil {
		t.Errorf("last %v, error %v", last, err)
	}
	c = small(t, "ports-down")
	a.must(p, true, c, "APPLY EVENT")

	p.cache.ended()
	p.cache.failed(t.Context(), apierrors.NewForbidden(v1alpha1.Resource(resource), p.client.name, nil), false)
	if _, err := p.Publish(t.Context(), c); !errors.Is(err, publish.ErrUnconfirmed) {
		t.Errorf("error %v", err)
	}
	a.asked("")
	now = now.Add(unwatchedLimit)
	a.object = nil
	a.must(p, true, c, "GET APPLY")
	a.says(http.MethodGet, 403)
	if _, err := p.Publish(t.Context(), c); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
	a.asked("GET")
	p.cache.opened(true)
	a.must(p, false, c, "")
	if n := len(hook.AllEntries()); n != 2 {
		t.Errorf("%d lines logged", n)
	}
}
