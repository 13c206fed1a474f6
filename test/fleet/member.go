package main

import (
	"context"
	"maps"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/rest"

	"gdr-features/internal/agent"
	"gdr-features/internal/publish"
	"gdr-features/internal/publish/nodefeature"
	"gdr-features/internal/report"
)

// member is the agent of one node.
type member struct {
	fleet     *fleet
	name      string
	namespace string
	access    *rest.Config
	log       *logrus.Logger
	machine   atomic.Pointer[report.Report]
	since     atomic.Pointer[time.Time] // when the machine was last changed
	pending   atomic.Bool               // that change has not been published
	events    chan report.Parts
	done      func() // called when it has published or failed for the first time
}

func (f *fleet) newMember(name string, access *rest.Config, namespace string, log *logrus.Logger) *member {
	return &member{fleet: f, name: name, namespace: namespace, access: access, log: log, events: make(chan report.Parts, 1)}
}

// access is that of a Pod, with a connection of its own. client-go shares connections
// between configurations that are equal, so each has its own dialer.
func access(server string, ca []byte, token string, t *times) *rest.Config {
	dialer := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &rest.Config{
		Host: server, BearerToken: token, UserAgent: "gdr-features/fleet",
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		Dial:            dialer.DialContext,
		WrapTransport:   func(next http.RoundTripper) http.RoundTripper { return stopwatch{next, t} },
	}
}

// run runs the agent with its default settings.
func (m *member) run(ctx context.Context, machine *report.Report) {
	m.set(machine)
	p, err := nodefeature.New(m.access, nodefeature.TokenOf(m.access), m.namespace, m.name, m.fleet.now, m.log)
	if err != nil {
		m.fleet.writes.failed(err)
		m.done()
		return
	}
	p.Watch(ctx)
	a := agent.Agent{
		Collect: m.collect, Events: m.events, Publishers: []publish.Publisher{observed{p, m}},
		Interval: time.Minute, Settle: 10 * time.Second, Now: m.fleet.now, Log: m.log,
	}
	m.fleet.writes.failed(a.Run(ctx))
}

func (m *member) set(machine *report.Report) {
	now := m.fleet.now()
	m.since.Store(&now)
	m.machine.Store(machine)
	m.pending.Store(true)
}

// change changes the machine.
func (m *member) change(to *report.Report) {
	m.set(to)
	m.events <- report.All
}

// collect replaces reading the machine.
func (m *member) collect(_ context.Context, parts report.Parts) report.Report {
	r := *m.machine.Load()
	r.Fresh = parts
	return r
}

// observed is a publisher whose writes are timed.
type observed struct {
	*nodefeature.Publisher
	member *member
}

// Publish implements publish.Publisher.
func (o observed) Publish(ctx context.Context, c publish.Content) (wrote bool, err error) {
	wrote, err = o.Publisher.Publish(ctx, c)
	// A write whose answer was lost may turn out to have been made.
	made := err == nil && maps.Equal(c.Labels, o.member.machine.Load().Labels) && o.member.pending.Swap(false)
	if wrote || made {
		o.member.pending.Store(false)
		o.member.fleet.writes.wrote(*o.member.since.Load())
		o.member.done()
	}
	o.member.fleet.writes.failed(err)
	return wrote, err
}
