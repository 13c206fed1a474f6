package nodefeature

import (
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
)

// testCache returns a cache that only the test fills.
func testCache() *objectCache {
	log, _ := logtest.NewNullLogger()
	return newObjectCache(time.Now, log)
}

// In whatever order answers and events come, the newest state counts, and others are
// notified of an event that tells something new.
func TestCache(t *testing.T) {
	type step struct {
		do      string // list, none, add, update, delete, wrote
		version string
		is      string // the version that is known then, "" for none
		changed bool
	}
	tests := []struct {
		name  string
		steps []step
	}{
		{"none, then written", []step{{"none", "5", "", true}, {"wrote", "6", "6", false}, {"add", "6", "6", false}}},
		{"the event before the answer", []step{{"none", "5", "", true}, {"add", "6", "6", true}, {"wrote", "6", "6", false}}},
		{"somebody's change", []step{{"list", "5", "5", true}, {"update", "7", "7", true}}},
		{"late events", []step{{"list", "5", "5", true}, {"wrote", "9", "9", false}, {"update", "7", "9", false}, {"update", "9", "9", false}, {"update", "10", "10", true}}},
		{"versions are numbers", []step{{"list", "99", "99", true}, {"update", "100", "100", true}, {"update", "99", "100", false}}},
		{"deleted", []step{{"list", "5", "5", true}, {"delete", "6", "", true}, {"wrote", "7", "7", false}}},
		{"a late deletion", []step{{"list", "5", "5", true}, {"wrote", "9", "9", false}, {"delete", "8", "9", false}}},
		{"written and deleted before the answer", []step{{"none", "5", "", true}, {"add", "6", "6", true}, {"delete", "7", "", true}, {"wrote", "6", "", false}}},
		{"listed as gone before the answer", []step{{"list", "5", "5", true}, {"none", "9", "", true}, {"wrote", "8", "", false}, {"wrote", "10", "10", false}}},
		{"listed again", []step{{"list", "5", "5", true}, {"wrote", "9", "9", false}, {"list", "7", "7", true}, {"update", "9", "9", true}}},
		{"a server that begins anew", []step{{"list", "500", "500", true}, {"list", "5", "5", true}, {"update", "6", "6", true}}},
		{"a version that is none", []step{{"list", "5", "5", true}, {"update", "x", "x", true}, {"update", "6", "6", true}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := testCache()
			for i, step := range test.steps {
				o := &v1alpha1.NodeFeature{ObjectMeta: metav1.ObjectMeta{ResourceVersion: step.version}}
				var err error
				switch step.do {
				case "list":
					err = s.Replace([]any{o}, step.version)
				case "none":
					err = s.Replace(nil, step.version)
				case "add":
					err = s.Add(o)
				case "update":
					err = s.Update(o)
				case "delete":
					err = s.Delete(o)
				case "wrote":
					s.wrote(o)
				}
				is := ""
				if o := s.current(); o != nil {
					is = o.ResourceVersion
				}
				if is != step.is || err != nil {
					t.Errorf("step %d: %q is known, want %q, error %v", i, is, step.is, err)
				}
				if changed := len(s.changed) == 1; changed != step.changed {
					t.Errorf("step %d: changed %v", i, changed)
				}
				for len(s.changed) > 0 {
					<-s.changed
				}
			}
		})
	}
}

// Only a list makes the object known, and several changes are one.
func TestCacheKnown(t *testing.T) {
	s := testCache()
	if err := s.Resync(); err != nil || s.known || len(s.settled) > 0 {
		t.Errorf("known from the beginning; error %v", err)
	}
	for range 3 {
		if err := s.Replace(nil, "1"); err != nil {
			t.Fatal(err)
		}
	}
	if !s.known || len(s.settled) != 1 || len(s.changed) != 1 {
		t.Errorf("known %v, %d notices of that, %d changes", s.known, len(s.settled), len(s.changed))
	}
}

// Anything but a NodeFeature is an error and changes nothing.
func TestCacheOther(t *testing.T) {
	s := testCache()
	for _, err := range []error{s.Add("x"), s.Update(nil), s.Delete(1), s.Replace([]any{&metav1.Status{}}, "1")} {
		if err == nil {
			t.Error("no error")
		}
	}
	if s.current() != nil || len(s.changed) > 0 {
		t.Errorf("known: %v", s.current())
	}
}
