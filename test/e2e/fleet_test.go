//go:build fleet

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fleetAudit logs every request of a service account, without bodies.
const fleetAudit = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: [system:serviceaccounts]
- level: None
`

const (
	// One agent in unavailable at most has yet to publish: maxUnavailable of our DaemonSet is 10 %.
	unavailable = 10
	// idling is longer than the interval of agent and worker.
	idling = 65 * time.Second
	// outage is how long the API server is down.
	outage = 5 * time.Second
	// recovery is how long requests are counted at least after all changes are published:
	// agents wait up to a minute before they watch again. patienceAfter is how long at most,
	// where the machine is slow.
	recovery      = 90 * time.Second
	patienceAfter = 5 * time.Minute
	// workers is how many nfd-workers there are.
	workers = 40
)

// TestFleet runs FLEET_NODES agents against one API server, and some nfd-workers for
// comparison. FLEET_RATE agents start in a second, at random moments. nfd-master and nfd-gc are left out: their load does not depend on who writes
// the NodeFeatures.
func TestFleet(t *testing.T) {
	n, rate := atLeast(t, "FLEET_NODES", 20), atLeast(t, "FLEET_RATE", 1)
	c := &shared
	if err := errors.Join(c.master.stop(), c.collector.stop(), os.WriteFile(filepath.Join(c.dir, "audit.yaml"), []byte(fleetAudit), 0o600), c.api.restart()); err != nil {
		t.Fatal(err)
	}
	if err := until(t.Context(), patience, c.admin.ready); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	f := newAgents(t, c, n)
	w := newWorkers(t, c)
	t.Logf("%d nodes, pods and tokens made in %v", n, time.Since(began).Round(time.Second))

	var table fleetTable
	table.add(f.rollOut(t, w, rate))
	table.add(f.idle(t, w))
	table.add(f.change(t, w))
	table.add(f.restart(t, w))
	fmt.Printf("\n%s\n", table.String())
}

// atLeast is the number in a variable.
func atLeast(t *testing.T, variable string, least int) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil || n < least {
		t.Fatalf("%s=%q is no number of at least %d", variable, os.Getenv(variable), least)
	}
	return n
}

// phase begins to measure.
func (f *agents) phase(t *testing.T, name string) *phase {
	t.Helper()
	return &phase{name: name, cluster: f.cluster, from: f.cluster.auditEnd(t), api: f.cluster.api.spent(t), start: time.Now()}
}

// rollOut starts the workers and then the agents: each agent reads once and writes once.
func (f *agents) rollOut(t *testing.T, w *nfdWorkers, rate int) []row {
	p := f.phase(t, "roll-out")
	w.start(t)
	theirs := p.end(t, w.name, w.nodes, w.row(t, p))
	p = f.phase(t, "roll-out")
	ours := p.end(t, f.name, f.nodes, f.do(t, fmt.Sprintf("start %ds %d", len(f.nodes)/rate, len(f.nodes)/unavailable)))
	if ours.reads.most > 1 || ours.writes.most != 1 || ours.writes.least != 1 {
		t.Errorf("roll-out: at most %d reads, %d to %d writes of a node", ours.reads.most, ours.writes.least, ours.writes.most)
	}
	return []row{ours, theirs}
}

// idle waits: the agents make no requests.
func (f *agents) idle(t *testing.T, w *nfdWorkers) []row {
	p := f.phase(t, "idle")
	time.Sleep(idling)
	ours, theirs := p.end(t, f.name, f.nodes, row{}), p.end(t, w.name, w.nodes, row{})
	if ours.reads.sum+ours.writes.sum > 0 {
		t.Errorf("idle: %d reads, %d writes", ours.reads.sum, ours.writes.sum)
	}
	return []row{ours, theirs}
}

// change changes every tenth machine: its agent writes once.
func (f *agents) change(t *testing.T, w *nfdWorkers) []row {
	tenth := len(f.nodes) / 10
	p := f.phase(t, "change of 10 %")
	times := f.do(t, fmt.Sprintf("change 0 %d", tenth))
	ours := p.end(t, f.name, f.nodes[:tenth], times)
	if ours.reads.sum > 0 || ours.writes.least != 1 || ours.writes.most != 1 {
		t.Errorf("change: %d reads, %d to %d writes of a node", ours.reads.sum, ours.writes.least, ours.writes.most)
	}
	if others := p.end(t, f.name, f.nodes[tenth:], row{}); others.reads.sum+others.writes.sum > 0 {
		t.Errorf("change: %d requests of nodes that did not change", others.reads.sum+others.writes.sum)
	}
	p = f.phase(t, p.name)
	w.change(t, 0, workers/10)
	return []row{ours, p.end(t, w.name, w.nodes[:workers/10], w.row(t, p))}
}

// restart kills the API server. While it is down another tenth of the machines changes.
// Afterwards all agents come back, not all at once, and those of changed machines write
// once.
func (f *agents) restart(t *testing.T, w *nfdWorkers) []row {
	tenth := len(f.nodes) / 10
	if err := f.cluster.api.kill(); err != nil {
		t.Fatal(err)
	}
	from := f.cluster.auditEnd(t)
	done := make(chan row, 1)
	go func() { done <- f.do(t, fmt.Sprintf("change %d %d", tenth, 2*tenth)) }()
	w.change(t, workers/10, 2*workers/10)
	time.Sleep(outage)
	starts := 0
	if err := until(t.Context(), 5*time.Minute, func(ctx context.Context) error {
		if api := f.cluster.api; api.stopped || api.alive() != nil { // it exits when it starts too slowly
			starts++
			if err := api.start(); err != nil {
				return err
			}
		}
		return f.cluster.admin.ready(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("restart: kube-apiserver was started %d times until it was ready", starts)
	p := &phase{name: "restart", cluster: f.cluster, from: from, start: time.Now()} // its CPU time counts from its start
	var times row
	select {
	case times = <-done:
	case <-time.After(15 * time.Minute):
		t.Fatal("not all have written after the restart")
	}
	published := max(0, times.last.Sub(p.start))
	times.waited = nil // mostly the outage
	w.revive(t)
	time.Sleep(recovery)
	for began := time.Now(); p.watching(t, f.nodes) < len(f.nodes) && time.Since(began) < patienceAfter; {
		time.Sleep(10 * time.Second)
	}
	// A write whose answer was lost is repeated, and changes nothing.
	changed := p.end(t, f.name, f.nodes[tenth:2*tenth], times)
	if changed.writes.least < 1 || changed.writes.most > 2 {
		t.Errorf("restart: %d to %d writes of a node that changed", changed.writes.least, changed.writes.most)
	}
	if others := p.end(t, f.name, slices.Concat(f.nodes[:tenth], f.nodes[2*tenth:]), times); others.writes.sum > 0 {
		t.Errorf("restart: %d writes of nodes that did not change", others.writes.sum)
	}
	ours := p.end(t, f.name, f.nodes, times)
	ours.note = p.returned(t, f.nodes, published)
	return []row{ours, p.end(t, w.name, w.nodes, row{})}
}

// makeNodes creates nodes with a Pod of our DaemonSet on each, and gives a line for each
// with its name and the token of the Pod.
func (c *cluster) makeNodes(ctx context.Context, nodes []string) ([]string, error) {
	set, err := c.admin.kube.AppsV1().DaemonSets(agentName).Get(ctx, agentName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	lines, errs := make([]string, len(nodes)), make([]error, len(nodes))
	queue := make(chan int)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := range queue {
				lines[i], errs[i] = c.makeNode(ctx, nodes[i], podOf(&set.Spec.Template))
			}
		})
	}
	for i := range nodes {
		queue <- i
	}
	close(queue)
	all.Wait()
	return lines, errors.Join(errs...)
}

// makeNode creates a node with this Pod on it.
func (c *cluster) makeNode(ctx context.Context, name string, pod *corev1.Pod) (string, error) {
	if _, err := c.createNode(ctx, name); err != nil {
		return "", err
	}
	pod.Spec.NodeName = name
	pod, err := c.admin.kube.CoreV1().Pods(agentName).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	token, err := c.token(ctx, agentName, agentName, pod)
	return name + " " + token, err
}
