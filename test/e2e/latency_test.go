package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The time from a changed fact to the label on the Node: 200 changes on ten nodes. The
// kernel sends no events about a directory of files, so the agent reads it four times a
// second instead. nfd-master takes up to a second of the time: it updates Nodes once a
// second. No test runs at the same time. Where the machine is too busy to tell, the test is
// skipped and says so.
func TestLatency(t *testing.T) {
	slow(t)
	const nodes, changes, limit = 10, 20, 2 * time.Second
	busy := watchLoad(t)
	took := make(chan time.Duration, nodes*changes)
	t.Run("changes", func(t *testing.T) {
		for i := range nodes {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				n := newNode(t, &shared, fmt.Sprintf("latency-%d", i))
				tree := machine(t, "azure-ndv5-h100", "ready")
				a := n.run(t, tree, "--interval=250ms", "--settle=0s")
				n.expect(t, labelsOf(t, tree))
				for j := range changes {
					took <- n.change(t, a, tree, j%2 == 0)
					time.Sleep(time.Duration(i*37%250) * time.Millisecond) // not in step with each other
				}
			})
		}
	})
	close(took)
	var all []time.Duration
	for d := range took {
		all = append(all, d)
	}
	slices.Sort(all)
	if len(all) != nodes*changes {
		t.Fatalf("%d changes", len(all))
	}
	at := func(percent int) time.Duration { return all[len(all)*percent/100-1].Round(time.Millisecond) }
	t.Logf("%d changes: p50 %v, p90 %v, p99 %v, longest %v", len(all), at(50), at(90), at(99), at(100))
	within(t, "p99 is", at(99), limit, busy)
}

// change loads or unloads the module, and gives the time until the label of the Node
// changes.
func (n *node) change(t *testing.T, a *agent, tree string, loaded bool) time.Duration {
	t.Helper()
	const label = prefix + "gpudirect.storage"
	start := time.Now()
	if loaded {
		load(t, tree)
	} else {
		unload(t, tree)
	}
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		now, err := n.cluster.admin.kube.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		if err == nil && now.Labels[label] != fmt.Sprint(loaded) {
			err = fmt.Errorf("%s is %q", label, now.Labels[label])
		}
		return err
	}, a.process); err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}
