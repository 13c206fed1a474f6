// Package monitor reports on the agent and its machine: metrics for Prometheus, and health
// for the kubelet.
package monitor

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gdr-features/internal/report"
)

// Monitor collects what its methods report. Its methods may be called from any
// goroutine.
type Monitor struct {
	// Pairs: serve gdr_pair_level too, one series for each GPU with each NIC. Set it
	// before the first reading.
	Pairs bool

	now      func() time.Time
	maxAge   time.Duration
	registry *prometheus.Registry
	collect  prometheus.Histogram
	publish  *prometheus.CounterVec
	last     *prometheus.GaugeVec

	mu      sync.Mutex
	seen    time.Time
	report  *report.Report  // of the last reading; nil before the first one
	waiting map[string]bool // publishers that have not published yet
}

// New returns a monitor of an agent with these publishers. maxAge is how old the last
// reading of the machine may be before the agent's main loop counts as stuck.
func New(version string, publishers []string, maxAge time.Duration, now func() time.Time) *Monitor {
	m := &Monitor{
		now: now, maxAge: maxAge, seen: now(), registry: prometheus.NewRegistry(), waiting: map[string]bool{},
		collect: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gdr_collect_seconds", Help: "Time to read and judge the whole machine.",
			Buckets: []float64{.001, .0025, .01, .025, .1, .5, 2.5}, // few: each is a series of every node
		}),
		publish: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gdr_publish_total", Help: "Publications by result: written, failed, or reverted: written because others had changed it. Content that has not changed is not written.",
		}, []string{"publisher", "result"}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gdr_last_publish_timestamp_seconds", Help: "When what is published was last written or confirmed to be up to date.",
		}, []string{"publisher"}),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gdr_build_info", Help: "Version of the running program; always 1."}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(build, m.collect, m.publish, m.last, machineCollector{m},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, p := range publishers {
		m.waiting[p] = true
		for _, result := range []string{written, failed} {
			m.publish.WithLabelValues(p, result) // a series that starts at zero shows its first increase
		}
	}
	return m
}

// Results of a publication.
const (
	written = "written"
	failed  = "failed"
	// reverted counts those of the written ones that reverted a change by others. It has a
	// series only where that has happened.
	reverted = "reverted"
)

// Read notes that the machine was read, and how long that took where all of it was. The
// report must not be changed afterwards.
func (m *Monitor) Read(r *report.Report, took time.Duration, whole bool) {
	if whole {
		m.collect.Observe(took.Seconds())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen, m.report = m.now(), r
}

// Published notes the result of a publication. Without an error, written is false
// when there was nothing to change.
func (m *Monitor) Published(publisher string, wrote bool, err error) {
	switch {
	case err != nil:
		m.publish.WithLabelValues(publisher, failed).Inc()
		return
	case wrote:
		m.publish.WithLabelValues(publisher, written).Inc()
	}
	m.last.WithLabelValues(publisher).Set(float64(m.now().UnixMilli()) / 1000)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting, publisher)
}

// Reverted notes that a publication reverted a change by others. Published has counted it as
// written already.
func (m *Monitor) Reverted(publisher string) { m.publish.WithLabelValues(publisher, reverted).Inc() }

// maxScrapes is how many scrapes are served at the same time, each with up to a megabyte
// of memory; further ones get status 503.
const maxScrapes = 4

// Handler serves /metrics, /healthz (the main loop is running) and /readyz (every publisher
// has published once).
func (m *Monitor) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes,
		ErrorHandling:       promhttp.ContinueOnError, // a metric with an error does not suppress the others
	}))
	mux.HandleFunc("GET /healthz", answer(m.alive))
	mux.HandleFunc("GET /readyz", answer(m.ready))
	return mux
}

// answer returns status 200, or 503 with the reason.
func answer(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	}
}

func (m *Monitor) alive() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if age := m.now().Sub(m.seen); age > m.maxAge {
		return fmt.Errorf("the machine was last read %v ago", age.Round(time.Second))
	}
	return nil
}

func (m *Monitor) ready() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range m.waiting {
		return fmt.Errorf("publisher %s has not published yet", p)
	}
	return nil
}
