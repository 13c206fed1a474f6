package main

import (
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"
)

// times has the times that writes have taken.
type times struct {
	now func() time.Time

	mu       sync.Mutex
	waited   []time.Duration // from the cause to the answer
	answered []time.Duration // from the request to the answer
	last     time.Time
	err      error // the last one
}

// result is printed after a command. Its times are the median, the 90th and the 99th
// percentile, and the maximum.
type result struct {
	Writes   int              `json:"writes"`
	Waited   [4]time.Duration `json:"waited"`
	Answered [4]time.Duration `json:"answered"`
	Last     time.Time        `json:"last"`
	// CPU is the CPU time of this process so far.
	CPU time.Duration `json:"cpu"`
}

func (t *times) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waited, t.answered, t.err = nil, nil, nil
}

func (t *times) wrote(since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = t.now()
	t.waited = append(t.waited, t.last.Sub(since))
}

func (t *times) failed(err error) {
	if err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.err = err
	}
}

func (t *times) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

func (t *times) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waited)
}

func (t *times) sum() result {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := result{Writes: len(t.waited), Waited: percentiles(t.waited), Answered: percentiles(t.answered), Last: t.last}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err == nil {
		r.CPU = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return r
}

func percentiles(all []time.Duration) (p [4]time.Duration) {
	slices.Sort(all)
	if n := len(all); n > 0 {
		for i, percent := range []int{50, 90, 99, 100} {
			p[i] = all[max(0, (n*percent+99)/100-1)]
		}
	}
	return p
}

// stopwatch measures the writes of a transport.
type stopwatch struct {
	next  http.RoundTripper
	times *times
}

// RoundTrip implements http.RoundTripper.
func (s stopwatch) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPatch {
		return s.next.RoundTrip(r)
	}
	start := s.times.now()
	answer, err := s.next.RoundTrip(r)
	if err == nil {
		s.times.mu.Lock()
		defer s.times.mu.Unlock()
		s.times.answered = append(s.times.answered, s.times.now().Sub(start))
	}
	return answer, err
}
