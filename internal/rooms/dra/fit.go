package dra

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gdr-features/internal/rooms/assign"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// fitness says how well a NIC fits a claim, the best first.
type fitness int

const (
	first fitness = iota // near, and of the NICs of its card the one that env chooses before others
	near                 // env gives it to a GPU, or would if it were usable now
	far                  // it is for GPUs, and not near one that is claimed
	unfit                // it is not for GPUs
)

// fit are the functions that a claim by the attribute may be given: of those with one value of
// the attribute only as many of the less fit ones as it takes for a NIC for each GPU with it.
// A GPU that has its value alone may have any NIC near it.
func (c *claimant) fit() map[*pci.Function]bool {
	nics := map[string]map[*pci.Function]fitness{} // by value of the attribute
	for i := range c.m.Matrix.NICs {
		f := c.m.Matrix.NICs[i].Function
		if f == nil || !c.driver.publishes(f) {
			continue
		}
		value, _ := c.Attribute.Of(f)
		if nics[value] == nil {
			nics[value] = map[*pci.Function]fitness{}
		}
		before, seen := nics[value][f] // it may have several RDMA devices
		if is := c.fitness(i); !seen || is < before {
			nics[value][f] = is
		}
	}
	gpus, fit := c.gpusBy(false), map[*pci.Function]bool{}
	for value, of := range nics {
		c.oneOfEachCard(of)
		limit := first
		if gpus[value] == 1 {
			limit = near
		}
		if best := slices.Sorted(maps.Values(of)); len(best) < gpus[value] {
			limit = far
		} else if gpus[value] > 0 {
			limit = min(far, max(limit, best[gpus[value]-1]))
		}
		for f, fitness := range of {
			fit[f] = fitness <= limit
		}
	}
	return fit
}

// oneOfEachCard marks, of the near NICs of each card, one that env gives to a GPU which can use
// one NIC; else the first that is usable now; else the first.
func (c *claimant) oneOfEachCard(nics map[*pci.Function]fitness) {
	chosen := func(nic int) int {
		if usable := c.m.Usable(nic); usable != nil {
			return 1 + min(c.m.Users(usable), 1)
		}
		return 0
	}
	best := map[pci.Address]int{} // by card
	for i, n := range c.m.Matrix.NICs {
		if fitness, ok := nics[n.Function]; !ok || fitness != near {
			continue
		}
		card := c.m.Card(i)
		if before, seen := best[card]; !seen || chosen(i) > chosen(before) {
			best[card] = i
		}
	}
	for _, i := range best {
		nics[c.m.Matrix.NICs[i].Function] = first
	}
}

// fitness is that of a NIC of the matrix, without regard to its card.
func (c *claimant) fitness(nic int) fitness {
	n := &c.m.Matrix.NICs[nic]
	usable := c.m.Usable(nic)
	gives := func(choice assign.Choice) bool { return c.wanted(choice.GPU) && slices.Contains(choice.Near, usable) }
	switch {
	case !c.forGPUs(n.Function), usable == nil && c.besidePhysical(n.Function):
		return unfit
	case usable != nil && slices.ContainsFunc(c.m.Choices, gives):
		return near
	case usable != nil && !c.driver.onlyVirtual && usable.Aside != "" && !usable.OtherLayer:
		return unfit
	case usable != nil:
		return far
	}
	for i := range c.m.GPUs {
		if c.wanted(&c.m.GPUs[i]) && slices.Contains(c.m.GPUs[i].Near(topology.Usable).NICs, nic) {
			return near
		}
	}
	return far
}

// besidePhysical reports whether a function is a virtual one of a usable NIC that is published
// too.
func (c *claimant) besidePhysical(f *pci.Function) bool {
	return f.PhysFn != nil && !c.driver.onlyVirtual &&
		slices.ContainsFunc(c.m.NICs, func(n *assign.NIC) bool { return n.Address == *f.PhysFn })
}

// forGPUs reports whether a NIC is for the traffic of GPUs (topology.Usable).
func (c *claimant) forGPUs(f *pci.Function) bool {
	of := func(n topology.NIC) bool { return n.Function == f }
	i := slices.IndexFunc(c.m.Matrix.NICs, of)
	return i >= 0 && c.m.ForGPUs(i)
}

// only is the condition that keeps NICs that do not fit from a claim by the attribute: all
// virtual functions by what the driver publishes of them, the others by address. It is "" where
// all fit.
func (c *claimant) only() string {
	var out []*pci.Function
	seen := map[*pci.Function]bool{}
	virtual := c.driver.virtual != ""
	for _, p := range c.m.Pairs {
		switch nic := c.m.Matrix.NICs[p.NIC].Function; {
		case c.matches(&p) == tristate.False || seen[nic]:
		case !c.fits[nic]:
			out = append(out, nic)
			seen[nic] = true
		case nic.PhysFn != nil:
			virtual = false
		}
	}
	var conditions, addresses []string
	for _, f := range out {
		if f.PhysFn == nil || !virtual {
			addresses = append(addresses, fmt.Sprintf("%q", f.Address))
		}
	}
	if len(addresses) < len(out) {
		conditions = append(conditions, "!"+optional(c.driver.virtual, "false"))
		c.note("Virtual functions are selected out: their physical functions are here.")
	}
	if len(addresses) > 0 {
		slices.Sort(addresses)
		conditions = append(conditions, fmt.Sprintf("!(%s in [%s])", optional(c.driver.address, `""`), strings.Join(addresses, ", ")))
		c.note("NICs that are not for GPUs, are near to none or are further ports of a card are selected out by address: %s.", strings.ReplaceAll(strings.Join(addresses, ", "), `"`, ""))
	}
	return strings.Join(conditions, " && ")
}
