package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// claim is something said about cost: value must not be over limit.
type claim struct {
	text         string
	value, limit float64
	// timed: it rests on time, which other load on the machine spoils.
	timed bool
}

// steady is how far the median of a program's runs may be above their minimum
// where time is to tell anything: on a quiet machine it is 1.1.
const steady = 1.2

// noise is how far it is, on the tree where that is most.
func noise(all []subject) float64 {
	most := 0.0
	for _, s := range all {
		for _, p := range []*series{s.bare, s.product} {
			most = max(most, median(p.cpu())/slices.Min(p.cpu()))
		}
	}
	return most
}

// step is what each further function costs from one tree to the next, in µs.
type step struct {
	from, to      int
	product, bare float64
}

// report prints tables and claims. It gives errOver when a claim does not hold.
func report(out io.Writer, all []subject, st start, hour idle, l life) error {
	steps := stepsOf(all)
	var text strings.Builder
	costTable(&text, all)
	stepTable(&text, steps)
	startTable(&text, st)
	idleTable(&text, hour)
	lifeTable(&text, l)
	over, spoiled := claimTable(&text, claims(all[0], steps, st, hour, l), noise(all))
	if _, err := io.WriteString(out, text.String()); err != nil {
		return err
	}
	switch {
	case over:
		return errOver
	case spoiled:
		return errNoisy
	}
	return nil
}

// claims are what the documentation says.
func claims(base subject, steps []step, st start, hour idle, l life) []claim {
	times := func(other *series) float64 { return median(base.product.cpu()) / median(other.cpu()) }
	dearest, cheapest, worst := 0.0, steps[0].product, 0.0
	for _, s := range steps {
		dearest, cheapest = max(dearest, s.product), min(cheapest, s.product)
		worst = max(worst, s.product/s.bare)
	}
	return []claim{
		{"CPU of a run, 8 GPUs, times that of bare", times(base.bare), 3, true},
		{"CPU of check, 8 GPUs, times that of bare reading the same", median(base.check.cpu()) / median(base.bareCheck.cpu()), 3, true},
		{"CPU of a run, 8 GPUs, times that of ghw.PCI alone", times(base.ghw), 0.5, true},
		{"peak resident memory, 8 GPUs, MB", base.product.peak(), 24, false},
		{"CPU of a further function, times that of bare, worst step", worst, 3, true},
		{"linear growth: dearest step, times the cheapest", dearest / cheapest, linear, true},
		{"idle agent, back to back, percent of a core", hour.share(), 0.1, true},
		{"idle agent, living, times one that only looks at ports", l.cpu / l.bare, 6, true},
		{"idle agent, times the runs of bare", (hour.readings + hour.looks) / hour.bare, 3, true},
		{"packages linked that would slow every start down", float64(len(st.heavy)), 0, false},
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
		from := all[i]
		each := func(less, more *series) float64 {
			return (median(more.cpu()) - median(less.cpu())) * 1e3 / float64(to.functions-from.functions)
		}
		steps = append(steps, step{from.functions, to.functions, each(from.product, to.product), each(from.bare, to.bare)})
	}
	return steps
}

func stepTable(w io.Writer, steps []step) {
	fmt.Fprintf(w, "\n%-22s %16s %8s %8s\n", "each further function", product+", µs", bare+", µs", "ratio")
	for _, s := range steps {
		fmt.Fprintf(w, "%-22s %16.1f %8.1f %8.2f\n", fmt.Sprintf("from %d to %d", s.from, s.to), s.product, s.bare, s.product/s.bare)
	}
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

// claimTable prints the claims and tells whether one does not hold: over, or
// spoiled, as it rests on time and the machine was not quiet.
func claimTable(w io.Writer, all []claim, noise float64) (over, spoiled bool) {
	fmt.Fprintf(w, "\n%-58s %6s %8s\n", "claim", "is", "at most")
	for _, c := range all {
		verdict := "PASS"
		switch {
		case c.value <= c.limit:
		case c.timed && noise > steady:
			verdict, spoiled = "NOT JUDGED", true
		default:
			verdict, over = "over", true
		}
		fmt.Fprintf(w, "%-58s %6.2f %8g  %s\n", c.text, c.value, c.limit, verdict)
	}
	if spoiled {
		fmt.Fprintf(w, "the machine is not quiet: the median of some program is %.2f times its minimum, more than %g\n", noise, steady)
	}
	return over, spoiled
}
