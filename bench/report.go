package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gdr-features/test/busy"
)

// claim is something said about cost: value must not be over limit.
type claim struct {
	text         string
	value, limit float64
	// timed: it rests on time, which other load on the machine spoils.
	timed bool
}

// steady is how far the median of bare's runs may be above their minimum where time
// is to tell anything: on a quiet machine it is 1.1.
const steady = 1.2

// spread is how far it is, on the tree where that is most.
func spread(all []subject) float64 {
	most := 0.0
	for _, s := range all {
		most = max(most, median(s.bare.cpu())/slices.Min(s.bare.cpu()))
	}
	return most
}

// reason is why no claim about time can be judged, "" where they can: others is the
// share of the CPU time that other programs took, spread that of bare's runs.
func reason(others, spread float64) string {
	if why := busy.Reason(others); why != "" {
		return why
	}
	if spread > steady {
		return fmt.Sprintf("the median of bare's own runs is %.2f times their minimum, more than %g", spread, steady)
	}
	return ""
}

// step is what each further function costs from one tree to the next, in µs.
type step struct {
	from, to      int
	product, bare float64
}

// ratio is how much dearer it is than for bare.
func (s step) ratio() float64 { return s.product / s.bare }

// report prints tables and claims. It gives errOver when a claim does not hold.
func report(out io.Writer, m measured) error {
	last := len(m.subjects) - 1
	steps := stepsOf(m.subjects[:last])
	virtual := between(m.subjects[0], m.subjects[last])
	var text strings.Builder
	costTable(&text, m.subjects)
	stepTable(&text, steps, virtual)
	startTable(&text, m.start)
	idleTable(&text, m.hour)
	lifeTable(&text, m.life)
	over := claimTable(&text, claims(m, steps, virtual), reason(m.others, spread(m.subjects)))
	if _, err := io.WriteString(out, text.String()); err != nil {
		return err
	}
	if over {
		return errOver
	}
	return nil
}

// The bounds of README.md.
const (
	mostOfBare     = 4   // CPU of a run, times that of bare
	mostOfGHW      = 0.3 // CPU of a run, times that of ghw.PCI
	mostMB         = 24  // peak resident memory
	mostOfBareMore = 3   // CPU of a further function, times that of bare
)

// claims are what the documentation says.
func claims(m measured, steps []step, virtual step) []claim {
	base := m.subjects[0]
	times := func(other *series) float64 { return median(base.product.cpu()) / median(other.cpu()) }
	dearest, cheapest, worst := 0.0, steps[0].product, 0.0
	for _, s := range steps {
		dearest, cheapest = max(dearest, s.product), min(cheapest, s.product)
		worst = max(worst, s.ratio())
	}
	return []claim{
		{"CPU of a run, 8 GPUs, times that of bare", times(base.bare), mostOfBare, true},
		{"CPU of check, 8 GPUs, times that of bare reading the same", median(base.check.cpu()) / median(base.bareCheck.cpu()), mostOfBare, true},
		{"CPU of a run, 8 GPUs, times that of ghw.PCI alone", times(base.ghw), mostOfGHW, true},
		{"peak resident memory, 8 GPUs, MB", base.product.peak(), mostMB, false},
		{"CPU of a further function, times that of bare, worst step", worst, mostOfBareMore, true},
		{"CPU of a virtual function with RDMA device, times bare", virtual.ratio(), mostOfBareMore, true},
		{"linear growth: dearest step, times the cheapest", dearest / cheapest, linear, true},
		{"idle agent, back to back, percent of a core", m.hour.share(), 0.1, true},
		{"idle agent, living, times one that only looks at ports", m.life.cpu / m.life.bare, 6, true},
		{"idle agent, times the runs of bare", (m.hour.readings + m.hour.looks) / m.hour.bare, 3, true},
		{"packages linked that would slow every start down", float64(len(m.start.heavy)), 0, false},
	}
}

// linear is how far the steps of a linear growth may be apart: some hold more
// garbage collections than others. Growth with the square would show as 4.
const linear = 1.5

func costTable(w io.Writer, all []subject) {
	fmt.Fprintf(w, "\n%-22s %9s %12s %8s %8s\n", "whole process", "functions", "CPU ms: min", "median", "peak MB")
	for _, s := range all {
		for _, p := range s.programs() {
			fmt.Fprintf(w, "%-22s %9d %12.2f %8.2f %8.1f\n", p.name, s.functions, slices.Min(p.cpu()), median(p.cpu()), p.peak())
		}
	}
}

// stepsOf compares each tree with the next smaller one.
func stepsOf(all []subject) []step {
	var steps []step
	for i, to := range all[1:] {
		steps = append(steps, between(all[i], to))
	}
	return steps
}

// between compares two trees.
func between(from, to subject) step {
	each := func(less, more *series) float64 {
		return (median(more.cpu()) - median(less.cpu())) * 1e3 / float64(to.functions-from.functions)
	}
	return step{from.functions, to.functions, each(from.product, to.product), each(from.bare, to.bare)}
}

func stepTable(w io.Writer, steps []step, virtual step) {
	fmt.Fprintf(w, "\n%-22s %16s %8s %8s\n", "each further function", product+", µs", bare+", µs", "ratio")
	line := func(name string, s step) {
		fmt.Fprintf(w, "%-22s %16.1f %8.1f %8.2f\n", name, s.product, s.bare, s.ratio())
	}
	for _, s := range steps {
		line(fmt.Sprintf("from %d to %d", s.from, s.to), s)
	}
	line(fmt.Sprintf("%d virtual, RDMA", virtual.to-virtual.from), virtual)
}

// startTable prints the dearest packages of those that initialise anything.
func startTable(w io.Writer, st start) {
	const most = 5
	fmt.Fprintf(w, "\ninitialisation of %d packages of %d linked: %.3f ms, thereof\n", len(st.packages), st.linked, st.total)
	for _, p := range st.packages[:min(most, len(st.packages))] {
		fmt.Fprintf(w, "%-40s %6.3f ms\n", p.name, p.ms)
	}
	for _, name := range st.heavy {
		fmt.Fprintf(w, "linked, and must not be: %s\n", name)
	}
}

// claimTable prints the claims and tells whether one does not hold. Where busy
// gives a reason, those that rest on time are not judged.
func claimTable(w io.Writer, all []claim, busy string) (over bool) {
	fmt.Fprintf(w, "\n%-58s %6s %8s\n", "claim", "is", "at most")
	for _, c := range all {
		verdict := "PASS"
		switch {
		case c.timed && busy != "":
			verdict = "-"
		case c.value > c.limit:
			verdict, over = "over", true
		}
		fmt.Fprintf(w, "%-58s %6.2f %8g  %s\n", c.text, c.value, c.limit, verdict)
	}
	if busy != "" {
		fmt.Fprintf(w, "not judged, what rests on time: the machine is busy: %s\n", busy)
	}
	return over
}
