package monitor

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"gdr-features/internal/report"
	"gdr-features/tristate"
)

// pairLevel is the metric that is served only with Monitor.Pairs.
const pairLevel = "gdr_pair_level"

// adder adds a series with a value and the values of the metric's labels.
type adder func(value float64, labels ...string)

// metric is a metric of the machine, with the series that follow from a report.
type metric struct {
	name, help string
	labels     []string
	series     func(*report.Report, adder)
}

func (m *metric) desc() *prometheus.Desc { return prometheus.NewDesc(m.name, m.help, m.labels, nil) }

// metrics holds every metric of the machine.
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
		if level := r.Matrix.Level.String(); level != "" {
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
	for i := range metrics {
		to <- metrics[i].desc()
	}
}

// Collect implements prometheus.Collector.
func (c machineCollector) Collect(to chan<- prometheus.Metric) {
	c.m.mu.Lock()
	r := c.m.report
	c.m.mu.Unlock()
	if r == nil {
		return
	}
	for i := range metrics {
		m := &metrics[i]
		if m.name == pairLevel && !c.m.Pairs {
			continue
		}
		desc := m.desc()
		m.series(r, func(value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
		})
	}
}
