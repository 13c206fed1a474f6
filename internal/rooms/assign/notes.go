package assign

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdr-features/topology"
	"gdr-features/verdict"
)

// Notes say what is not ideal on this machine, a sentence each.
func (m *Assignment) Notes() []string {
	var notes []string
	for _, c := range m.Choices {
		notes = append(notes, m.about(c)...)
	}
	for _, n := range m.NICs {
		switch users := usersOf(m.whole, n); {
		case len(users) > 1 && m.Users(n) > 0:
			notes = append(notes, fmt.Sprintf("The GPUs %s share the NIC %s.", strings.Join(users, ", "), n.RDMA))
		case n.Aside != "" && !n.Virtual:
			notes = append(notes, fmt.Sprintf("The NIC %s is left out: %s.", n.RDMA, n.Aside))
		case n.Aside == "" && !m.isNear(n) && len(m.Choices) > 0:
			notes = append(notes, fmt.Sprintf("No GPU uses the NIC %s.", n.RDMA))
		}
	}
	for _, name := range m.Unknown {
		notes = append(notes, fmt.Sprintf("The NIC %s is not used, because its ports could not be read.", name))
	}
	if len(m.Hidden) > 0 {
		notes = append(notes, fmt.Sprintf("This process cannot use %s: they have no device node in /dev/infiniband here, or are in another network namespace.", strings.Join(m.Hidden, ", ")))
	}
	return notes
}

func (m *Assignment) about(c Choice) []string {
	var notes []string
	gpu := c.GPU.Address
	if !c.GPU.Counts() {
		notes = append(notes, fmt.Sprintf("The GPU %v cannot do GPUDirect RDMA: its data goes through host memory.", gpu))
	}
	if c.NIC == nil {
		return append(notes, fmt.Sprintf("The GPU %v has no usable NIC: %s.", gpu, m.WhyNone()))
	}
	switch {
	case c.Level == topology.Unknown:
		notes = append(notes, fmt.Sprintf("The level between the GPU %v and its NIC %s is unknown.", gpu, c.NIC.RDMA))
	case c.Level > topology.PXB:
		notes = append(notes, fmt.Sprintf("The usable NIC nearest to the GPU %v is at %v.", gpu, c.Level))
	}
	if m.belowEmulated(c) {
		notes = append(notes, fmt.Sprintf("The GPU %v and its NIC %s are below a switch that the hypervisor emulates, and ATS of the NIC is not known to be on: such pairs may transfer garbage (gdr-features explain EmulatedSwitch).", gpu, c.NIC.RDMA))
	}
	if nearer := m.nearerUnusable(c); nearer != nil {
		nic := &m.Matrix.NICs[nearer.NIC]
		why := "it has no RDMA device with an active port here"
		if slices.Contains(m.Hidden, nic.Name()) {
			why = "it has no device node here, or is in another network namespace"
		}
		notes = append(notes, fmt.Sprintf("The GPU %v has a nearer NIC, %s at %v, which cannot be used: %s.", gpu, cmp.Or(nic.Name(), nic.Address()), nearer.Level, why))
	}
	return notes
}

// WhyNone says why a GPU has no NIC.
func (m *Assignment) WhyNone() string {
	if len(m.NICs) > 0 {
		return "none that is for GPUs has an RDMA device with an active port here"
	}
	return "none is eligible and has an RDMA device with an active port here"
}

// belowEmulated: the NIC chosen shares an emulated switch with the GPU, and its ATS is not known
// to be on.
func (m *Assignment) belowEmulated(c Choice) bool {
	return slices.ContainsFunc(m.Node.EmulatedPairs(), func(of *topology.Pair) bool {
		return of.GPU == c.Index && of.NIC == c.NIC.index && m.Node.DoubtATS(m.Matrix.NICs[of.NIC].Function) != verdict.NoDoubt
	})
}

// nearerUnusable is the pair of a GPU and the first of its nearest NICs, if these are nearer than
// the one chosen; nil for none.
func (m *Assignment) nearerUnusable(c Choice) *topology.Pair {
	near := m.NearAmong(c.Index, m.ForGPUs)
	if near.Level.Rank() >= c.Level.Rank() {
		return nil
	}
	return &m.PairsOf(c.Index)[near.NICs[0]]
}

func (m *Assignment) isNear(n *NIC) bool {
	return slices.ContainsFunc(m.whole, func(c Choice) bool { return slices.Contains(c.Near, n) })
}
