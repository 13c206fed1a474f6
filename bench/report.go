package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gdr-features/test/busy"
)

// claim is a statement about cost: value must not exceed limit.
type claim struct {
	text         string
	value, limit float64
	// timed: it depends on time, which other load on the machine distorts.
	timed bool
}

// steady is how many times the minimum the median of bare's runs may be for times to be
// judged. On a quiet machine it is 1.1.
const steady = 1.2

// spread is that ratio on the tree where it is largest.
func spread(all []subject) float64 {
	most := 0.0
	for _, s := range all {
		most = max(most, median(s.bare.cpu())/slices.Min(s.bare.cpu()))
	}
	return most
}

// reason says why claims about time cannot be judged; "" when they can. others is the
// share of CPU time that other programs took, spread that of bare's runs.
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

// ratio is the cost relative to bare.
func (s step) ratio() float64 { return s.product / s.bare }

// report prints tables and claims. It gives errOver when a claim fails.
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
	scatter := spread(m.subjects)
	over := claimTable(&text, claims(m, steps, virtual), reason(m.others, scatter), scatter)
	if _, err := io.WriteString(out, text.String()); err != nil {
		return err
	}
	if over {
		return errOver
	}
	return nil
}

// The bounds of docs/cost.md.
const (
	mostOfBare     = 4   // CPU of a run, times that of bare
	mostOfMLX5     = 1.1 // CPU of a run with NICs of another family, times that with mlx5
	mostOfGHW      = 0.3 // CPU of a run, times that of ghw.PCI
	mostMB         = 24  // peak resident memory
	mostOfBareMore = 3   // CPU of a further function, times that of bare
	mostOfIdle     = 2   // CPU of an idle hour, times the same in C
	mostOfPorts    = 6   // CPU of an idle agent, times that of a program that only reads ports
)

// claims are those of docs/cost.md.
func claims(m measured, steps []step, virtual step) []claim {
	base := m.subjects[0]
	times := func(other *series) float64 { return median(base.product.cpu()) / median(other.cpu()) }
	highest, lowest, worst := 0.0, steps[0].product, 0.0
	for _, s := range steps {
		highest, lowest = max(highest, s.product), min(lowest, s.product)
		worst = max(worst, s.ratio())
	}
	return []claim{
		{"CPU of a run, 8 GPUs, times that of bare", times(base.bare), mostOfBare, true},
		{"CPU of check, 8 GPUs, times that of bare reading the same", median(base.check.cpu()) / median(base.bareCheck.cpu()), mostOfBare, true},
		{"CPU of a run with NICs of another family, times that with mlx5", median(base.otherFamily.cpu()) / median(base.product.cpu()), mostOfMLX5, true},
		{"CPU of a run, 8 GPUs, times that of ghw.PCI alone", times(base.ghw), mostOfGHW, true},
		{"peak resident memory, 8 GPUs, MB", base.product.peak(), mostMB, false},
		{"CPU of a further function, times that of bare, worst step", worst, mostOfBareMore, true},
		{"CPU of a virtual function with RDMA device, times bare", virtual.ratio(), mostOfBareMore, true},
		{"linear growth: highest step, times the lowest", highest / lowest, linear, true},
		{"idle agent, back to back, percent of a core", m.hour.share(), 0.1, true},
		{"idle agent, times a program that only reads ports", m.life.times(), mostOfPorts, true},
		{"idle agent, back to back, times the same in C", m.hour.times(), mostOfIdle, true},
		{"linked packages that would slow down every start", float64(len(m.start.heavy)), 0, false},
	}
}

// linear is how much steps of linear growth may differ: some contain more garbage
// collections than others. Quadratic growth would show as 4.
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

// between is the step from one tree to another.
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

// startTable prints the packages that take longest to initialise.
func startTable(w io.Writer, st start) {
	const most = 5
	fmt.Fprintf(w, "\ninitialisation of %d packages of %d linked: %.3f ms, thereof\n", len(st.packages), st.linked, st.total)
	for _, p := range st.packages[:min(most, len(st.packages))] {
		fmt.Fprintf(w, "%-40s %6.3f ms\n", p.name, p.ms)
	}
	for _, name := range st.heavy {
		fmt.Fprintf(w, "linked but must not be: %s\n", name)
	}
}

// claimTable prints the claims and reports whether one fails. If busy gives a reason, those
// that depend on time are not judged; nor is one that is over its limit by less than bare's
// own runs scatter.
func claimTable(w io.Writer, all []claim, busy string, scatter float64) (over bool) {
	fmt.Fprintf(w, "\n%-58s %6s %8s\n", "claim", "is", "at most")
	var near []string
	for _, c := range all {
		verdict := "PASS"
		switch {
		case c.timed && busy != "":
			verdict = "-"
		case c.timed && c.value > c.limit && c.value <= c.limit*scatter:
			verdict, near = "near", append(near, c.text)
		case c.value > c.limit:
			verdict, over = "over", true
		}
		fmt.Fprintf(w, "%-58s %6.2f %8g  %s\n", c.text, c.value, c.limit, verdict)
	}
	if busy != "" {
		fmt.Fprintf(w, "claims about time are not judged: the machine is busy: %s\n", busy)
	}
	for _, text := range near {
		fmt.Fprintf(w, "not judged: %s: over the limit by less than bare's own runs scatter, %.2f times\n", text, scatter)
	}
	return over
}
