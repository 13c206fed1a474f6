package nodefeature

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/publish"
)

// The garbage collector deletes what belongs to a Node that is gone. After two such
// deletions the object is written without that owner, which is logged once. It has an owner
// again when the token names another Node, or when the Node can be read.
func TestOwnerGone(t *testing.T) {
	claim := func(c *rest.Config, uid string) {
		t.Helper()
		claims := fmt.Sprintf(`{"kubernetes.io":{"node":{"name":%q,"uid":%q}}}`, node, uid)
		if err := os.WriteFile(c.BearerTokenFile, []byte(token(claims)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	owner := func(a *api) string {
		if owners := a.is().OwnerReferences; len(owners) > 0 {
			return string(owners[0].UID)
		}
		return ""
	}
	c := small(t, "ready")
	for _, test := range []struct {
		name   string
		status int // of the answer to a read of the Node
		want   string
	}{
		{"the Node may not be read", 403, ""},
		{"there is no Node yet", 404, ""},
		{"the Node may be read", 200, uid},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newAPI(t)
			if test.status != 200 {
				a.says("NODE", test.status)
			}
			p, hook, access := a.publisherOf(node)
			access.BearerTokenFile = filepath.Join(t.TempDir(), "token")
			claim(access, "old")
			for range deletionsForDoubt {
				a.must(p, true, c, "GET APPLY")
				if got := owner(a); got != "old" {
					t.Errorf("owner %q before the second deletion", got)
				}
				a.object = nil
			}
			a.must(p, true, c, "GET NODE APPLY")
			a.must(p, false, c, "GET")
			if got := owner(a); got != test.want {
				t.Errorf("owner %q, want %q", got, test.want)
			}
			if n := len(hook.AllEntries()); n != 1 || !strings.Contains(hook.LastEntry().Message, "registered again?") {
				t.Errorf("%d lines logged, the last: %v", n, hook.LastEntry())
			}
			claim(access, "new")
			a.must(p, true, c, "GET APPLY")
			if got := owner(a); got != "new" {
				t.Errorf("owner %q after the token was renewed", got)
			}
		})
	}
}

// Somebody who deletes the object twice casts doubt on the right owner. The doubt ends when a
// token that was made later names it, or when the Node can be read.
func TestDoubtEnds(t *testing.T) {
	c := small(t, "ready")
	for _, test := range []struct {
		name            string
		status          int // of the answer to a read of the Node
		issued, renewed string
		owned           bool // after the token was renewed
	}{
		{"renewed token", 403, `"iat":1700000000,`, `"iat":1700003000,`, true},
		{"the same token", 403, `"iat":1700000000,`, `"iat":1700000000,`, false},
		{"an older token", 403, `"iat":1700000000,`, `"iat":1600000000,`, false},
		{"a token without a time", 403, "", "", false},
		{"a time that is none", 403, `"iat":"x",`, `"iat":{},`, false},
		{"the Node may be read", 200, "", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newAPI(t)
			if test.status != 200 {
				a.says("NODE", test.status)
			}
			p, _, access := a.publisherOf(node)
			issued := func(when string) {
				access.BearerToken = token(fmt.Sprintf(`{%s"kubernetes.io":{"node":{"name":%q,"uid":%q}}}`, when, node, uid))
			}
			issued(test.issued)
			for range deletionsForDoubt {
				a.must(p, true, c, "GET APPLY")
				a.object = nil
			}
			a.must(p, true, c, "GET NODE APPLY")
			if owned := len(a.is().OwnerReferences) == 1; owned != (test.status == 200) {
				t.Errorf("in doubt: owned %v", owned)
			}
			issued(test.renewed)
			if _, err := p.Publish(t.Context(), c); err != nil {
				t.Error(err)
			}
			if owned := len(a.is().OwnerReferences) == 1; owned != test.owned || p.history.doubts(uid) == test.owned {
				t.Errorf("afterwards: owned %v, doubt %v", owned, p.history.doubts(uid))
			}
		})
	}
}

