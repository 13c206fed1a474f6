package assign_test

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/internal/assign"
	"gdr-features/internal/report"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

func collect(t *testing.T, dir string) report.Report {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	return report.Collect(context.Background(), fs, report.ForEnv)
}

func all(string) bool { return true }

// second is another implementation of the choice: it writes each NIC of each GPU as a text
// whose order is the order of weights, and takes the first.
func second(m *topology.Matrix) []string {
	users := map[string]int{}
	var out []string
	for g := range m.GPUs {
		var ranked []string
		for _, p := range m.Pairs {
			if p.GPU != g || !m.NICs[p.NIC].Eligible || m.NICs[p.NIC].RDMA == nil {
				continue
			}
			n := m.NICs[p.NIC]
			port, rate := 0, 0.0
			for i := len(n.RDMA.Ports) - 1; i >= 0; i-- {
				if q := n.RDMA.Ports[i]; q.Active() && q.RateGbps >= rate {
					port, rate = q.Number, q.RateGbps
				}
			}
			if port == 0 {
				continue
			}
			level := strings.Index("PIX PXB PHB NODE SYS ?", orUnknown(p.Level.String()))
			virtual := 0
			if n.Function.PhysFn != nil {
				virtual = 1
			}
			ranked = append(ranked, fmt.Sprintf("%02d %04d %d %09.1f %09x%s %s %s:%d %v",
				level, users[n.RDMA.Name], virtual, 1e6-rate, n.Function.Address.Domain, n.Function.Address.String()[4:], n.RDMA.Name, n.RDMA.Name, port, p.Level))
		}
		sort.Strings(ranked)
		if len(ranked) == 0 {
			out = append(out, m.GPUs[g].Address.String()+" none")
			continue
		}
		parts := strings.Split(ranked[0], " ")
		out = append(out, m.GPUs[g].Address.String()+" "+parts[6]+" "+parts[7])
		users[parts[5]]++
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
// every state.
func TestAssignOnMachines(t *testing.T) {
	for _, m := range testsize.Share(machine.All(t, "../../testdata/machines")) {
		t.Run(m.Name, func(t *testing.T) {
			for s, dir := range m.Trees(t, testsize.Few(m.States())) {
				r := collect(t, dir)
				here := assign.NewMachine(&r.Node, all)
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
		n.Eligible = true
		if n.Function == nil {
			n.Function = &pci.Function{}
		}
		n.Function.Address.Bus = uint8(0x40 + i)
	}
	for g, row := range levels {
		m.GPUs = append(m.GPUs, topology.GPU{Function: &pci.Function{Address: pci.Address{Bus: uint8(g)}}, Eligible: true})
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
	virtual := nic("v", port(1, 400))
	virtual.Function = &pci.Function{PhysFn: &pci.Address{Bus: 0x99}}
	tests := []struct {
		name   string
		nics   []topology.NIC
		levels [][]topology.Level
		gpus   []int
		want   string
	}{
		{"the lower address", []topology.NIC{nic("a", port(1, 100)), nic("b", port(1, 100))}, [][]topology.Level{{pix, pix}}, []int{0}, "a:1"},
		{"the higher rate before the address", []topology.NIC{nic("a", port(1, 100)), nic("b", port(1, 200))}, [][]topology.Level{{pix, pix}}, []int{0}, "b:1"},
		{"a physical function before the rate", []topology.NIC{virtual, nic("b", port(1, 100))}, [][]topology.Level{{pix, pix}}, []int{0}, "b:1"},
		{"fewest GPUs before a physical function", []topology.NIC{nic("a", port(1, 100)), virtual}, [][]topology.Level{{pix, pix}, {pix, pix}}, []int{0, 1}, "a:1 v:1"},
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
	m.Matrix.GPUs[2].Eligible = false
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
