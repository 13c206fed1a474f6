// Package monitor tells others how the agent and its machine are: metrics for
// Prometheus, and health for the kubelet.
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

// Monitor collects what is told. Its methods may be called from any goroutine.
type Monitor struct {
	now      func() time.Time
	patience time.Duration
	registry *prometheus.Registry
	collect  prometheus.Histogram
	publish  *prometheus.CounterVec
	last     *prometheus.GaugeVec

	mu      sync.Mutex
	seen    time.Time
	machine machine
	waiting map[string]bool // publishers that have not published yet
}

// New gives a monitor of an agent with these publishers. patience is how long the
// agent's loop may go without reading the machine before it counts as stuck.
func New(version string, publishers []string, patience time.Duration, now func() time.Time) *Monitor {
	m := &Monitor{
		now: now, patience: patience, seen: now(), registry: prometheus.NewRegistry(), waiting: map[string]bool{},
		collect: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gdr_collect_seconds", Help: "Time to read and judge the whole machine.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
		publish: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gdr_publish_total", Help: "Publications by result: written or failed. What is the same already is not written.",
		}, []string{"publisher", "result"}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gdr_last_publish_timestamp_seconds", Help: "When what is published was last made right or confirmed to be right.",
		}, []string{"publisher"}),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gdr_build_info", Help: "The program that runs; always 1."}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(build, m.collect, m.publish, m.last, machineCollector{m},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, p := range publishers {
		m.waiting[p] = true
		for _, result := range []string{written, failed} {
			m.publish.WithLabelValues(p, result) // series that start at zero can be counted from
		}
	}
	return m
}

// Results of a publication.
const (
	written = "written"
	failed  = "failed"
)

// Read tells that the machine was read. How long that took counts when it was
// the whole of it.
func (m *Monitor) Read(r *report.Report, took time.Duration, whole bool) {
	if whole {
		m.collect.Observe(took.Seconds())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen, m.machine = m.now(), machineOf(r)
}

// Published tells how a publication went. Without error and unwritten, it was
// right already.
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

// scrapes is how many answers with metrics are made at a time. Each takes up to a
// megabyte; who asks for one more is told to come later.
const scrapes = 4

// Handler serves /metrics, /healthz (the loop turns) and /readyz (every
// publisher has published once).
func (m *Monitor) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: scrapes,
		ErrorHandling:       promhttp.ContinueOnError, // one metric that is wrong does not take the others along
	}))
	mux.HandleFunc("GET /healthz", answer(m.alive))
	mux.HandleFunc("GET /readyz", answer(m.ready))
	return mux
}

// answer gives status 200 or 503, and a line that says why.
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
	if age := m.now().Sub(m.seen); age > m.patience {
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
