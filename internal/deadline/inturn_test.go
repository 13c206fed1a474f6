package deadline

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A device that does not answer costs its own answer only, and those that are
// merely slow are not asked at once. The clock is synctest's: nothing waits.
func TestInTurn(t *testing.T) {
	const (
		stuck   = time.Hour
		timeout = 10 * time.Second
		ms      = time.Millisecond
	)
	tests := []struct {
		name    string
		delays  []time.Duration // until each device answers
		want    []bool          // which have answered
		took    time.Duration   // at the most
		readers int32           // at once, at the most
	}{
		{"all answer at once", make([]time.Duration, 5), []bool{true, true, true, true, true}, 0, 1},
		{"all are slow", []time.Duration{200 * ms, 200 * ms, 200 * ms, 200 * ms}, []bool{true, true, true, true}, 800 * ms, 1},
		{"one is stuck", []time.Duration{0, stuck, 0, 0}, []bool{true, false, true, true}, timeout, 2},
		{"the first is stuck", []time.Duration{stuck, 0, 0}, []bool{false, true, true}, timeout, 2},
		{"the last is stuck", []time.Duration{0, 0, stuck}, []bool{true, true, false}, timeout, 1},
		{"one takes long", []time.Duration{0, 2 * time.Second, 0}, []bool{true, true, true}, 2 * time.Second, 2},
		{"two are stuck", []time.Duration{stuck, 0, stuck, 0}, []bool{false, true, false, true}, timeout, 3},
		{"all are stuck", []time.Duration{stuck, stuck, stuck}, []bool{false, false, false}, timeout, 3},
		{"one takes as long as there is time", []time.Duration{timeout - ms, 0}, []bool{true, true}, timeout - ms, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				var reading, most atomic.Int32
				answered := make([]atomic.Bool, len(tt.delays))
				read := func(i int) {
					most.Store(max(most.Load(), reading.Add(1)))
					defer reading.Add(-1)
					time.Sleep(tt.delays[i])
					if answered[i].Swap(true) {
						t.Errorf("device %d was read twice", i)
					}
				}
				start := time.Now()
				InTurn(ctx, len(tt.delays), read)
				if took := time.Since(start); took > tt.took {
					t.Errorf("took %v, want %v at the most", took, tt.took)
				}
				var got []bool
				for i := range answered {
					got = append(got, answered[i].Load())
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("answered (-want +got):\n%s", diff)
				}
				if n := most.Load(); n > tt.readers {
					t.Errorf("%d readers at once, want %d", n, tt.readers)
				}
				time.Sleep(2 * stuck) // for the readers that were left behind
			})
		})
	}
}

// TestPatience: each read that does not end holds up the next one for as long as Patience.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*Patience)
		defer cancel()
		start := time.Now()
		var begun [3]atomic.Int64
		InTurn(ctx, len(begun), func(i int) {
			begun[i].Store(int64(time.Since(start)))
			time.Sleep(time.Hour)
		})
		for i := range begun {
			if got := time.Duration(begun[i].Load()); got != time.Duration(i)*Patience {
				t.Errorf("read %d began after %v", i, got)
			}
		}
		time.Sleep(2 * time.Hour) // for the reads that were left behind
	})
}
