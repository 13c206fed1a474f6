package nodefeature

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// TestStopIsNoError: a watch that we stop may tell so with an error event, since its response is
// closed while it is read. Such a watch has not failed.
func TestStopIsNoError(t *testing.T) {
	for _, resumes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			events := make(chan watch.Event)
			source := watch.MockWatcher{
				ResultChanFunc: func() <-chan watch.Event { return events },
				StopFunc: func() {
					select {
					case events <- watch.Event{Type: watch.Error, Object: &failures[errs].ErrStatus}:
					case <-time.After(time.Minute):
					}
				},
			}
			c := testCache()
			w := newWatching(t.Context(), source, c, resumes)
			synctest.Wait()
			w.Stop()
			if c.breaks != 0 || c.err != nil {
				t.Errorf("%d watches broke: %v", c.breaks, c.err)
			}
		})
	}
}
