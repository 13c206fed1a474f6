package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"gdr-features/internal/label"
	"gdr-features/internal/nodelabel"
	"gdr-features/source/family"
)

func TestOnce(t *testing.T) {
	none := label.Set{}
	tests := []struct {
		name  string
		reads []label.Set // the last one goes on
		blind []int       // readings, from 1, in which nothing can be read
		last  label.Set
		want  string
		took  time.Duration
		err   string
	}{
		{name: "twice", reads: []label.Set{ready}, want: "PIX true", took: 500 * ms},
		{name: "the state of the second", reads: []label.Set{ready, notReady}, want: "PIX false NoActivePort", took: 500 * ms},
		{name: "knows no settle time", reads: []label.Set{notReady}, last: ready, want: "PIX false NoActivePort", took: 500 * ms},
		{name: "other hardware first", reads: []label.Set{other, ready}, want: "PIX true", took: 1 * s},
		{name: "no GPU at first", reads: []label.Set{none, ready}, want: "PIX true", took: 1 * s},
		{name: "no GPU in between", reads: []label.Set{ready, none, ready}, want: "PIX true", took: 1500 * ms},
		{name: "nothing to read at first", reads: []label.Set{none, ready}, blind: []int{1}, want: "PIX true", took: 1 * s},
		{name: "nothing to read in between", reads: []label.Set{ready, none, ready}, blind: []int{2}, want: "PIX true", took: 1500 * ms},
		{name: "never anything to read", reads: []label.Set{none}, blind: []int{1, 2}, last: ready, want: "PIX true", took: 500 * ms},
		{name: "the GPU is gone", reads: []label.Set{none}, last: ready, want: "", took: 500 * ms},
		{name: "never the same", reads: []label.Set{ready, other, ready, other, ready, other, ready, other}, last: ready, want: "PIX true", took: 2500 * ms, err: "different"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{name: "one", is: test.last}
				h := newHarness(t, nil, f)
				h.machine.next = func(n int) label.Set {
					h.machine.unknown = label.Names{}
					for _, blind := range test.blind {
						if n == blind {
							h.machine.unknown = nodelabel.All(family.Known())
						}
					}
					return test.reads[min(n, len(test.reads))-1]
				}
				err := h.agent.Once(t.Context())
				if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
					t.Errorf("error %v, want %q", err, test.err)
				}
				if got := f.published(); got != test.want {
					t.Errorf("published %q, want %q", got, test.want)
				}
				if took := time.Since(h.start); took != test.took {
					t.Errorf("took %v, want %v", took, test.took)
				}
				if tries := len(f.publications()); tries != map[bool]int{true: 1}[test.err == ""] {
					t.Errorf("published %d times", tries)
				}
			})
		})
	}
}

// The failure of one publisher is an error, but the others publish; all are closed.
func TestOnceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unreadable := &fake{name: "unreadable", lastErr: errors.New("cannot be read back")}
		bad, good := &fake{name: "bad", err: errDown}, &fake{name: "good"}
		h := newHarness(t, ready, unreadable, bad, good)
		err := h.agent.Once(t.Context())
		want := "publisher unreadable: cannot be read back\npublisher bad: connection refused"
		if err == nil || err.Error() != want || !errors.Is(err, errDown) {
			t.Errorf("error %v, want %s", err, want)
		}
		if good.published() != "PIX true" || len(unreadable.publications()) != 0 {
			t.Errorf("good published %q, unreadable published %v", good.published(), unreadable.publications())
		}
		if unreadable.closed != 1 || bad.closed != 1 || good.closed != 1 {
			t.Error("not all are closed")
		}
		if n := h.logged(logrus.InfoLevel, "published"); n != 1 {
			t.Errorf("%d times logged as published", n)
		}
	})
}

func TestOnceInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		h := newHarness(t, ready, f)
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		if err := h.agent.Once(ctx); !errors.Is(err, context.DeadlineExceeded) || len(f.publications()) > 0 {
			t.Errorf("error %v, published %v", err, f.publications())
		}
	})
}

// Cleanup removes what every publisher has published, whether others fail or
// not, and reads nothing.
func TestCleanup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := &fake{name: "bad", err: errDown}, &fake{name: "good"}
		h := newHarness(t, ready, bad, good)
		err := h.agent.Cleanup(t.Context())
		if err == nil || err.Error() != "publisher bad: connection refused" {
			t.Errorf("error %v", err)
		}
		got := []int{bad.removed, bad.closed, good.removed, good.closed, len(h.machine.readAt())}
		if diff := cmp.Diff([]int{1, 1, 1, 1, 0}, got); diff != "" {
			t.Errorf("removed, closed, removed, closed, readings (-want +got):\n%s", diff)
		}
	})
}
