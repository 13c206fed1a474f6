package verdict

import (
	"slices"

	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// Degradation is what makes GPUDirect RDMA slower on a node than its hardware can do it, or leaves
// some GPU without it. Such a node may be ready.
type Degradation struct {
	// Degraded: a link on the way from a GPU to its nearest NICs lacks something, such a NIC has no
	// active port, or one of several NICs has no driver. Unknown where none of this is proven and
	// some of it is not known, and where nothing is judged.
	Degraded tristate.State
	// Hidden: Degraded will stay unknown. This is a virtual machine, only its links are not known,
	// and every file of a link that exists and is judged was read.
	Hidden bool
	// Links are those of cards and bridges.
	Links []Link
	// FarPorts are the GPUs that cannot use any of their nearest NICs.
	FarPorts []FarPort
	// Unbound are NICs without any driver, and WithoutRDMA those with a driver and no RDMA device,
	// of the judged family. One that works is enough for the verdict.
	Unbound, WithoutRDMA []*topology.NIC
}

// FarPort is a GPU whose nearest NICs have no active port while farther ones have: the pair that is
// left is worse than the machine's level says.
type FarPort struct {
	// Near is the pair with the first of the nearest NICs, and Left that with the first of the
	// nearest that have an active port.
	Near, Left *topology.Pair
}

// degradation judges what v does not say yet of the pair that it is about.
func (v *Verdict) degradation(node *Node) (d Degradation) {
	if v.NIC == nil {
		return d
	}
	p := Pair{node, v.GPU, v.NIC}
	d.Links, d.Unbound, d.WithoutRDMA = node.links(), p.unbound(), p.withoutRDMA()
	if v.ActivePort == tristate.True && node.Matrix.Complete && node.RDMA.Complete {
		d.FarPorts = node.farPorts()
	}
	if v.Capable == tristate.True {
		slow, missing := tristate.False, tristate.Or(node.nearPortMissing(),
			tristate.Of(len(d.FarPorts) > 0 || v.NICDriven == tristate.True && len(d.Unbound) > 0))
		for _, l := range d.Links {
			if l.Near {
				slow = tristate.Or(slow, tristate.Not(l.Full))
			}
		}
		unread := func(n *topology.NIC) bool { return !n.Function.DriverKnown }
		if missing == tristate.False && (!node.Matrix.Complete || slices.ContainsFunc(p.ForGPUs(), unread)) {
			missing = tristate.Unknown // what is not identified may be near, and a NIC may have no driver
		}
		d.Degraded = tristate.Or(slow, missing)
		d.Hidden = slow == tristate.Unknown && missing == tristate.False &&
			node.Guest() && !node.PCI.AnyLinkUnread
	}
	return d
}

// nearPortMissing: some NIC that is nearest to an eligible GPU has no active port. What a virtual
// function lacks is up to whoever it is for.
func (node *Node) nearPortMissing() tristate.State {
	missing := tristate.False
	for _, gpu := range node.Matrix.GPUs {
		if !gpu.Counts() {
			continue
		}
		near := gpu.Near(topology.Usable)
		if near.Level == topology.Unknown {
			missing = tristate.Or(missing, tristate.Unknown)
		}
		for _, nic := range near.NICs {
			if n := &node.Matrix.NICs[nic]; n.Function.PhysFn == nil {
				missing = tristate.Or(missing, node.portMissing(n))
			}
		}
	}
	return missing
}

// portMissing: a NIC has no active port. One that has another driver is meant for something else,
// such as a virtual machine, and ports of one card may share an RDMA device.
func (node *Node) portMissing(n *topology.NIC) tristate.State {
	fn := n.Function
	switch {
	case n.RDMA != nil:
		return tristate.Not(HasActivePort(n))
	case node.cardHasRDMA(fn):
		return tristate.False
	case !fn.DriverKnown, !node.RDMA.Complete:
		return tristate.Unknown
	}
	return tristate.Of(fn.Driver == "" || fn.NIC.Drives(fn.Driver))
}

// ForGPUs are the NICs of the judged family that are for GPUs, without virtual functions.
func (p Pair) ForGPUs() (nics []*topology.NIC) {
	for i := range p.Matrix.NICs {
		n := &p.Matrix.NICs[i]
		if p.Matrix.ForGPUs(i) && n.Function.NIC == p.NIC && n.Function.PhysFn == nil {
			nics = append(nics, n)
		}
	}
	return nics
}

// unbound are those without any driver: one that VFIO has is meant for virtual machines. A driver
// that fails on one card leaves it so (scitix/sichek PR#118: mlx5_core's probe failed at boot).
func (p Pair) unbound() []*topology.NIC {
	return slices.DeleteFunc(p.ForGPUs(), func(n *topology.NIC) bool {
		return !n.Function.DriverKnown || n.Function.Driver != ""
	})
}

// withoutRDMA are those with a driver and no RDMA device. Ports of one card may share a device
// (RoCE LAG), and those of containers may be hidden.
func (p Pair) withoutRDMA() []*topology.NIC {
	if !p.RDMA.Complete {
		return nil
	}
	return slices.DeleteFunc(p.ForGPUs(), func(n *topology.NIC) bool {
		return n.RDMA != nil || !p.NIC.Drives(n.Function.Driver) || p.cardHasRDMA(n.Function)
	})
}

// cardHasRDMA reports whether some function of the same card has an RDMA device.
func (node *Node) cardHasRDMA(fn *pci.Function) bool {
	card := func(a pci.Address) pci.Address { a.Function = 0; return a }
	return slices.ContainsFunc(node.RDMA.Devices,
		func(d rdma.Device) bool { return d.PCI != nil && card(*d.PCI) == card(fn.Address) })
}

// farPorts are those of all eligible GPUs.
func (node *Node) farPorts() (all []FarPort) {
	for i, gpu := range node.Matrix.GPUs {
		near, left := node.nearestOf(i)
		if gpu.Counts() && near != nil && left != nil && left.Level > near.Level {
			all = append(all, FarPort{near, left})
		}
	}
	return all
}

// nearestOf returns a GPU's pair with the first of its nearest NICs, and the same of those that have
// an active port; nil where a level or a port is not known.
func (node *Node) nearestOf(gpu int) (near, left *topology.Pair) {
	m := &node.Matrix
	first := func(n topology.Nearest) *topology.Pair {
		if len(n.NICs) == 0 {
			return nil
		}
		return &m.PairsOf(gpu)[n.NICs[0]]
	}
	active := map[int]bool{}
	for nic, p := range m.PairsOf(gpu) {
		up := HasActivePort(&m.NICs[nic])
		if m.NICs[nic].Counts() && (p.Level == topology.Unknown || up == tristate.Unknown) {
			return nil, nil
		}
		active[nic] = m.NICs[nic].Counts() && up == tristate.True
	}
	return first(m.GPUs[gpu].Near(topology.Usable)), first(m.NearAmong(gpu, func(nic int) bool { return active[nic] }))
}
