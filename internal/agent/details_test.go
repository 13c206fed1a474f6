package agent

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gdr-features/internal/finding"
	"gdr-features/internal/publish"
	"gdr-features/internal/report"
	"gdr-features/source/kmod"
	"gdr-features/source/rdma"
	"gdr-features/source/verbs"
	"gdr-features/topology"
	"gdr-features/verdict"
)

// portIs is a report of a machine with one port in a state.
func portIs(state string) report.Report {
	d := &rdma.Device{Name: "mlx5_0", Ports: []rdma.Port{{Number: 1, State: state}}}
	return report.Report{
		Node:  verdict.Node{PCIRead: true, Matrix: topology.Matrix{NICs: []topology.NIC{{RDMA: d}}}},
		Fresh: report.All, Labels: ready,
	}
}

// portOf returns that state.
func portOf(r *report.Report) string { return r.Matrix.NICs[0].RDMA.Ports[0].State }

func TestDetails(t *testing.T) {
	const settle = 10 * time.Second
	type step struct {
		at     time.Duration
		state  string
		labels bool
		want   string
		again  time.Duration
	}
	for name, test := range map[string]struct {
		settle time.Duration
		steps  []step
	}{
		"the first at once": {settle, []step{{0, "DOWN", true, "DOWN", 0}}},
		"settled": {settle, []step{
			{0, "ACTIVE", true, "ACTIVE", 0},
			{60 * s, "DOWN", false, "ACTIVE", settle},
			{62 * s, "DOWN", false, "ACTIVE", 8 * s},
			{70*s - 1, "DOWN", false, "ACTIVE", 1},
			{70 * s, "DOWN", false, "DOWN", 0},
			{71 * s, "DOWN", false, "DOWN", 0},
		}},
		"with the labels": {settle, []step{
			{0, "ACTIVE", true, "ACTIVE", 0},
			{60 * s, "DOWN", false, "ACTIVE", settle},
			{61 * s, "DOWN", true, "DOWN", 0},
			{62 * s, "ACTIVE", false, "DOWN", settle},
		}},
		"a break begins anew": {settle, []step{
			{0, "ACTIVE", true, "ACTIVE", 0},
			{60 * s, "DOWN", false, "ACTIVE", settle},
			{69 * s, "ACTIVE", false, "ACTIVE", 0},
			{71 * s, "DOWN", false, "ACTIVE", settle},
			{80 * s, "INIT", false, "ACTIVE", settle},
			{82 * s, "INIT", false, "ACTIVE", 8 * s},
			{90 * s, "INIT", false, "INIT", 0},
		}},
		"no settle time": {0, []step{
			{0, "ACTIVE", true, "ACTIVE", 0},
			{1 * s, "DOWN", false, "DOWN", 0},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := details{settle: test.settle}
			start := time.Unix(1e9, 0)
			for i, step := range test.steps {
				show, again := d.filter(&sample{report: portIs(step.state), at: start.Add(step.at)}, step.labels)
				if got := portOf(show); got != step.want || again != step.again {
					t.Errorf("step %d: %s, again in %v; want %s, %v", i, got, again, step.want, step.again)
				}
			}
		})
	}
}

// detailed is a publisher that keeps the states of the port that it is given.
type detailed struct {
	fake
	ports []string
}

func (w *detailed) Publish(ctx context.Context, c publish.Content) (bool, error) {
	w.mu.Lock()
	w.ports = append(w.ports, portOf(c.Report))
	w.mu.Unlock()
	return w.fake.Publish(ctx, c)
}

// states lists what it was given, without repetitions.
func (w *detailed) states() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Compact(slices.Clone(w.ports))
}

// A port that goes up and down every second, on which no label depends, is not published
// each time; its state in the end is, without waiting for the interval.
func TestFlappingPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, ready)
		w := &detailed{fake: fake{name: "one", changed: make(chan struct{}, 1), start: h.start}}
		h.agent.Publishers = []publish.Publisher{w}
		var state atomic.Value
		var changed atomic.Bool
		becomes := func(to string) { state.Store(to); changed.Store(true) }
		becomes("ACTIVE")
		h.agent.PortsChanged = func(context.Context) bool { return changed.Swap(false) }
		h.agent.Collect = func(context.Context, report.Parts) report.Report { return portIs(state.Load().(string)) }
		h.run()
		h.sleepUntil(10*s + 10*ms)
		for range 20 {
			for _, to := range []string{"DOWN", "ACTIVE"} {
				becomes(to)
				time.Sleep(s)
			}
		}
		if states := w.states(); !slices.Equal(states, []string{"ACTIVE"}) {
			t.Errorf("published %v", states)
		}
		becomes("DOWN")
		time.Sleep(12 * s)
		if states := w.states(); !slices.Equal(states, []string{"ACTIVE", "DOWN"}) {
			t.Errorf("in the end published %v", states)
		}
		h.stopCleanly()
	})
}

// What is published of a port's MTU, of versions and findings settles as the state of a port
// does: a change that does not last causes no write.
func TestDetailsOfNodes(t *testing.T) {
	index := 3
	for name, change := range map[string]func(*report.Report){
		"MTU of the network device": func(r *report.Report) { r.Matrix.NICs[0].RDMA.Ports[0].RoCE.MTU = 1024 },
		"GID index":                 func(r *report.Report) { r.Matrix.NICs[0].RDMA.Ports[0].RoCE.GIDIndex = &index },
		"MTU of the device":         func(r *report.Report) { r.Asked = []verbs.Answer{{Device: "mlx5_0", MTUs: map[int]int{1: 1024}}} },
		"kernel":                    func(r *report.Report) { r.Platform.Kernel = "6.8" },
		"driver":                    func(r *report.Report) { r.Kmod.Drivers = map[string]kmod.Driver{"nvidia": {Version: "570.86.15"}} },
		"finding that is unknown":   func(r *report.Report) { r.Findings = []finding.Finding{{Status: finding.StatusUnknown, Code: "A"}} },
		"finding":                   func(r *report.Report) { r.Findings = []finding.Finding{{Status: finding.StatusWarn, Code: "A"}} },
	} {
		start, d := time.Unix(1e9, 0), details{settle: 10 * s}
		before := portIs("ACTIVE")
		d.filter(&sample{report: before, at: start}, false)
		for i, again := range []time.Duration{10 * s, 4 * s, 0} {
			now := portIs("ACTIVE")
			change(&now)
			show, wait := d.filter(&sample{report: now, at: start.Add(60*s + time.Duration(i)*6*s)}, false)
			if wait != again || sameDetails(show, &now) != (again == 0) {
				t.Errorf("%s, step %d: again in %v, published %v", name, i, wait, again == 0)
			}
		}
	}
}
