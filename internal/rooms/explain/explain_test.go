package explain_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/explain"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

const machinesDir = "../../../testdata/machines"

// everyMachine reads machines in some states and hands the reports on.
func everyMachine(t *testing.T, machines []*machine.Machine, states func(i int, m *machine.Machine) []machine.State, see func(t *testing.T, r *report.Report)) {
	t.Helper()
	for i, m := range machines {
		for s, dir := range m.Trees(t, states(i, m)) {
			t.Run(m.Name+"/"+s.Name, func(t *testing.T) { see(t, read(t, dir)) })
		}
	}
}

func ready(_ int, m *machine.Machine) []machine.State { return m.States()[:1] }

func collect(t *testing.T, m *machine.Machine, s machine.State) *report.Report {
	t.Helper()
	return read(t, m.Tree(t, s))
}

func read(t *testing.T, dir string) *report.Report {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	r := report.Collect(t.Context(), fs, report.ForTopo)
	return &r
}

// inTurn are all states, or in a short run some, which are others on the next machine.
func inTurn(i int, m *machine.Machine) []machine.State { return testsize.FewInTurn(i, m.States()) }

// brokenFor is the link that each reason is about.
var brokenFor = map[verdict.Reason][]string{
	verdict.NoGPU:              {"hardware"},
	verdict.GPUUnsupported:     {"hardware"},
	verdict.NoNIC:              {"hardware"},
	verdict.NICUnsupported:     {"hardware"},
	verdict.PlatformForbidsP2P: {"hardware"},
	verdict.GPUPassthrough:     {"GPU driver"},
	verdict.GPUDriverNotLoaded: {"GPU driver"},
	verdict.NICDriverNotLoaded: {"NIC driver"},
	verdict.NoRDMADevice:       {"RDMA device"},
	verdict.NoActivePort:       {"port"},
	// The interface may be there for another vendor's NICs alone.
	verdict.PeermemNotLoaded: {"nvidia_peermem", "peer memory", "PeerDirect API"},
	verdict.NoPeerMemoryPath: {"PeerDirect API", "nvidia_peermem", "peer memory"},
}

// TestFirstBrokenLink: the chain breaks where the verdict says, and nowhere on a
// node that is ready.
func TestFirstBrokenLink(t *testing.T) {
	seen := map[verdict.Reason]bool{}
	everyMachine(t, testsize.Share(machine.All(t, machinesDir)), inTurn, func(t *testing.T, r *report.Report) {
		reason := r.Verdict.Reason
		seen[reason] = true
		links := explain.Stack(&r.Node, r.Findings)
		var marked []explain.Step
		broken := "" // the first in the order of the chain that is needed
		memory := links[len(links)-1]
		for _, l := range links {
			if l.First {
				marked = append(marked, l)
			}
			if broken == "" && l.State == tristate.False && (!l.Either || memory.State == tristate.False) {
				broken = l.Name
			}
			if l.Detail == "" {
				t.Errorf("%s: nothing found", l.Name)
			}
			for _, w := range l.Waits {
				if !slices.ContainsFunc(links, func(o explain.Step) bool { return strings.Contains(w, o.Name) }) {
					t.Errorf("%s waits for %s, which is not in the chain", l.Name, w)
				}
			}
		}
		if r.Verdict.Ready == tristate.True {
			if len(marked) != 0 || broken != "" {
				t.Errorf("ready, and broken at %q, marked %v", broken, marked)
			}
			return
		}
		if len(marked) != 1 || marked[0].Reason != reason {
			t.Fatalf("%s: marked %+v", reason, marked)
		}
		if reason == verdict.Unreadable || reason == verdict.NICNotJudged || r.Verdict.Doubted() {
			if marked[0].State != tristate.Unknown || broken != "" {
				t.Errorf("marked %+v, broken %q", marked[0], broken)
			}
			return
		}
		if !slices.Contains(brokenFor[reason], marked[0].Name) || marked[0].Name != broken {
			t.Errorf("%s: marked %q, first broken %q", reason, marked[0].Name, broken)
		}
	})
	if testing.Short() || testsize.Partial() { // not every machine in every state
		return
	}
	for reason := range brokenFor {
		if !seen[reason] {
			t.Errorf("no machine in any state shows %s", reason)
		}
	}
	if !seen[verdict.Unreadable] || !seen[""] {
		t.Error("nothing unreadable, or nothing ready")
	}
}

