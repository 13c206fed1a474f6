package e2e

import (
	"context"
	"testing"
	"time"
)

// strain counts what an agent asks of the API server from a moment on, while something is
// wrong and until its labels are right again.
type strain struct {
	*agent
	what          string
	from          int64
	began, mended time.Time
}

// strained begins to count.
func (a *agent) strained(t *testing.T, what string) *strain {
	t.Helper()
	now := time.Now()
	return &strain{agent: a, what: what, from: a.cluster.auditEnd(t), began: now, mended: now}
}

// mend notes that nothing is wrong from now on.
func (s *strain) mend() { s.mended = time.Now() }

// recovers waits until right gives no error, and fails the test if the agent has made more
// requests or writes until then, or has used more memory at any time. A watch counts twice.
func (s *strain) recovers(t *testing.T, requests, writing int, right func(context.Context) error) {
	t.Helper()
	if err := until(t.Context(), 2*patience, right, s.process); err != nil {
		t.Errorf("%s: %v\n%s", s.what, err, s.process.tail())
	}
	now, all := time.Now(), s.cluster.requests(t, s.from, s.name)
	s.report(t, now.Sub(s.mended), len(all), requests, "requests")
	if w := writes(all); len(w) > writing {
		t.Errorf("%s: %d writes, more than %d; the last is %s", s.what, len(w), writing, describe(&w[len(w)-1]))
	}
}

// report logs in one form what was counted and how long the labels took, and judges it.
func (s *strain) report(t *testing.T, took time.Duration, count, limit int, of string) {
	t.Helper()
	all, highest := time.Since(s.began), s.process.peak(t)
	t.Logf("strain: %s: %d %s in %v, %.1f a second; at most %d KiB resident; right again after %v",
		s.what, count, of, all.Round(time.Millisecond), float64(count)/all.Seconds(), highest, took.Round(time.Millisecond))
	if count > limit {
		t.Errorf("%s: %d %s, more than %d", s.what, count, of, limit)
	}
	if highest > 2*most {
		t.Errorf("%s: %d KiB resident, more than %d", s.what, highest, 2*most)
	}
}
