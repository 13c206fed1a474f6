package assign_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/rooms/assign"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/test/machine"
	"gdr-features/test/sample"
	"gdr-features/test/testsize"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

func all(string) bool { return true }

// second is another implementation of the choice: for each GPU it lists all candidates, keeps
// those at the nearest level with the highest rate, and sorts these by a text.
func second(m *topology.Matrix) []string {
	type candidate struct {
		nic         *topology.NIC
		index, port int
		rate        float64
	}
	var usable []candidate
	for i := range m.NICs {
		n := &m.NICs[i]
		c := candidate{nic: n, index: i}
		if n.Counts() && n.RDMA != nil {
			for _, p := range n.RDMA.Ports {
				if p.Active() && (c.port == 0 || p.RateGbps > c.rate) {
					c.port, c.rate = p.Number, p.RateGbps
				}
			}
		}
		if c.port > 0 {
			usable = append(usable, c)
		}
	}
	physical := slices.DeleteFunc(slices.Clone(usable), func(c candidate) bool {
		of := c.nic.Function.PhysFn
		return of != nil && slices.ContainsFunc(usable, func(o candidate) bool { return o.nic.Function.Address == *of })
	})
	forGPUs := slices.DeleteFunc(slices.Clone(physical), func(c candidate) bool { return c.nic.Role != "" })
	if len(forGPUs) == 0 {
		forGPUs = physical
	}
	var out []string
	cards, users := map[string]int{}, map[string]int{}
	for g := range m.GPUs {
		type ranked struct {
			candidate
			level int
			name  topology.Level
		}
		var near []ranked
		for _, c := range forGPUs {
			for _, p := range m.Pairs {
				if p.GPU == g && p.NIC == c.index {
					near = append(near, ranked{c, strings.Index("PIX PXB PHB NODE SYS ?", orUnknown(p.Level.String())), p.Level})
				}
			}
		}
		if len(near) == 0 {
			out = append(out, m.GPUs[g].Address.String()+" none")
			continue
		}
		sort.SliceStable(near, func(i, j int) bool {
			a, b := near[i], near[j]
			return a.level < b.level || a.level == b.level && a.rate > b.rate
		})
		level, rate := near[0].level, near[0].rate
		near = slices.DeleteFunc(near, func(r ranked) bool { return r.level != level || r.rate != rate })
		card := func(r ranked) string {
			address := r.nic.Function.Address
			if of := r.nic.Function.PhysFn; of != nil {
				address = *of
			}
			text, _, _ := strings.Cut(address.String(), ".")
			return text
		}
		key := func(r ranked) string {
			virtual := r.nic.Function.PhysFn != nil
			return fmt.Sprintf("%04d %04d %-5v %09x%s", cards[card(r)], users[r.nic.RDMA.Name], virtual, r.nic.Function.Address.Domain, r.nic.Function.Address.String()[4:])
		}
		sort.SliceStable(near, func(i, j int) bool { return key(near[i]) < key(near[j]) })
		best := near[0]
		out = append(out, fmt.Sprintf("%v %s:%d %v", m.GPUs[g].Address, best.nic.RDMA.Name, best.port, best.name))
		cards[card(best)]++
		users[best.nic.RDMA.Name]++
	}
	return out
}

func orUnknown(s string) string {
	if s == "" {
		return "?"
	}
	return s
}

func first(m *assign.Assignment) []string {
	var out []string
	for _, c := range m.Choices {
		text := c.GPU.Address.String() + " none"
		if c.NIC != nil {
			text = fmt.Sprintf("%v %s:%d %v", c.GPU.Address, c.NIC.RDMA, c.NIC.Port, c.Level)
		}
		out = append(out, text)
	}
	return out
}

// TestAssignOnMachines compares the choice with a second implementation, on every machine in
// every state of its NICs and their ports.
func TestAssignOnMachines(t *testing.T) {
	for _, m := range testsize.Share(machine.All(t, "../../../testdata/machines")) {
		if m.Name == twoLayers { // TestOneLayer
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			ready := m.Ready()
			asReady := func(s machine.State) bool {
				return s.NICDriver == ready.NICDriver && s.NoRDMA == ready.NoRDMA && s.Port == ready.Port
			}
			states := append([]machine.State{ready}, slices.DeleteFunc(m.States(), asReady)...)
			for s, dir := range m.Trees(t, testsize.Few(states)) {
				r := sample.Read(t, dir, nil)
				here := assign.NewMachine(r, all)
				got := here.Assign(here.EveryGPU(), nil)
				if diff := cmp.Diff(second(&r.Matrix), first(got)); diff != "" {
					t.Errorf("%s (-second +first):\n%s", s.Name, diff)
				}
			}
		})
	}
}