// TestChainGoesByName: the chain does not depend on the order of the verdict's
// steps, and a missing step is unknown.
func TestChainGoesByName(t *testing.T) {
	m := machine.All(t, machinesDir)[0]
	for s, dir := range m.Trees(t, m.States()) {
		r := read(t, dir)
		want := explain.Stack(&r.Node, r.Findings)
		slices.Reverse(r.Verdict.Steps)
		if diff := cmp.Diff(want, explain.Stack(&r.Node, r.Findings)); diff != "" {
			t.Errorf("%s: with the steps in another order (-want +got):\n%s", s.Name, diff)
		}
		r.Verdict.Steps = nil
		for _, l := range explain.Stack(&r.Node, r.Findings) {
			if !l.Either && l.State != tristate.Unknown {
				t.Errorf("%s: without steps %s is %v", s.Name, l.Name, l.State)
			}
		}
	}
}

// shape counts the hops of a path.
type shape struct{ up, down, turns, buses, cpus int }

func shapeOf(hops []explain.Hop) shape {
	var s shape
	for _, h := range hops[1 : len(hops)-1] {
		switch {
		case h.Turn && h.PCI:
			s.turns++
		case h.Role == "host bridge":
			s.buses++
		case h.Role == "CPU":
			s.cpus++
		case s.turns+s.buses == 0:
			s.up++
		default:
			s.down++
		}
	}
	return s
}

// levelOf returns the level by the definition, from the hops alone.
func (s shape) levelOf() topology.Level {
	switch {
	case s.turns == 1 && s.up <= 1 && s.down <= 1:
		return topology.PIX
	case s.turns == 1:
		return topology.PXB
	case s.buses == 1 && s.cpus == 0:
		return topology.PHB
	case s.buses == 2 && s.cpus == 1:
		return topology.NODE
	case s.buses == 2 && s.cpus == 2:
		return topology.SYS
	}
	return topology.Unknown
}

// TestWays: the hops of every path give the level that topo prints, and every rating
// has its reason.
func TestWays(t *testing.T) {
	count := 0
	everyMachine(t, testsize.Share(machine.All(t, machinesDir)), ready, func(t *testing.T, r *report.Report) {
		for _, pair := range r.Matrix.Pairs {
			p := explain.PathOf(&r.Node, pair.GPU, pair.NIC)
			name := explain.GPUName(p.GPU) + " " + explain.NICName(&r.Matrix.NICs[p.NIC])
			if p.Level != pair.Level || p.NCCL != pair.NCCL {
				t.Errorf("%s: %v, %v; topo says %v, %v", name, p.Level, p.NCCL, pair.Level, pair.NCCL)
			}
			if p.Why == "" || p.NCCLWhy == "" || p.DefaultWhy == "" {
				t.Errorf("%s: a reason is missing: %+v", name, p)
			}
			if len(p.Hops) == 0 || pair.Level == topology.Unknown {
				continue
			}
			count++
			if got := shapeOf(p.Hops).levelOf(); got != p.Level {
				t.Errorf("%s: the stations make %v, topo says %v: %+v", name, got, p.Level, p.Hops)
			}
		}
	})
	if count < 600 && !testsize.Partial() {
		t.Errorf("only %d ways", count)
	}
}

// TestNearest: what is listed for a GPU are its nearest NICs of those for GPUs, at their level.
func TestNearest(t *testing.T) {
	everyMachine(t, testsize.Share(machine.All(t, machinesDir)), ready, func(t *testing.T, r *report.Report) {
		list := explain.NearestNICs(&r.Node)
		if len(list) != len(r.Matrix.GPUs) {
			t.Fatalf("%d of %d GPUs", len(list), len(r.Matrix.GPUs))
		}
		for _, n := range list {
			gpu := r.Matrix.GPUs[n.GPU]
			if near := gpu.Near(topology.Usable); n.Level != near.Level || !slices.Equal(n.NICs, near.NICs) {
				t.Errorf("GPU%d: %v %v, the matrix has %v %v", n.GPU, n.Level, n.NICs, near.Level, near.NICs)
			}
			for _, i := range n.NICs {
				if p := r.Matrix.PairsOf(n.GPU)[i]; p.Level != n.Level {
					t.Errorf("GPU%d: NIC %d is at %v", n.GPU, i, p.Level)
				}
			}
		}
	})
}
