package monitor

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"gdr-features/internal/report"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// machine is what the metrics say about a machine.
type machine struct {
	known          bool
	ready, capable float64
	reason, level  string
	rate           *int        // Gbit/s; nil without one
	pairs          [][4]string // gpu, nic, rdma, level
	expected       *float64    // nil without --expect
	deviations     []string
}

func machineOf(r *report.Report, pairs bool) machine {
	m := machine{
		known: true, ready: number(r.Verdict.Ready), capable: number(r.Verdict.Capable),
		reason: string(r.Verdict.Reason), level: r.Matrix.Level.String(), rate: r.Verdict.Rate,
	}
	if pairs {
		m.pairs = pairsOf(&r.Matrix)
	}
	if r.Expected != nil {
		state := number(r.Expected.State)
		m.expected, m.deviations = &state, r.Expected.Deviations()
	}
	return m
}

// pairsOf lists the pairs whose level is known. Names of devices that are not UTF-8 may
// become equal, and Prometheus takes each series once.
func pairsOf(m *topology.Matrix) (pairs [][4]string) {
	listed := make(map[[4]string]bool, len(m.Pairs))
	for _, p := range m.Pairs {
		n := &m.NICs[p.NIC]
		name := strings.ToValidUTF8(n.Name(), "_") // the name of a directory, which may have any bytes
		pair := [4]string{m.GPUs[p.GPU].Address.String(), n.Address(), name, p.Level.String()}
		if pair[3] == "" || listed[pair] {
			continue
		}
		listed[pair] = true
		pairs = append(pairs, pair)
	}
	return pairs
}

// number is 1 for true, 0 for false and -1 for unknown.
func number(s tristate.State) float64 {
	switch s {
	case tristate.True:
		return 1
	case tristate.False:
		return 0
	case tristate.Unknown:
	}
	return -1
}

// machineCollector makes the metrics of the machine as last read, without series for what
// is gone.
type machineCollector struct{ m *Monitor }

// Describe implements prometheus.Collector.
func (machineCollector) Describe(to chan<- *prometheus.Desc) {
	d := descriptions()
	for _, one := range []*prometheus.Desc{d.ready, d.capable, d.reason, d.level, d.rate, d.pair, d.expected, d.deviation} {
		to <- one
	}
}

type description struct{ ready, capable, reason, level, rate, pair, expected, deviation *prometheus.Desc }

func descriptions() description {
	return description{
		ready:     prometheus.NewDesc("gdr_ready", "GPUDirect RDMA works now: 1, 0, or -1 when unknown.", nil, nil),
		capable:   prometheus.NewDesc("gdr_capable", "The hardware can do GPUDirect RDMA: 1, 0, or -1 when unknown.", nil, nil),
		reason:    prometheus.NewDesc("gdr_reason", "Why GPUDirect RDMA does not work now; always 1.", []string{"reason"}, nil),
		level:     prometheus.NewDesc("gdr_level", "The level that every GPU reaches with its nearest NIC; always 1.", []string{"level"}, nil),
		rate:      prometheus.NewDesc("gdr_rate_bits_per_second", "Rate that every GPU gets on one active port of its nearest NICs.", nil, nil),
		pair:      prometheus.NewDesc("gdr_pair_level", "How near a GPU is to a NIC; always 1. Only with --metrics-pairs.", []string{"gpu", "nic", "rdma", "level"}, nil),
		expected:  prometheus.NewDesc("gdr_expected", "The machine is as --expect says: 1, 0, or -1 when unknown or of no type listed there.", nil, nil),
		deviation: prometheus.NewDesc("gdr_deviation", "What is not as --expect says; always 1.", []string{"expectation"}, nil),
	}
}

// Collect implements prometheus.Collector.
func (c machineCollector) Collect(to chan<- prometheus.Metric) {
	c.m.mu.Lock()
	now := c.m.machine
	c.m.mu.Unlock()
	if !now.known {
		return
	}
	d := descriptions()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(d.ready, now.ready)
	gauge(d.capable, now.capable)
	if now.reason != "" {
		gauge(d.reason, 1, now.reason)
	}
	if now.level != "" {
		gauge(d.level, 1, now.level)
	}
	if now.rate != nil {
		gauge(d.rate, float64(*now.rate)*1e9)
	}
	if now.expected != nil {
		gauge(d.expected, *now.expected)
	}
	for _, name := range now.deviations {
		gauge(d.deviation, 1, name)
	}
	for _, p := range now.pairs {
		gauge(d.pair, 1, p[:]...)
	}
}
