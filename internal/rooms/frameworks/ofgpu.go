package frameworks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/rooms/assign"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// OfGPU judges a variable for one GPU. Its problems are among those of the variable, which tells the
// NICs that are left out for all GPUs at once.
type OfGPU struct {
	Index       int // in the matrix
	Address     string
	State       tristate.State
	Part        bool
	Given, Near []string // RDMA devices
	Problems    []string
}

// Others are the problems that are not those of one GPU.
func (f *Finding) Others() (problems []string) {
	var told []string
	for i := range f.GPUs {
		told = append(told, f.GPUs[i].Problems...)
	}
	for _, p := range f.Problems {
		if !slices.Contains(told, p) && (len(f.GPUs) == 0 || !strings.HasPrefix(p, leftOut)) {
			problems = append(problems, p)
		}
	}
	return problems
}

const leftOut = "left out: "

// Word is how a variable is judged, for all GPUs or for one.
func Word(state tristate.State, part bool) string {
	if part {
		return "PART"
	}
	return map[tristate.State]string{tristate.True: "OK", tristate.False: "WRONG", tristate.Unknown: "UNKNOWN"}[state]
}

// leave says which of the NICs near a GPU are left out, and which share of its bandwidth that is.
func (g *OfGPU) leave(left []*assign.NIC, share int, unknown bool) {
	g.Problems = append(slices.Clone(g.Problems), fmt.Sprintf(leftOut+"%s; bandwidth lost: %d%%", strings.Join(namesOf(left), ", "), share))
	switch {
	case unknown:
		g.State = tristate.And(g.State, tristate.Unknown)
	case g.State != tristate.False:
		g.State, g.Part = tristate.False, true
	}
}

// each judges whether each GPU has a NIC, and none that is farther than need be.
func (j *judge) each(f *Finding, given [][]*assign.NIC) {
	f.GPUs = nil
	for i, c := range j.Choices {
		one := Finding{State: tristate.True}
		for _, nic := range given[i] {
			switch level := j.Level(c, nic); {
			case level == topology.Unknown:
				one.unknown("the level between the GPU %v and %s is unknown", c.GPU.Address, nic.RDMA)
			case level.Rank() > c.Level.Rank():
				j.ofGPUs(&one, "the GPU %v is given %s at %v; %s is nearer, at %v", c.GPU.Address, nic.RDMA, level, c.NIC.RDMA, c.Level)
			}
		}
		if len(given[i]) == 0 && c.NIC != nil {
			say := one.wrong
			if j.UnknownGPUs != "" || f.State == tristate.Unknown { // so may be the NIC that it is given
				say = one.unknown
			}
			say("the GPU %v has no usable entry; %s is at %s", c.GPU.Address, c.NIC.RDMA, cmp.Or(c.Level.String(), "an unknown level"))
		}
		f.State, f.Problems = tristate.And(f.State, one.State), append(f.Problems, one.Problems...)
		f.Part = f.Part && one.State != tristate.False
		f.GPUs = append(f.GPUs, OfGPU{
			Index: c.Index, Address: c.GPU.Address.String(), State: one.State, Given: namesOf(given[i]), Near: namesOf(c.Near),
			Problems: one.Problems,
		})
	}
}
