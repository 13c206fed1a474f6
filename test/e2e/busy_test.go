package e2e

import (
	"fmt"
	"testing"
	"time"
)

// within fails the test if something took longer than its limit, and skips it if the machine
// was too busy to tell. busy is from watchLoad.
func within(t *testing.T, what string, took, limit time.Duration, busy func() string) {
	t.Helper()
	switch reason := busy(); {
	case reason != "":
		t.Skipf("not judged, %s %v against %v: the machine is busy: %s", what, took, limit, reason)
	case took > limit:
		t.Errorf("%s %v, more than %v", what, took, limit)
	}
}

// slow skips a slow test where -short is given, as in the gate of each change, which lists what it
// skipped. make e2e and .ci/run full run it.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skipf("%s is not judged here: .ci/run full runs it", t.Name())
	}
}

// watchLoad sleeps for a moment, again and again. The function that it returns ends that, and
// tells why times measured meanwhile are meaningless, or "": one of the sleeps took much
// longer than asked for, as do those of the programs under test.
func watchLoad(t *testing.T) func() string {
	t.Helper()
	const moment, most = 10 * time.Millisecond, 100 * time.Millisecond
	stop, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		var late time.Duration
		for {
			began := time.Now()
			select {
			case <-stop:
				longest <- late
				return
			case <-time.After(moment):
				late = max(late, time.Since(began)-moment)
			}
		}
	}()
	return func() string {
		close(stop)
		if late := <-longest; late > most {
			return fmt.Sprintf("a sleep of %v took %v longer", moment, late.Round(time.Millisecond))
		}
		return ""
	}
}