// A deletion long after the write casts no doubt on the owner.
func TestHistory(t *testing.T) {
	start := time.Unix(1700000000, 0)
	for _, test := range []struct {
		name    string
		after   []time.Duration // the deletions come, each after its write
		doubted bool
	}{
		{"one", []time.Duration{time.Second}, false},
		{"two", []time.Duration{time.Second, time.Minute}, true},
		{"the first late", []time.Duration{2 * deletedSoon, time.Second}, false},
		{"the second late", []time.Duration{time.Second, 2 * deletedSoon, time.Second}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var f history
			now := start
			for _, d := range test.after {
				f.wrote("1", uid, now)
				if err := f.found(true, now.Add(d/2)); err != nil {
					t.Error(err)
				}
				now = now.Add(d)
				if err := f.found(false, now); (err != nil) != (d <= deletedSoon) {
					t.Errorf("deleted after %v: error %v", d, err)
				}
				if err := f.found(false, now); err != nil {
					t.Errorf("told twice: %v", err)
				}
			}
			if f.doubts(uid) != test.doubted {
				t.Errorf("doubted %q", f.doubted.UID)
			}
		})
	}
}

// An object without owner may have been written before its Node was registered again. It is
// written again for a while, alternately with and without an annotation.
func TestRepeated(t *testing.T) {
	now := time.Unix(1700000000, 0)
	f := history{doubted: Bound{UID: uid}, since: now}
	f.wrote("1", "", now)
	for _, test := range []struct {
		after time.Duration
		want  bool
	}{{time.Second, false}, {repeatEvery, true}, {repeatFor - 1, true}, {repeatFor, false}} {
		if got := f.repeats(now.Add(test.after)); got != test.want {
			t.Errorf("after %v: %v", test.after, got)
		}
	}
	f.wrote("2", "new", now)
	if f.repeats(now.Add(time.Minute)) {
		t.Error("repeats what has an owner")
	}

	a := newAPI(t)
	p, _ := a.publisher(node)
	c := small(t, "ready")
	a.says("NODE", 403)
	p.history.doubted, p.history.since = Bound{UID: uid}, time.Now()
	a.must(p, true, c, "GET NODE APPLY")
	for i := range 4 {
		p.history.written = time.Now().Add(-repeatEvery)
		a.must(p, true, c, "GET APPLY")
		if _, ok := a.is().Annotations[v1alpha1.WorkerPodUIDAnnotation]; ok != (i%2 == 0) {
			t.Errorf("annotations %v", a.is().Annotations)
		}
		a.must(p, false, c, "GET")
	}
}

// An object that was deleted and written again counts as published once it has stayed for a
// while; if others delete it each time, it is written less and less often.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := testCache()
		p := &Publisher{now: time.Now, cache: known}
		version := 0
		next := func() *v1alpha1.NodeFeature {
			version++
			return &v1alpha1.NodeFeature{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(version)}}
		}
		stays := func(event func(any) error) (took time.Duration, err error) {
			o := next()
			if err := known.Add(o); err != nil { // the event may come before the answer
				t.Error(err)
			}
			known.wrote(o)
			p.history.wrote(o.ResourceVersion, "", time.Now())
			if event != nil {
				later := next()
				time.AfterFunc(10*time.Millisecond, func() { _ = event(later) })
			}
			start := time.Now()
			err = p.checkKept(t.Context())
			return time.Since(start), err
		}
		if took, err := stays(nil); took != keptFor || err != nil {
			t.Errorf("it stays: %v after %v", err, took)
		}
		if took, err := stays(known.Update); took != 10*time.Millisecond || err != nil || len(known.changed) != 1 {
			t.Errorf("it is changed: %v after %v; %d changes to look at", err, took, len(known.changed))
		}
		for i := range deletionsForDoubt + 2 {
			took, err := stays(known.Delete)
			slow := (*publish.SlowRetry)(nil)
			if took != 10*time.Millisecond || err == nil || !strings.Contains(err.Error(), "deleted 10ms after it was written") {
				t.Errorf("it is deleted: %v after %v", err, took)
			}
			if slowly := errors.As(err, &slow); slowly != (i >= deletionsForDoubt) {
				t.Errorf("deletion %d: slow retry %v", i+1, slowly)
			}
		}
	})
}
