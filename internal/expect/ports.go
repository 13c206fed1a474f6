package expect

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
)

func portName(p rdma.DevicePort) string { return fmt.Sprintf("%s port %d", p.Device.Name, p.Number) }

func (f *facts) activePorts(g *Group, members []*pci.Function) Check {
	ports, all := f.RDMA.PortsOf(members, false)
	active, more := 0, 0
	var down []string
	for _, p := range ports {
		switch p.Usable() {
		case tristate.True:
			active++
		case tristate.False:
			down = append(down, portName(p))
		case tristate.Unknown:
			more++
		}
	}
	if !all || f.unidentified() != 0 {
		more = -1
	}
	found := fmt.Sprint(active)
	if len(down) > 0 {
		t := tally{bad: down}
		found += " (not " + t.found("") + ")"
	}
	return Check{
		Name: "nics.active-ports", State: g.ActivePorts.Holds(active, more),
		Expected: g.ActivePorts.String() + " active ports of the NICs" + g.suffix(), Found: found,
		Fix:     []string{"ibstat", "check cables, transceivers, switch ports and, for InfiniBand, that a subnet manager runs"},
		Sources: []string{rdma.AnyPortFile(rdma.StateFile), rdma.AnyPortFile(rdma.LinkLayerFile)},
	}
}

// eachActive asks a question of each active port; unknown for one that may not be active.
func (f *facts) eachActive(members []*pci.Function, ask func(rdma.DevicePort) (tristate.State, string)) tally {
	t := f.tally()
	ports, all := f.RDMA.PortsOf(members, false)
	t.open = t.open || !all
	for _, p := range ports {
		switch p.Usable() {
		case tristate.True:
			state, what := ask(p)
			t.add(state, what+" on "+portName(p))
		case tristate.Unknown:
			t.unknown++
		case tristate.False:
		}
	}
	return t
}

func (f *facts) linkLayer(g *Group, members []*pci.Function) Check {
	t := f.eachActive(members, func(p rdma.DevicePort) (tristate.State, string) {
		layer := strings.ToLower(p.LinkLayer) // an active port has a link layer
		return tristate.Of(layer == g.LinkLayer), layer
	})
	return Check{
		Name: "nics.link", State: t.state(), Expected: "link layer " + g.LinkLayer + " of the NICs" + g.suffix(), Found: t.found("no active port"),
		Fix:     []string{help(members, func(h family.Help) string { return h.LinkType }, "use other NICs, or correct the file: these have one link layer")},
		Sources: []string{rdma.AnyPortFile(rdma.LinkLayerFile)},
	}
}

func (f *facts) rate(g *Group, members []*pci.Function) Check {
	t := f.eachActive(members, func(p rdma.DevicePort) (tristate.State, string) {
		return g.Rate.rated(p.RateGbps), fmt.Sprintf("%g", p.RateGbps)
	})
	return Check{
		Name: "nics.rate", State: t.state(), Expected: "rate " + g.Rate.String() + " (Gbit/s) of the NICs" + g.suffix(), Found: t.found("no active port"),
		Fix:     []string{slowLink(members)},
		Sources: []string{rdma.AnyPortFile(rdma.RateFile)},
	}
}

// slowLink is what to do about a port that is slower than expected.
func slowLink(nics []*pci.Function) string {
	what := "a link came up slower: cable, transceiver or switch port"
	if tool := help(nics, func(h family.Help) string { return h.PortTool }, ""); tool != "" {
		return tool + " -d DEVICE shows why " + what
	}
	return "find out why " + what
}

// rated compares the rate of a port in Gbit/s, 0 for unknown.
func (r Range) rated(gbps float64) tristate.State {
	if gbps == 0 {
		return tristate.Unknown
	}
	return tristate.Of(float64(r.Min) <= gbps && gbps <= float64(r.Max))
}

// nearestRate judges whether a NIC near each GPU has an active port of a rate.
func (f *facts) nearestRate(want Range) Check {
	t := f.tally()
	var nearest []*pci.Function
	for _, gpu := range f.Matrix.GPUs {
		near := gpu.Near(topology.Usable) // those that the level is judged by
		nearest = append(nearest, slices.DeleteFunc(slices.Clone(near.Functions), func(fn *pci.Function) bool { return f.PCI.Physical(fn) != nil })...)
		switch {
		case !gpu.Counts():
			continue
		case near.Level == topology.Unknown:
			t.unknown++
			continue
		}
		best, fastest := "no active port", 0.0
		ports, all := f.RDMA.PortsOf(near.Functions, true) // a subfunction's too
		state := tristate.False
		if !all || !f.counted() { // an unidentified function may be one of the nearest
			state = tristate.Unknown
		}
		for _, p := range ports {
			one := tristate.And(p.Usable(), want.rated(p.RateGbps))
			state = tristate.Or(state, one)
			if p.Usable() == tristate.True && p.RateGbps > fastest {
				fastest, best = p.RateGbps, fmt.Sprintf("%g on %s", p.RateGbps, portName(p))
			}
		}
		t.add(state, fmt.Sprintf("%s for %v", best, gpu.Address))
	}
	return Check{
		Name: "nearest-rate", State: t.state(), Expected: "rate " + want.String() + " (Gbit/s) of a nearest NIC of every GPU",
		Found: t.found("no GPU"), Fix: []string{slowLink(nearest)},
		Sources: []string{pci.Devices, rdma.AnyPortFile(rdma.StateFile), rdma.AnyPortFile(rdma.RateFile)},
	}
}