// port is an active port.
func port(number int, rate float64) rdma.Port {
	return rdma.Port{Number: number, State: "ACTIVE", LinkLayer: "InfiniBand", RateGbps: rate}
}

// built is a matrix of GPUs and NICs with the levels of their pairs, a line for each GPU.
func built(nics []topology.NIC, levels ...[]topology.Level) *verdict.Node {
	node := &verdict.Node{Matrix: topology.Matrix{NICs: nics}}
	m := &node.Matrix
	for i := range nics {
		n := &nics[i]
		if n.Function == nil {
			n.Function = &pci.Function{}
		}
		n.Function.NIC, n.Function.Eligible = &family.NIC{}, pci.Counts
		if n.Function.Address.Bus == 0 {
			n.Function.Address.Bus = uint8(0x40 + i)
		}
	}
	for g, row := range levels {
		m.GPUs = append(m.GPUs, topology.GPU{Function: &pci.Function{Address: pci.Address{Bus: uint8(g)}, Eligible: pci.Counts}})
		for n, level := range row {
			m.Pairs = append(m.Pairs, topology.Pair{GPU: g, NIC: n, Level: level})
		}
	}
	return node
}

func nic(name string, ports ...rdma.Port) topology.NIC {
	return topology.NIC{RDMA: &rdma.Device{Name: name, PortsRead: true, Ports: ports}}
}

