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

// Judgement says whether something is right, wrong, or not known.
type Judgement struct {
	State tristate.State
	// Part: the only fault is that NICs near a GPU are left out.
	Part bool
	// Problems say what is wrong or not known, each naming the entry.
	Problems []string
}

func (v *Judgement) wrong(format string, args ...any) {
	v.leave(format, args...)
	v.Part = false
}

// leave says that near NICs are left out.
func (v *Judgement) leave(format string, args ...any) {
	v.Part = v.Part || v.State != tristate.False // otherwise something else is wrong, too
	v.State = tristate.False
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}

func (v *Judgement) unknown(format string, args ...any) {
	v.State = tristate.And(v.State, tristate.Unknown)
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}

// ofGPUs is how to say something about a GPU: it is not known where the process may not use it.
func (j *judge) ofGPUs(v *Judgement, say func(string, ...any)) func(format string, args ...any) {
	if j.UnknownGPUs != "" {
		return v.unknown
	}
	return say
}

// OfGPU judges a variable for one GPU. Its problems are among those of the variable, which tells the
// NICs that are left out for all GPUs at once.
type OfGPU struct {
	Index   int // in the matrix
	Address string
	Judgement
	Given, Near []string // RDMA devices
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
func (v *Judgement) Word() string {
	if v.Part {
		return "PART"
	}
	return map[tristate.State]string{tristate.True: "OK", tristate.False: "WRONG", tristate.Unknown: "UNKNOWN"}[v.State]
}

// each judges whether each GPU has a NIC, and none that is farther than need be.
func (j *judge) each(f *Finding, given [][]*assign.NIC) {
	f.GPUs = nil
	for i, c := range j.Choices {
		one := OfGPU{Index: c.Index, Address: c.GPU.Address.String(), Given: namesOf(given[i]), Near: namesOf(c.Near)}
		one.State = tristate.True
		for _, nic := range given[i] {
			switch level := j.Level(c, nic); {
			case level == topology.Unknown:
				one.unknown("the level between the GPU %v and %s is unknown", c.GPU.Address, nic.RDMA)
			case level.Rank() > c.Level.Rank():
				j.ofGPUs(&one.Judgement, one.wrong)("the GPU %v is given %s at %v; %s is nearer, at %v", c.GPU.Address, nic.RDMA, level, c.NIC.RDMA, c.Level)
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
		f.GPUs = append(f.GPUs, one)
	}
}
