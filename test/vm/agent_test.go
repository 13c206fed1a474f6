//go:build vm

package vm

import (
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"gdr-features/test/vm/wire"
)

const (
	// interval is between two readings of the agent when nothing happens: what is
	// published sooner came by an event.
	interval = "60s"
	// soon is how long a change may take to reach the feature file.
	soon = 2 * time.Second
	// rounds is how often something may take too long before that counts.
	rounds = 3
	// late is when waiting for the feature file ends: a failed reading is repeated
	// after the interval.
	late = 3 * time.Minute
	// featureFile is what the agent writes.
	featureFile = "/run/nfd/features.d/gdr-features.features"
	agentLog    = "/run/agent.log"
)

// agent is a running `gdr-features run`.
type agent struct {
	*machine
	pid int
}

// startAgent starts the agent and waits for it to publish these labels.
func (m *machine) startAgent(want labels) *agent {
	m.t.Helper()
	r := m.do(wire.Request{Command: wire.Start, Path: agentLog, Args: []string{
		"/gdr-features", "run", "--publish=file", "--features-dir=/run/nfd/features.d", "--interval=" + interval, "--settle=0s",
	}})
	a := &agent{m, r.PID}
	m.t.Cleanup(func() {
		if m.t.Failed() {
			m.t.Logf("the agent said:\n%s", m.read(agentLog))
		}
	})
	a.expect("start", want, func() {})
	return a
}

// expect changes something and waits until the feature file has these labels. It
// gives the machine's time that took from the moment on when the kernel had done
// its part. `labels` must print the same.
func (a *agent) expect(what string, want labels, change func()) time.Duration {
	a.t.Helper()
	change()
	start := a.up
	var text []byte
	var got labels
	for !maps.Equal(got, want) && a.up-start < late {
		text = a.do(wire.Request{Command: wire.Await, Path: featureFile, Data: text}).Data
		got = parseLabels(string(text))
	}
	took := a.up - start
	if diff := cmp.Diff(want, got); diff != "" {
		a.t.Fatalf("%s: feature file (-want +got):\n%s", what, diff)
	}
	a.t.Logf("%s: published after %v", what, took.Round(time.Millisecond))
	a.expectLabels(root, want)
	return took
}

// soon does what takes the times that a round gives, until none is too long.
func (a *agent) soon(round func() []time.Duration) {
	a.t.Helper()
	for range rounds {
		took := round()
		if worst := slices.Max(took); worst <= soon {
			return
		}
	}
	a.t.Errorf("published after more than %v in each of %d rounds", soon, rounds)
}

// stop ends the agent, which must leave the file and exit with status 0.
func (a *agent) stop() {
	a.t.Helper()
	before := a.read(featureFile)
	if r := a.do(wire.Request{Command: wire.Kill, PID: a.pid}); r.Status != 0 {
		a.t.Errorf("the agent ended with %d", r.Status)
	}
	if diff := cmp.Diff(before, a.read(featureFile)); diff != "" {
		a.t.Errorf("the agent changed the feature file when it ended (-before +after):\n%s", diff)
	}
}