// TestWeights: each weight decides only where all before it are equal.
func TestWeights(t *testing.T) {
	const (
		pix, pxb, sys, unknown = topology.PIX, topology.PXB, topology.SYS, topology.Unknown
	)
	virtual := func(rate float64) topology.NIC {
		v := nic("v", port(1, rate))
		v.Function = &pci.Function{PhysFn: &pci.Address{Bus: 0x99}}
		return v
	}
	at := func(name string, bus, function uint8) topology.NIC {
		n := nic(name, port(1, 100))
		n.Function = &pci.Function{Address: pci.Address{Bus: bus, Function: function}}
		return n
	}
	of := func(name string, bus uint8) topology.NIC {
		v := nic(name, port(1, 100))
		v.Function = &pci.Function{PhysFn: &pci.Address{Bus: bus}}
		return v
	}
	tests := []struct {
		name   string
		nics   []topology.NIC
		levels [][]topology.Level
		gpus   []int
		want   string
	}{
		{"the lower address", []topology.NIC{nic("a", port(1, 100)), nic("b", port(1, 100))}, [][]topology.Level{{pix, pix}}, []int{0}, "a:1"},
		{"the higher rate before the address", []topology.NIC{nic("a", port(1, 100)), nic("b", port(1, 200))}, [][]topology.Level{{pix, pix}}, []int{0}, "b:1"},
		{"the rate before a physical function", []topology.NIC{virtual(400), nic("b", port(1, 100))}, [][]topology.Level{{pix, pix}}, []int{0}, "v:1"},
		{"a physical function before the address", []topology.NIC{virtual(100), nic("b", port(1, 100))}, [][]topology.Level{{pix, pix}}, []int{0}, "b:1"},
		{"fewest GPUs before a physical function", []topology.NIC{nic("a", port(1, 100)), virtual(100)}, [][]topology.Level{{pix, pix}, {pix, pix}}, []int{0, 1}, "a:1 v:1"},
		{"cards before ports", []topology.NIC{at("a", 0x50, 0), at("b", 0x50, 1), at("c", 0x51, 0), at("d", 0x51, 1)}, [][]topology.Level{{pix, pix, pix, pix}, {pix, pix, pix, pix}, {pix, pix, pix, pix}}, []int{0, 1, 2}, "a:1 c:1 b:1"},
		{"virtual functions are of the physical one's card", []topology.NIC{of("a", 0x70), of("b", 0x70), of("c", 0x71)}, [][]topology.Level{{pix, pix, pix}, {pix, pix, pix}}, []int{0, 1}, "a:1 c:1"},
		{"a virtual function adds nothing to its physical one", []topology.NIC{at("a", 0x70, 0), of("b", 0x70)}, [][]topology.Level{{pix, pix}, {pix, pix}}, []int{0, 1}, "a:1 a:1"},
		{"the level before all", []topology.NIC{nic("a", port(1, 100)), nic("b", port(1, 400))}, [][]topology.Level{{pix, pxb}, {pix, pxb}}, []int{0, 1}, "a:1 a:1"},
		{"an unknown level last", []topology.NIC{nic("a", port(1, 100)), nic("b", port(1, 100))}, [][]topology.Level{{unknown, sys}}, []int{0}, "b:1"},
		{"listed as asked", []topology.NIC{nic("a", port(1, 100)), nic("b", port(1, 100))}, [][]topology.Level{{pix, pix}, {pix, pix}}, []int{1, 0}, "b:1 a:1"},
		{"GPUs that are not asked for keep theirs", []topology.NIC{nic("a", port(1, 100)), nic("b", port(1, 100))}, [][]topology.Level{{pix, pix}, {pix, pix}}, []int{1}, "b:1"},
		{"the first port of the highest rate", []topology.NIC{nic("a", port(1, 100), port(2, 200), port(3, 200))}, [][]topology.Level{{pix}}, []int{0}, "a:2"},
		{"no port is active", []topology.NIC{nic("a", rdma.Port{Number: 1, State: "DOWN", LinkLayer: "InfiniBand"})}, [][]topology.Level{{pix}}, []int{0}, "none"},
		{"a name that ends a list entry", []topology.NIC{nic("a,b", port(1, 100))}, [][]topology.Level{{pix}}, []int{0}, "none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			here := assign.NewMachine(built(tt.nics, tt.levels...), all)
			m := here.Assign(here.EveryGPU(), nil).Only(tt.gpus)
			var got []string
			for _, c := range m.Choices {
				text := "none"
				if c.NIC != nil {
					text = fmt.Sprintf("%s:%d", c.NIC.RDMA, c.NIC.Port)
				}
				got = append(got, text)
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}

// TestNotes names each thing that a machine cannot give.
func TestNotes(t *testing.T) {
	down := nic("down", rdma.Port{Number: 1, State: "DOWN", LinkLayer: "InfiniBand"})
	unread := nic("unread", rdma.Port{Number: 1, LinkLayer: "InfiniBand"})
	m := built([]topology.NIC{nic("a", port(1, 100)), nic("b", port(1, 100)), down, unread},
		[]topology.Level{topology.SYS, topology.SYS, topology.PIX, topology.SYS},
		[]topology.Level{topology.PXB, topology.SYS, topology.PXB, topology.SYS},
		[]topology.Level{topology.PIX, topology.SYS, topology.SYS, topology.SYS},
		[]topology.Level{topology.Unknown, topology.Unknown, topology.Unknown, topology.Unknown})
	m.Matrix.GPUs[2].Eligible = pci.OtherProduct
	got := assign.NewMachine(m, all).Assign([]int{0, 1, 2, 3}, nil).Notes()
	want := []string{
		"The usable NIC nearest to the GPU 0000:00:00.0 is at SYS.",
		"The GPU 0000:00:00.0 has a nearer NIC, down at PIX, which cannot be used: it has no RDMA device with an active port here.",
		"The GPU 0000:02:00.0 cannot do GPUDirect RDMA: its data goes through host memory.",
		"The level between the GPU 0000:03:00.0 and its NIC b is unknown.",
		"The GPUs 0000:00:00.0, 0000:01:00.0, 0000:02:00.0 share the NIC a.",
		"The NIC unread is not used, because its ports could not be read.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	one := assign.NewMachine(m, all).Assign([]int{0, 1, 2, 3}, nil).Only([]int{2})
	want = []string{want[2], want[4], want[5]}
	if diff := cmp.Diff(want, one.Notes()); diff != "" {
		t.Errorf("of one GPU (-want +got):\n%s", diff)
	}
	hidden := assign.NewMachine(m, func(string) bool { return false }).Assign([]int{0}, nil)
	if notes := strings.Join(hidden.Notes(), "\n"); !strings.Contains(notes, "has no usable NIC") || hidden.Within(topology.Unknown) != tristate.False {
		t.Errorf("no device is visible: %q, within: %v", notes, hidden.Within(topology.Unknown))
	}
}

// TestWithin: what is farther than the limit is not within it, unless something nearer may not
// be known.
func TestWithin(t *testing.T) {
	const yes, no, unknown = tristate.True, tristate.False, tristate.Unknown
	unread := nic("unread", rdma.Port{Number: 1, LinkLayer: "InfiniBand"})
	a, b := nic("a", port(1, 100)), nic("b", port(1, 100))
	for _, tt := range []struct {
		name       string
		nics       []topology.NIC
		levels     []topology.Level
		limit      topology.Level
		incomplete bool
		want       tristate.State
	}{
		{"near enough", []topology.NIC{a}, []topology.Level{topology.PXB}, topology.PXB, false, yes},
		{"near enough, and another unknown", []topology.NIC{a, b}, []topology.Level{topology.PXB, topology.Unknown}, topology.PXB, false, yes},
		{"too far", []topology.NIC{a}, []topology.Level{topology.PHB}, topology.PXB, false, no},
		{"too far, and another unknown", []topology.NIC{a, b}, []topology.Level{topology.PHB, topology.Unknown}, topology.PXB, false, unknown},
		{"too far, and another with unread ports", []topology.NIC{a, unread}, []topology.Level{topology.PHB, topology.PIX}, topology.PXB, false, unknown},
		{"too far, and not all was read", []topology.NIC{a}, []topology.Level{topology.PHB}, topology.PXB, true, unknown},
		{"unknown", []topology.NIC{a}, []topology.Level{topology.Unknown}, topology.SYS, false, unknown},
		{"no limit", []topology.NIC{a}, []topology.Level{topology.SYS}, topology.Unknown, false, yes},
		{"unknown, no limit", []topology.NIC{a}, []topology.Level{topology.Unknown}, topology.Unknown, false, yes},
		{"no NIC", nil, nil, topology.SYS, false, no},
		{"no NIC, no limit", nil, nil, topology.Unknown, false, no},
		{"no NIC that was read", nil, nil, topology.Unknown, true, unknown},
	} {
		machine := assign.NewMachine(built(tt.nics, tt.levels), all)
		machine.Incomplete = tt.incomplete
		if got := machine.Assign([]int{0}, nil).Within(tt.limit); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestWithinUnusable: a NIC at the limit whose port cannot be used, or was not read.
func TestWithinUnusable(t *testing.T) {
	for state, want := range map[string]map[topology.Level]tristate.State{
		"ACTIVE": {topology.PIX: tristate.True, topology.PXB: tristate.True},
		"DOWN":   {topology.PIX: tristate.False, topology.PXB: tristate.False},
		"":       {topology.PIX: tristate.Unknown, topology.PXB: tristate.Unknown},
	} {
		n := sample.Ready()
		n.Port().State = state
		here := assign.NewMachine(n.Judge(), all)
		for limit, within := range want {
			if got := here.Assign(here.EveryGPU(), nil).Within(limit); got != within {
				t.Errorf("port %q: within %v is %v, want %v", state, limit, got, within)
			}
		}
	}
	n := sample.Ready()
	n.Port().State, n.NIC().Bridges = "", nil // another root port of the same NUMA node
	here := assign.NewMachine(n.Judge(), all)
	if got := here.Assign(here.EveryGPU(), nil).Within(topology.PIX); got != tristate.False {
		t.Errorf("too far, whether it has a port or not: %v", got)
	}
}

// TestNearInNCCL: the NICs near some GPU are those that NCCL rates best for some GPU. NICs that
// are left out, and slower ones, do not count.
func TestNearInNCCL(t *testing.T) {
	except := map[string]string{
		"numa-unknown": "the level of one NIC is unknown, and NCCL takes the NUMA node to be 0",
		"oke-gb200-v3": "NCCL rates the ports that have a data-direct function nearer; the cloud's own list has both ports of each card",
	}
	for _, m := range testsize.Share(machine.All(t, "../../../testdata/machines")) {
		t.Run(m.Name, func(t *testing.T) {
			r := sample.Read(t, m.Tree(t, m.Ready()), nil)
			here := assign.NewMachine(r, all)
			near, best := map[string]bool{}, map[string]bool{}
			for _, c := range here.Assign(here.EveryGPU(), nil).Choices {
				if !c.GPU.Counts() {
					continue
				}
				rated := slices.DeleteFunc(slices.Clone(here.NICs), func(n *assign.NIC) bool { return n.Aside != "" })
				if slices.ContainsFunc(rated, func(n *assign.NIC) bool { return here.Pair(c, n).NCCL == topology.Unknown }) {
					continue
				}
				rank := func(a, b *assign.NIC) int { return int(here.Pair(c, a).NCCL) - int(here.Pair(c, b).NCCL) }
				fastest := 0.0
				for _, n := range rated {
					if rank(n, slices.MinFunc(rated, rank)) == 0 {
						fastest = max(fastest, n.RateGbps)
					}
				}
				for _, n := range rated {
					if rank(n, slices.MinFunc(rated, rank)) == 0 && n.RateGbps == fastest {
						best[n.RDMA] = true
					}
				}
				for _, n := range c.Near {
					near[n.RDMA] = true
				}
			}
			if diff := cmp.Diff(best, near); except[m.Name] != "" {
				if diff == "" {
					t.Errorf("no difference, though %s", except[m.Name])
				}
			} else if diff != "" {
				t.Errorf("(-best in NCCL +near):\n%s", diff)
			}
		})
	}
}
