// Package monitor has metrics of the agent and its machine, and health for the kubelet.
package monitor

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gdr-features/internal/features"
	"gdr-features/internal/report"
	"gdr-features/tristate"
)

// Monitor collects what is reported to its methods, from any goroutine.
type Monitor struct {
	// Pairs, set before the first reading: serve gdr_pair_level for each GPU with each NIC.
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
			Buckets: []float64{.001, .005, .025, .1, 1}, // few: each is a series of every node
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
	m.registry.MustRegister(build, m.collect, m.publish, m.last, prometheus.CollectorFunc(m.machine),
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

// Reverted notes that what Published has counted as written reverted a change by others.
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

// pairLevel is the metric that is served only with Monitor.Pairs.
const pairLevel = "gdr_pair_level"

type adder func(value float64, labels ...string)

type metric struct {
	name, help string
	labels     []string
	series     func(*report.Report, adder)
}

var metrics = [...]metric{
	{"gdr_ready", "GPUDirect RDMA works now: 1, 0, or -1 when unknown.", nil, func(r *report.Report, add adder) {
		add(number(r.Verdict.Ready))
	}},
	{"gdr_capable", "The hardware can do GPUDirect RDMA: 1, 0, or -1 when unknown.", nil, func(r *report.Report, add adder) {
		add(number(r.Verdict.Capable))
	}},
	{"gdr_reason", "Why GPUDirect RDMA does not work now; always 1.", []string{"reason"}, func(r *report.Report, add adder) {
		if r.Verdict.Reason != "" {
			add(1, string(r.Verdict.Reason))
		}
	}},
	{"gdr_level", "The level that every GPU reaches with its nearest NIC; always 1.", []string{"level"}, func(r *report.Report, add adder) {
		if level := r.Matrix.Hardware.Level.String(); level != "" {
			add(1, level)
		}
	}},
	{"gdr_rate_bits_per_second", "Rate that every GPU gets on one active port of its nearest NICs.", nil, func(r *report.Report, add adder) {
		if r.Verdict.Rate != nil {
			add(float64(*r.Verdict.Rate) * 1e9)
		}
	}},
	{pairLevel, "How near a GPU is to a NIC; always 1. Only with --metrics-pairs.", []string{"gpu", "nic", "rdma", "level"}, pairs},
	{"gdr_expected", "The machine is as --expect says: 1, 0, or -1 when unknown or of no type listed there.", nil, func(r *report.Report, add adder) {
		if r.Expected != nil {
			add(number(r.Expected.State))
		}
	}},
	{"gdr_deviation", "What is not as --expect says; always 1.", []string{"expectation"}, func(r *report.Report, add adder) {
		if r.Expected != nil {
			for _, name := range r.Expected.Deviations() {
				add(1, name)
			}
		}
	}},
	{"gdr_finding", "What a check found wrong (WARN, FAIL); always 1. Where that is much, check and status are empty.", []string{"check", "status", "code"}, wrong},
}

const (
	// mostFindings is how many series gdr_finding has at most, less one for each deviation, and
	// fewestFindings how many it may always have: a node has 40 of all kinds.
	mostFindings, fewestFindings = 18, 2
	// furtherFindings stands in place of a code where there are more.
	furtherFindings = "more"
)

// wrong adds the findings that say that something is wrong, or their codes alone where they are many.
func wrong(r *report.Report, add adder) {
	all := slices.DeleteFunc(features.Findings(r), func(f features.Finding) bool { return !f.Wrong() })
	most := mostFindings
	if r.Expected != nil {
		most = max(mostFindings-len(r.Expected.Deviations()), fewestFindings)
	}
	if len(all) > most {
		var codes []features.Finding
		for _, f := range all {
			if code := (features.Finding{Code: f.Code}); !slices.Contains(codes, code) {
				codes = append(codes, code)
			}
		}
		if all = codes; len(all) > most {
			all = append(all[:most-1], features.Finding{Code: furtherFindings})
		}
	}
	for _, f := range all {
		add(1, f.Check, string(f.Status), string(f.Code))
	}
}

// pairs adds the pairs whose level is known. Names of devices that are not UTF-8 may
// become equal, and Prometheus takes each series once.
func pairs(r *report.Report, add adder) {
	m := &r.Matrix
	listed := make(map[[4]string]bool, len(m.Pairs))
	for _, p := range m.Pairs {
		n := &m.NICs[p.NIC]
		name := strings.ToValidUTF8(n.Name(), "_") // the name of a directory, which may have any bytes
		pair := [4]string{m.GPUs[p.GPU].Address.String(), n.Address(), name, p.Level.String()}
		if pair[3] == "" || listed[pair] {
			continue
		}
		listed[pair] = true
		add(1, pair[:]...)
	}
}

// number is 1 for true, 0 for false and -1 for unknown.
func number(s tristate.State) float64 {
	return map[tristate.State]float64{tristate.True: 1, tristate.False: 0, tristate.Unknown: -1}[s]
}

// machine makes the metrics of the machine as last read, without what is gone. The registry does not
// know their names before the first reading.
func (m *Monitor) machine(to chan<- prometheus.Metric) {
	m.mu.Lock()
	r := m.report
	m.mu.Unlock()
	if r == nil {
		return
	}
	for _, one := range metrics {
		if one.name == pairLevel && !m.Pairs {
			continue
		}
		desc := prometheus.NewDesc(one.name, one.help, one.labels, nil)
		one.series(r, func(value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
		})
	}
}
