package expect

import (
	"cmp"
	"fmt"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// facts are what is compared; links and firmware are read for source.What.Expect.
type facts struct{ *verdict.Node }

// Judge compares a machine with a file.
func Judge(file *File, node *verdict.Node) Result {
	f := &facts{node}
	r := Result{Machine: f.machine()}
	t, known := file.find(f)
	if t == nil {
		r.NoType = known
		return r
	}
	r.Type, r.State = t.Name, tristate.True
	r.Checks = f.checks(&t.Expect)
	for _, c := range r.Checks {
		r.State = tristate.And(r.State, c.State)
	}
	return r
}

// checks judges each expectation, in the order of docs/expect.md.
func (f *facts) checks(e *Expectations) []Check {
	var all []Check
	for i := range e.GPUs {
		all = append(all, f.group("gpus", "GPUs", &e.GPUs[i], (*pci.Function).GPUEligible)...)
	}
	for i := range e.NICs {
		all = append(all, f.group("nics", "NICs", &e.NICs[i], (*pci.Function).NICEligible)...)
	}
	if e.Level != topology.Unknown {
		all = append(all, f.level(e.Level))
	}
	if e.NearestRate.text != "" {
		all = append(all, f.nearestRate(e.NearestRate))
	}
	return append(all, f.software(e)...)
}

// tally counts for how many members of a group an expectation holds.
type tally struct {
	good    int
	bad     []string // for each that it does not hold for: what was found, and where
	unknown int
	// open: there may be more members than are known.
	open bool
}

func (f *facts) tally() tally { return tally{open: f.unidentified() != 0} }

func (t *tally) add(state tristate.State, what string) {
	switch state {
	case tristate.True:
		t.good++
	case tristate.False:
		t.bad = append(t.bad, what)
	case tristate.Unknown:
		t.unknown++
	}
}

// state is false when the expectation fails for a member, or when there are none.
func (t *tally) state() tristate.State {
	switch {
	case len(t.bad) > 0:
		return tristate.False
	case t.unknown > 0, t.open:
		return tristate.Unknown
	}
	return tristate.Of(t.good > 0)
}

// found lists what was found instead; none is the text where there are no members.
func (t *tally) found(none string) string {
	const most = 4
	n := len(t.bad)
	text := cmp.Or(strings.Join(t.bad[:min(n, most)], ", "), none)
	if n > most {
		text += fmt.Sprintf(" and %d more", n-most)
	}
	return text
}

func (f *facts) level(limit topology.Level) Check {
	c := Check{
		Name: "level", State: f.Matrix.Within(limit), Expected: "a NIC at " + limit.String() + " for every GPU",
		Fix:     []string{"compare gdr-features topo with a healthy machine: a NIC is missing, or in another slot"},
		Sources: []string{pci.Devices, pci.AnyFile(pci.NUMAFile)},
	}
	if limit != topology.PIX {
		c.Expected = "a NIC at " + limit.String() + " or nearer for every GPU"
	}
	for _, gpu := range f.Matrix.GPUs {
		if near := gpu.Near(topology.Usable); gpu.Counts() && near.Level > limit && c.State == tristate.False {
			c.Found = fmt.Sprintf("%v for %v", near.Level, gpu.Address)
			return c
		}
	}
	switch {
	case f.counted() && f.Matrix.EligibleGPUs == 0:
		c.State, c.Found = tristate.False, "no GPU"
	case f.counted() && f.Matrix.EligibleNICs == 0:
		c.State, c.Found = tristate.False, "no NIC"
	}
	return c
}

// counted reports whether every PCI function was identified.
func (f *facts) counted() bool { return f.PCIRead && f.Matrix.Complete }
