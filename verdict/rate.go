package verdict

import (
	"math"

	"gdr-features/topology"
	"gdr-features/tristate"
)

// rate returns the rate in Gbit/s that every eligible GPU gets on one active port of its
// nearest NICs: the smallest of what each GPU gets. It is 0 when some GPU's nearest NICs
// have no active port, and nil when it is unknown (open) or there is no eligible GPU or NIC.
func (f *Node) rate() (gbps *int, open bool) {
	switch {
	case !f.Matrix.Complete: // what could not be identified may be a GPU, or a nearer NIC
		return nil, true
	case f.Matrix.EligibleNICs == 0:
		return nil, false
	}
	worst := math.Inf(1)
	for i := range f.Matrix.GPUs {
		gpu := &f.Matrix.GPUs[i]
		if !gpu.Eligible {
			continue
		}
		// A GPU that may get more than was read matters only if no other GPU is known to
		// get as little.
		if best, more := f.fastest(gpu); best < worst || best == worst && !more {
			worst, open = best, more
		}
	}
	if open || math.IsInf(worst, 1) {
		return nil, open
	}
	return new(int(worst)), false
}

// fastest returns the highest rate in Gbit/s of the active ports of a GPU's nearest NICs, 0
// without an active port. more tells that it may be higher, because something could not be
// read.
func (f *Node) fastest(gpu *topology.GPU) (gbps float64, more bool) {
	ports, all := f.RDMA.PortsOf(gpu.Nearest, true)
	more = gpu.Level == topology.Unknown || !all
	for _, p := range ports {
		usable := p.Usable()
		more = more || usable == tristate.Unknown || usable == tristate.True && p.RateGbps == 0
		if usable == tristate.True {
			gbps = max(gbps, p.RateGbps)
		}
	}
	return gbps, more
}
