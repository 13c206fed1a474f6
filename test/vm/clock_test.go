//go:build vm

package vm

import (
	"strings"
	"testing"
	"time"

	"gdr-features/test/vm/wire"
)

// When the clock is set, by hours forward or back, the agent goes on: it reads the
// machine as before, and the state labels of its feature file, which had expired or
// would never, expire an hour after the new time within an interval.
func TestClock(t *testing.T) {
	m := boot(t, node(), "")
	a := m.startAgent(bare)
	for _, by := range []time.Duration{3 * time.Hour, -6 * time.Hour} {
		before := a.read(featureFile)
		now, err := time.Parse(time.RFC3339, a.do(wire.Request{Command: wire.Clock, Offset: int64(by / time.Second)}).Out)
		if err != nil {
			t.Fatal(err)
		}
		start := a.up
		text := before
		for text == before && a.up-start < late {
			text = string(a.do(wire.Request{Command: wire.Await, Path: featureFile, Data: []byte(before)}).Data)
		}
		took := a.up - start
		_, rest, _ := strings.Cut(text, "# +expiry-time=")
		at, _, _ := strings.Cut(rest, "\n")
		expires, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("the clock moved by %v: written after %v, expires %v later", by, took.Round(time.Millisecond), expires.Sub(now))
		if left := expires.Sub(now); took > time.Minute+10*time.Second || left < time.Hour-10*time.Second || left > time.Hour+2*time.Minute {
			t.Errorf("the clock moved by %v: after %v the labels expire %v later", by, took, left)
		}
		a.soon(a.removeAndRescan)
	}
	a.stop()
}
