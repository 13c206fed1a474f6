package main

import (
	"context"
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
	sees      atomic.Pointer[report.Report]
	since     atomic.Pointer[time.Time] // when it began to see that
	events    chan report.Parts
	done      func() // it has started
}

func (f *fleet) newMember(name string, access *rest.Config, namespace string, log *logrus.Logger) *member {
	return &member{fleet: f, name: name, namespace: namespace, access: access, log: log, events: make(chan report.Parts, 1)}
}

// access is what a pod has: a connection that it shares with nobody. client-go
// lets all who dial alike share one, so each dials for itself.
func access(server string, ca []byte, token string, t *times) *rest.Config {
	dialer := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &rest.Config{
		Host: server, BearerToken: token, UserAgent: "gdr-features/fleet",
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		Dial:            dialer.DialContext,
		WrapTransport:   func(next http.RoundTripper) http.RoundTripper { return stopwatch{next, t} },
	}
}

// run is what the agent's program does, with its default settings.
func (m *member) run(ctx context.Context, sees *report.Report) {
	m.set(sees)
	p, err := nodefeature.New(m.access, m.namespace, m.name, m.fleet.now, m.log)
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

func (m *member) set(sees *report.Report) {
	now := m.fleet.now()
	m.since.Store(&now)
	m.sees.Store(sees)
}

// becomes changes the machine.
func (m *member) becomes(what *report.Report) {
	m.set(what)
	m.events <- report.All
}

// collect stands for reading the machine.
func (m *member) collect(_ context.Context, parts report.Parts) report.Report {
	r := *m.sees.Load()
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
	if wrote {
		o.member.fleet.writes.wrote(*o.member.since.Load())
		o.member.done()
	}
	o.member.fleet.writes.failed(err)
	return wrote, err
}
