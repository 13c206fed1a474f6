package report

import (
	"gdr-features/internal/assign"
	"gdr-features/internal/frameworks"
	"gdr-features/tristate"
)

// GPUsHere are the GPUs, by index, that this process can use: those that are visible, and that
// the driver does not exclude. It needs What.Process.
func (r *Report) GPUsHere() []int {
	var here []int
	for i := range r.Matrix.GPUs {
		address := r.Matrix.GPUs[i].Address
		if r.Visible.GPUs[address].Visible != tristate.False && r.Platform.GPUs.Excluded(address) != tristate.True {
			here = append(here, i)
		}
	}
	return here
}

// Selected are the GPUsHere that variables leave to a process. It needs What.Process.
func (r *Report) Selected(variables map[string]string) frameworks.Selection {
	here := r.GPUsHere()
	candidates := make([]frameworks.Candidate, len(here))
	for i, gpu := range here {
		g := &r.Matrix.GPUs[gpu]
		candidates[i] = frameworks.Candidate{CUDA: g.GPU.CUDA, UUID: r.Visible.GPUs[g.Address].UUID}
	}
	s := frameworks.Select(candidates, variables)
	for i := range s.GPUs {
		s.GPUs[i] = here[s.GPUs[i]]
	}
	return s
}

// Assign gives each GPU that this process can use its NIC. It needs What.Process. All GPUs of
// the machine compete, so that processes with some of them do not take the same NICs; a
// container that has only some of the NICs has them for its own GPUs.
func (r *Report) Assign() *assign.Assignment { return r.assign(r.GPUsHere(), r.Visible.RDMA) }

// assign gives each of some GPUs its NIC among those that are usable as far as is known.
func (r *Report) assign(gpus []int, usable func(rdma string) tristate.State) *assign.Assignment {
	m := r.machine(usable)
	if len(m.Hidden) > 0 {
		return m.Assign(gpus, nil)
	}
	return m.Assign(m.EveryGPU(), nil).Only(gpus)
}

// Machine returns all GPUs and the NICs that this process can use. It needs What.Process.
func (r *Report) Machine() *assign.Machine { return r.machine(r.Visible.RDMA) }

func (r *Report) machine(usable func(rdma string) tristate.State) *assign.Machine {
	m := assign.NewMachine(&r.Node, func(rdma string) bool { return usable(rdma) != tristate.False })
	for _, nic := range m.NICs {
		nic.Registered = r.Visible.Registered(nic.RDMA)
	}
	for i := range r.Matrix.NICs {
		if n := &r.Matrix.NICs[i]; n.Eligible && n.RDMA == nil {
			m.Hidden = append(m.Hidden, r.Visible.Foreign(n.Function.Address)...)
		}
	}
	m.Incomplete = !r.PCIRead || !r.Matrix.Complete || !r.RDMA.Complete && !r.RDMA.Exclusive || !r.Visible.Complete
	return m
}
