package main

import (
	"fmt"
	"io"
	"strings"
)

// The bars of docs/cost.md.
const (
	mostOfBare   = 3.5 // CPU of a run, times that of bare
	mostOfLstopo = 1.5 // CPU of a further function, times that of lstopo
	mostMB       = 24  // peak resident memory
	mostWideMB   = 32  // the same on the machine with the most NICs
	mostSize     = 9   // of the program, in MB
	mostLog      = 5   // CPU of log, in ns for each byte: 200 MB/s
	mostLogMB    = 24  // peak resident memory of log
	mostIdle     = 0.1 // CPU of an idle agent, percent of a core
)

// steady is how much bare's runs may scatter for times to be judged. On a quiet machine it
// is 1.1.
const steady = 1.2

// measured is all that is measured.
type measured struct {
	base, more       programs // on the machine, and with more virtual functions
	wide, widest     programs // with more NICs, and with many more
	job              logs     // on a job's log
	peak, size, idle float64  // MB, MB, percent of a core
	widePeak         float64  // MB, with many more NICs
	logPeak          float64  // MB
}

// claim is a statement about cost: value must not exceed bar.
type claim struct {
	text       string
	value, bar float64
	timed      bool // it depends on time, which other load on the machine distorts
}

// verdict is "ok", "over", or why the claim is not judged, by how much bare's runs scatter.
func (c claim) verdict(scatter float64) string {
	switch {
	case c.timed && scatter > steady:
		return "not judged: the machine is busy"
	case c.value <= c.bar:
		return "ok"
	case c.timed && c.value <= c.bar*scatter:
		return "not judged: over by less than bare's runs scatter"
	}
	return "over"
}

// each is the CPU time of a further function, in µs.
func each(base, more *program, further int) float64 {
	return (more.least() - base.least()) * 1e3 / float64(further)
}

// ofLstopo is the CPU time of labels for a further function, times that of lstopo.
func (m *measured) ofLstopo(less, more programs, further int) float64 {
	return each(less.labels, more.labels, further) / each(less.lstopo, more.lstopo, further)
}

func (m *measured) claims() []claim {
	return []claim{
		{"labels, times bare", m.base.labels.least() / m.base.bare.least(), mostOfBare, true},
		{"check, times bare reading the same", m.base.check.least() / m.base.bareCheck.least(), mostOfBare, true},
		{"a further virtual function, times lstopo", m.ofLstopo(m.base, m.more, furtherFunctions), mostOfLstopo, true},
		{fmt.Sprintf("one of %d functions with NICs, times lstopo", wideFunctions), m.ofLstopo(m.base, m.wide, wideFunctions-baseFunctions), mostOfLstopo, true},
		{fmt.Sprintf("one of %d functions with NICs, times lstopo", widestFunctions), m.ofLstopo(m.wide, m.widest, widestFunctions-wideFunctions), mostOfLstopo, true},
		{"peak resident memory of labels, MB", m.peak, mostMB, false},
		{fmt.Sprintf("the same with %d functions, MB", widestFunctions), m.widePeak, mostWideMB, false},
		{"the program, MB", m.size, mostSize, false},
		{"log, ns of CPU for each byte", 1e3 / rate(m.job.log), mostLog, true},
		{"peak resident memory of log, MB", m.logPeak, mostLogMB, false},
		{"an idle agent, percent of a core", m.idle, mostIdle, true},
	}
}

// report prints what was measured and the claims. It returns errOver when one fails.
func report(out io.Writer, m *measured) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%-12s %18s %8s %18s %8s %18s\n", "CPU ms", fmt.Sprint(baseFunctions, " functions"), "median",
		fmt.Sprint(baseFunctions+furtherFunctions, " functions"), "median", "each further, µs")
	for i, p := range m.base.all() {
		more := m.more.all()[i]
		fmt.Fprintf(&text, "%-12s %18.2f %8.2f %18.2f %8.2f %18.1f\n", p.name, p.least(), p.least()*p.scatter(), more.least(), more.least()*more.scatter(), each(p, more, furtherFunctions))
	}
	for _, tree := range []struct {
		functions int
		programs
	}{{wideFunctions, m.wide}, {widestFunctions, m.widest}} {
		fmt.Fprintf(&text, "\n%-12s %18s %8s\n", "CPU ms", fmt.Sprint(tree.functions, " functions"), "median")
		for _, p := range tree.ofNICs() {
			fmt.Fprintf(&text, "%-12s %18.2f %8.2f\n", p.name, p.least(), p.least()*p.scatter())
		}
	}
	scatter := max(m.base.bare.scatter(), m.more.bare.scatter())
	fmt.Fprintf(&text, "bare's median is %.2f times its cheapest run; times are judged up to %g\n\n", scatter, steady)
	for _, p := range m.job.all() {
		fmt.Fprintf(&text, "%-12s %8.0f MB/s of a job's log\n", p.name, rate(p))
	}
	var err error
	for _, c := range m.claims() {
		verdict := c.verdict(scatter)
		if verdict == "over" {
			err = errOver
		}
		fmt.Fprintf(&text, "%-50s %7.2f of %4g  %s\n", c.text, c.value, c.bar, verdict)
	}
	if _, writing := io.WriteString(out, text.String()); writing != nil {
		return writing
	}
	return err
}
