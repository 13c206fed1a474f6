package assign

import (
	"slices"

	"gdr-features/source/container"
	"gdr-features/source/kmod"
	"gdr-features/source/rdma"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Here is a machine as this process sees it: in a container it may have some of the devices.
type Here struct {
	Node *verdict.Node
	// Visible are the devices that this process can use.
	Visible *container.Devices
}

// GPUs are the GPUs, by index, that this process can use: those that are visible, and that the
// driver does not exclude.
func (h Here) GPUs() []int {
	var here []int
	for i := range h.Node.Matrix.GPUs {
		address := h.Node.Matrix.GPUs[i].Address
		if h.Visible.GPUs[address].Visible != tristate.False && h.Node.Platform.GPUs.Excluded(address) != tristate.True {
			here = append(here, i)
		}
	}
	return here
}

// Assign gives each GPU that this process can use its NIC. All GPUs of the machine compete, so
// that processes with some of them do not take the same NICs; a container that has only some of
// the NICs has them for its own GPUs.
func (h Here) Assign() *Assignment { return h.AssignTo(h.GPUs(), h.Visible.RDMA) }

// AssignTo gives each of some GPUs its NIC among those that are usable as far as is known.
func (h Here) AssignTo(gpus []int, usable func(rdma string) tristate.State) *Assignment {
	m := h.machine(usable)
	if len(m.Hidden) > 0 {
		return m.Assign(gpus, nil)
	}
	return m.Assign(m.EveryGPU(), nil).Only(gpus)
}

// Machine returns all GPUs and the NICs that this process can use.
func (h Here) Machine() *Machine { return h.machine(h.Visible.RDMA) }

func (h Here) machine(usable func(rdma string) tristate.State) *Machine {
	n := h.Node
	m := newMachine(n, func(rdma string) bool { return usable(rdma) != tristate.False }, h.Visible.Foreign)
	for _, nic := range m.NICs {
		nic.Registered = h.Visible.Registered(nic.RDMA)
	}
	m.Incomplete = !n.PCIRead || !n.Matrix.Complete || !n.RDMA.Complete && !n.RDMA.Exclusive || !h.Visible.Complete
	return m
}

// UsableGID reports whether an entry is routable, and may be used in this network namespace: MOFED refuses to
// connect with an entry whose network device is in another one (mlnx-ofa_kernel 23.10,
// drivers/infiniband/core/verbs.c, ib_resolve_eth_dmac: rdma_check_gid_user_access), the
// kernel's own drivers do not.
func (h Here) UsableGID(g rdma.GID) bool {
	networks := h.Visible.Networks
	elsewhere := h.Node.Kmod.MOFED.Origin == kmod.OriginMOFED && g.NetDev != "" && networks != nil && !slices.Contains(networks, g.NetDev)
	return g.Routable() && !elsewhere
}
