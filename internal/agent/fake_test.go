package agent

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"gdr-features/internal/label"
	"gdr-features/internal/publish"
	"gdr-features/internal/report"
)

// Labels of the machines in these tests.
var (
	ready    = label.Set{label.Capable: "true", label.Level: "PIX", label.Ready: "true"}
	notReady = label.Set{label.Capable: "true", label.Level: "PIX", label.Ready: "false", label.Reason: "NoActivePort"}
	other    = label.Set{label.Capable: "true", label.Level: "SYS", label.Ready: "true"}
)

// machine is read by the agent.
type machine struct {
	mu       sync.Mutex
	labels   label.Set
	unknown  label.Names
	problems []error
	reads    []time.Duration // since the beginning
	start    time.Time
	slow     time.Duration // how long it takes to answer, whatever the context says
	next     func(n int) label.Set
}

func (m *machine) collect(_ context.Context, parts report.Parts) report.Report {
	time.Sleep(m.slow)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads = append(m.reads, time.Since(m.start))
	if m.next != nil {
		m.labels = m.next(len(m.reads))
	}
	return report.Report{
		Labels: maps.Clone(m.labels), Unknown: maps.Clone(m.unknown), Problems: slices.Clone(m.problems), Fresh: parts,
	}
}

func (m *machine) setLabels(labels label.Set) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.labels = labels
}

func (m *machine) readAt() []time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.reads)
}

// attempt is a call of Publish.
type attempt struct {
	at     time.Duration
	labels string // "level ready"
	failed bool
}

// fake is a publisher.
type fake struct {
	name    string
	changed chan struct{}
	start   time.Time

	mu       sync.Mutex
	is       label.Set // what is published
	err      error     // of everything
	lastErr  error
	slow     time.Duration // how long Publish and Close take; they end with the context
	stubborn bool          // they do not end with the context
	tries    []attempt
	boot     string          // that Last gives
	asked    []time.Duration // calls of Last
	busy     int             // calls of Publish and Close under way
	closed   int
	removed  int
}

func (f *fake) Name() string             { return f.name }
func (f *fake) Changed() <-chan struct{} { return f.changed }

func (f *fake) Last(context.Context) (publish.Content, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, time.Since(f.start))
	if f.lastErr != nil {
		return publish.Content{}, f.lastErr
	}
	return publish.Content{Labels: maps.Clone(f.is), BootID: f.boot}, nil
}

// readBacks counts the calls of Last.
func (f *fake) readBacks() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

func (f *fake) Publish(ctx context.Context, c publish.Content) (bool, error) {
	if err := f.wait(ctx); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries = append(f.tries, attempt{time.Since(f.start), short(c.Labels), f.err != nil})
	if f.err != nil {
		return false, f.err
	}
	if maps.Equal(f.is, c.Labels) {
		return false, nil
	}
	f.is = maps.Clone(c.Labels)
	return true, nil
}

func (f *fake) Remove(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed++
	return f.err
}

func (f *fake) Close(ctx context.Context) error {
	f.closed++
	return f.wait(ctx)
}

func (f *fake) wait(ctx context.Context) error {
	f.mu.Lock()
	slow := f.slow
	f.busy++
	if f.busy > 1 {
		panic(f.name + " is called twice at the same time")
	}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.busy--
		f.mu.Unlock()
	}()
	if f.stubborn {
		ctx = context.Background()
	}
	select {
	case <-time.After(slow):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// edit is a change by others.
func (f *fake) edit() {
	f.mu.Lock()
	f.is = label.Set{}
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *fake) setErr(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// publications returns the calls of Publish.
func (f *fake) publications() []attempt {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.tries)
}

func (f *fake) published() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return short(f.is)
}

// short is labels in two or three words.
func short(s label.Set) string {
	return strings.TrimSpace(s[label.Level] + " " + s[label.Ready] + " " + s[label.Reason])
}

// harness is an agent with a machine and publishers, in a synctest bubble.
type harness struct {
	*testing.T
	machine *machine
	agent   *Agent
	hook    *logtest.Hook
	start   time.Time
	end     context.CancelFunc
	done    chan error
}

// newHarness makes an agent with an interval of a minute and a settle time of ten
// seconds.
func newHarness(t *testing.T, labels label.Set, publishers ...*fake) *harness {
	t.Helper()
	log, hook := logtest.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	s := &harness{T: t, hook: hook, start: time.Now(), machine: &machine{labels: labels, start: time.Now()}}
	s.agent = &Agent{Collect: s.machine.collect, Interval: time.Minute, Settle: 10 * time.Second, Now: time.Now, Log: log}
	for _, p := range publishers {
		p.start, p.changed = s.start, make(chan struct{}, 1)
		s.agent.Publishers = append(s.agent.Publishers, p)
	}
	return s
}

// run lets the agent run until the bubble's function ends.
func (s *harness) run() {
	ctx, cancel := context.WithCancel(s.Context())
	s.end, s.done = cancel, make(chan error, 1)
	go func() { s.done <- s.agent.Run(ctx) }()
}

// sleepUntil waits until a time since the beginning.
func (s *harness) sleepUntil(at time.Duration) {
	time.Sleep(time.Until(s.start.Add(at)))
	synctest.Wait()
}

// stop ends the agent and gives how long that took.
func (s *harness) stop() (took time.Duration, err error) {
	before := time.Now()
	s.end()
	err = <-s.done
	return time.Since(before), err
}

// stopCleanly ends the agent, which must give no error.
func (s *harness) stopCleanly() {
	s.Helper()
	if _, err := s.stop(); err != nil {
		s.Error(err)
	}
}

// logged counts messages of a level that contain a text.
func (s *harness) logged(level logrus.Level, text string) (n int) {
	for _, e := range s.hook.AllEntries() {
		if e.Level == level && strings.Contains(e.Message, text) {
			n++
		}
	}
	return n
}
