// Package assign gives each GPU of a machine the NIC that it should use. It does no I/O: the
// same machine always gives the same answer, in every process.
package assign

import (
	"cmp"
	"slices"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// NIC is a usable NIC: an eligible one with an RDMA device and an active port.
type NIC struct {
	// Address is that of the function that carries the RDMA device: a virtual
	// function's own, not its physical function's.
	Address pci.Address
	// RDMA is the name of the RDMA device, "mlx5_0".
	RDMA string
	// Port is the first active port with RateGbps, the highest rate of an active port.
	Port     int
	RateGbps float64
	// LinkLayer is that of Port, "InfiniBand", "Ethernet" or "Unspecified".
	LinkLayer string
	// Active are the numbers of all active ports.
	Active []int
	// Virtual: a virtual function. Auxiliary: the RDMA device is on an auxiliary device
	// below the function (a subfunction).
	Virtual, Auxiliary bool
	// Registered is its place in the order of libibverbs, from 1 on; 0 where it is not known.
	// The caller sets it.
	Registered int
	// NUMA is the NUMA node, pci.None or pci.Unread where it is not known.
	NUMA int
	// Aside says why the NIC is not for GPUs: a virtual function beside its usable physical
	// one adds no bandwidth, and others have a role. It is "" for all others. It can be used
	// all the same.
	Aside string
	// OtherLayer: it is Aside for its link layer alone.
	OtherLayer bool

	index int // in the matrix
}

// Machine is a machine with its usable NICs.
type Machine struct {
	*topology.Matrix // of Node
	Node             *verdict.Node
	// NICs are the usable ones, by address and then name.
	NICs []*NIC
	// Unknown are the RDMA devices of eligible NICs that have no active port as far as could
	// be read, but have ports that could not be read.
	Unknown []string
	// Hidden are the RDMA devices of eligible NICs that this process cannot use: they are in
	// another network namespace, or have no device node here.
	Hidden []string
	// Incomplete: there may be GPUs and NICs that could not be read. The caller sets it.
	Incomplete bool
}

// NewMachine finds the usable NICs. visible tells whether this process can use an RDMA
// device: sysfs may list those of other network namespaces and containers.
func NewMachine(node *verdict.Node, visible func(rdma string) bool) *Machine {
	return newMachine(node, visible, func(pci.Address) []string { return nil })
}

// newMachine is NewMachine; foreign are a function's RDMA devices that sysfs hides from this process.
func newMachine(node *verdict.Node, visible func(rdma string) bool, foreign func(pci.Address) []string) *Machine {
	m := &node.Matrix
	machine := &Machine{Matrix: m, Node: node}
	forGPUs := false
	for i := range m.NICs {
		n := &m.NICs[i]
		if !n.Counts() {
			continue
		}
		if n.RDMA == nil {
			hidden := foreign(n.Function.Address)
			machine.Hidden = append(machine.Hidden, hidden...)
			forGPUs = forGPUs || n.Role == "" && len(hidden) == 0
			continue
		}
		if !writable(n.RDMA.Name) {
			continue
		}
		nic := &NIC{
			Address: n.Function.Address, RDMA: n.RDMA.Name, Virtual: n.Function.PhysFn != nil, Auxiliary: n.RDMA.Auxiliary,
			NUMA: n.Function.NearNUMA, index: i,
		}
		nic.usePorts(n.RDMA.Ports)
		forGPUs = forGPUs || n.Role == "" && visible(nic.RDMA)
		switch {
		case !visible(nic.RDMA):
			machine.Hidden = append(machine.Hidden, nic.RDMA)
		case len(nic.Active) > 0:
			machine.NICs = append(machine.NICs, nic)
		case !n.RDMA.PortsRead || slices.ContainsFunc(n.RDMA.Ports, unreadable):
			machine.Unknown = append(machine.Unknown, nic.RDMA)
		}
	}
	machine.setAside(forGPUs)
	machine.oneLayer()
	return machine
}

// setAside tells which of the usable NICs are not for GPUs. forGPUs: some are that this process sees,
// also without an active port or an RDMA device. Where it sees no other, roles do not count.
func (m *Machine) setAside(forGPUs bool) {
	for _, nic := range m.NICs {
		if physical := m.Physical(nic); physical != nil {
			nic.Aside = "it is a virtual function of " + physical.RDMA
		} else if role := m.Of(nic).Role; role != "" && forGPUs {
			nic.Aside = "it is for " + string(role) + " traffic"
		}
	}
}

// first is the first usable NIC of a kind, nil for none.
func (m *Machine) first(is func(*NIC) bool) *NIC {
	if i := slices.IndexFunc(m.NICs, is); i >= 0 {
		return m.NICs[i]
	}
	return nil
}

// Usable is the usable NIC of an index in the matrix, nil for none.
func (m *Machine) Usable(nic int) *NIC {
	return m.first(func(n *NIC) bool { return n.index == nic })
}

// Find returns the usable NIC with an RDMA device of this name, nil for none.
func (m *Machine) Find(rdma string) *NIC {
	return m.first(func(n *NIC) bool { return n.RDMA == rdma })
}

// Of is the NIC in the matrix.
func (m *Machine) Of(nic *NIC) *topology.NIC { return &m.Matrix.NICs[nic.index] }

// Physical is the usable NIC that a NIC is a virtual function of; nil for none.
func (m *Machine) Physical(nic *NIC) *NIC {
	f := m.Of(nic).Function
	return m.first(func(n *NIC) bool { return f.PhysFn != nil && n.Address == *f.PhysFn })
}

func unreadable(p rdma.Port) bool { return p.State == "" || p.State == "ACTIVE" && p.LinkLayer == "" }

// writable reports whether a name needs no quoting in any form: a list, beside a port, JSON,
// a shell.
func writable(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	return name != "" && strings.Trim(name, letters) == ""
}

// usePorts takes over the active ports and chooses one.
func (n *NIC) usePorts(ports []rdma.Port) {
	for _, p := range ports { // by number
		if !p.Active() {
			continue
		}
		n.Active = append(n.Active, p.Number)
		if len(n.Active) == 1 || p.RateGbps > n.RateGbps {
			n.Port, n.RateGbps, n.LinkLayer = p.Number, p.RateGbps, p.LinkLayer
		}
	}
}

// Choice is a GPU and the NICs that it should use.
type Choice struct {
	GPU *topology.GPU
	// Near are the NICs that the GPU should use where it can use several, by address: those
	// at its nearest level with the highest rate. Empty where no NIC is usable.
	Near []*NIC
	// NIC is the one of them that it should use where it can use one; nil without any.
	NIC *NIC
	// Level is that of the pair; topology.Unknown without a NIC, and where it is not known.
	Level topology.Level

	// Index is that of the GPU in the matrix.
	Index int
}

// Assignment is a machine with one choice for each of some GPUs.
type Assignment struct {
	*Machine
	// Choices are in the order in which a process counts the GPUs: the first is its GPU 0.
	Choices []Choice

	// whole has the choices of the GPUs that are not in Choices too; see Only.
	whole []Choice
}

// EveryGPU are the indexes of all GPUs in the matrix.
func (m *Machine) EveryGPU() []int {
	gpus := make([]int, len(m.GPUs))
	for i := range gpus {
		gpus[i] = i
	}
	return gpus
}

// Assign chooses among the NICs that allowed accepts, nil for those that are for GPUs. gpus
// are indexes in the matrix, in the order in which a process counts them. GPUs choose in the
// order of their addresses. Each gets, of the NICs near it, that on the card with the fewest
// GPUs so far, then the one with the fewest GPUs, then a physical rather than a virtual
// function, then the lowest address.
func (m *Machine) Assign(gpus []int, allowed func(*NIC) bool) *Assignment {
	if allowed == nil {
		allowed = forGPUs
	}
	result := &Assignment{Machine: m, Choices: make([]Choice, len(gpus))}
	inTurn := make([]*Choice, len(gpus))
	for i, gpu := range gpus {
		result.Choices[i] = Choice{GPU: &m.GPUs[gpu], Index: gpu, Near: m.near(gpu, allowed)}
		inTurn[i] = &result.Choices[i]
	}
	result.whole = result.Choices
	slices.SortFunc(inTurn, func(a, b *Choice) int { return a.Index - b.Index })
	users, cards := map[*NIC]int{}, map[pci.Address]int{}
	for _, c := range inTurn {
		if len(c.Near) == 0 {
			continue
		}
		c.NIC = slices.MinFunc(c.Near, func(a, b *NIC) int {
			return cmp.Or(cmp.Compare(cards[m.CardOf(a)], cards[m.CardOf(b)]), cmp.Compare(users[a], users[b]),
				cmp.Compare(number(a.Virtual), number(b.Virtual)))
		})
		c.Level = m.Level(*c, c.NIC)
		users[c.NIC]++
		cards[m.CardOf(c.NIC)]++
	}
	return result
}

// CardOf is the PCI device that a NIC belongs to, as topology.Matrix.Card has it.
func (m *Machine) CardOf(nic *NIC) pci.Address { return m.Card(nic.index) }

// near are the NICs near a GPU, by address, among those that are allowed.
func (m *Machine) near(gpu int, allowed func(*NIC) bool) []*NIC {
	at := map[int]*NIC{}
	for _, nic := range m.NICs {
		if allowed(nic) {
			at[nic.index] = nic
		}
	}
	var near []*NIC
	fastest := 0.0
	for _, nic := range m.NearAmong(gpu, func(i int) bool { return at[i] != nil }).NICs {
		near, fastest = append(near, at[nic]), max(fastest, at[nic].RateGbps)
	}
	return slices.DeleteFunc(near, func(nic *NIC) bool { return nic.RateGbps < fastest })
}

// Only returns the map of some of the GPUs, indexes in the matrix, in the order in which a
// process counts them. Each keeps its NIC, so that processes that ask for one GPU each do
// not all choose the same NIC. All of them must have a choice.
func (m *Assignment) Only(gpus []int) *Assignment {
	result := &Assignment{Machine: m.Machine, Choices: make([]Choice, len(gpus)), whole: m.whole}
	for i, gpu := range gpus {
		result.Choices[i] = m.Choices[slices.IndexFunc(m.Choices, func(c Choice) bool { return c.Index == gpu })]
	}
	return result
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Pair is that of the GPU of a choice and a usable NIC.
func (m *Machine) Pair(c Choice, nic *NIC) topology.Pair { return m.PairsOf(c.Index)[nic.index] }

// Level returns the level between the GPU of a choice and a usable NIC.
func (m *Machine) Level(c Choice, nic *NIC) topology.Level { return m.Pair(c, nic).Level }

// Within reports whether every GPU has a usable NIC at this level or a nearer one. With
// topology.Unknown as the limit any level will do. It is Unknown where a level that matters
// is, and where a NIC that could not be read may be nearer.
func (m *Assignment) Within(limit topology.Level) tristate.State {
	state := tristate.True
	for _, c := range m.Choices {
		state = tristate.And(state, m.within(c, limit))
	}
	return state
}

func (m *Assignment) within(c Choice, limit topology.Level) tristate.State {
	unknown := func(nic *NIC) bool { return m.Level(c, nic) == topology.Unknown }
	switch {
	case c.NIC != nil && (limit == topology.Unknown || c.Level != topology.Unknown && c.Level <= limit):
		return tristate.True
	case m.Incomplete:
		return tristate.Unknown
	case limit != topology.Unknown && c.GPU.Near(topology.Usable).Level > limit: // whether that NIC has a port or not
		return tristate.False
	case slices.ContainsFunc(m.NICs, unknown), len(m.Unknown) > 0:
		return tristate.Unknown
	}
	return tristate.False
}

// Near are the NICs near the GPUs, in the order of the addresses of these GPUs, each once.
func (m *Assignment) Near() []*NIC {
	var near []*NIC
	inTurn := slices.SortedFunc(slices.Values(m.Choices), func(a, b Choice) int { return a.Index - b.Index })
	for _, c := range inTurn {
		for _, nic := range c.Near {
			if !slices.Contains(near, nic) {
				near = append(near, nic)
			}
		}
	}
	return near
}

// Used are the NICs that are chosen where each GPU can use one, by address, each once.
func (m *Assignment) Used() []*NIC {
	return slices.DeleteFunc(slices.Clone(m.NICs), func(n *NIC) bool { return m.Users(n) == 0 })
}

// OfOthers reports whether a NIC is that of a GPU of the machine which is not in Choices.
func (m *Assignment) OfOthers(n *NIC) bool { return len(usersOf(m.whole, n)) > m.Users(n) }

// Users is how many of the GPUs in Choices use a NIC.
func (m *Assignment) Users(n *NIC) int { return len(usersOf(m.Choices, n)) }

func usersOf(choices []Choice, n *NIC) (users []string) {
	for _, c := range choices {
		if c.NIC == n {
			users = append(users, c.GPU.Address.String())
		}
	}
	return users
}
