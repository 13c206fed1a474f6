package e2e

import (
	"context"
	"os"
	"regexp"
	"testing"
	"time"
)

// TestOutages stops one after the other each process that the labels pass on their way to
// the Node, in a cluster of its own.
func TestOutages(t *testing.T) {
	slow(t)
	c := ownCluster(t, "outages", "", (*cluster).start)
	t.Parallel() // only now: a cluster that starts takes CPU time from other tests
	n := newNode(t, c, "unlucky")
	n.work(t, time.Second)
	tree := machine(t, "dell-xe9680-h100", "ready")
	a := n.run(t, tree, "--publish=nodefeature,file", "--log-level=debug")
	n.expect(t, labelsOf(t, tree))

	t.Run("rules", func(t *testing.T) { applyRules(t, a) })
	t.Run("NFD", func(t *testing.T) { restartNFD(t, a) })
	t.Run("etcd", func(t *testing.T) { interrupt(t, a, c.etcd, 2*time.Second) })
	t.Run("kube-apiserver", func(t *testing.T) {
		interrupt(t, a, c.api, 20*time.Second)
		checkRetries(t, a.process)
	})
}

// restartNFD restarts nfd-master and nfd-worker. The Node loses no label at any time, and
// later changes reach it.
func restartNFD(t *testing.T, a *agent) {
	missing := a.watch(t, labelsOf(t, a.tree))
	for _, p := range []*process{a.cluster.master, a.worker} {
		t.Logf("restarting %s", p.name)
		if err := p.restart(); err != nil {
			t.Fatal(err)
		}
		// A change that reaches the Node shows that it works again.
		load(t, a.tree)
		a.expect(t, labelsOf(t, a.tree))
		unload(t, a.tree)
		a.expect(t, labelsOf(t, a.tree))
	}
	for _, what := range missing() {
		t.Error(what)
	}
}

// interrupt kills the API server, or a process that it needs, while the machine changes. The
// agent keeps running, and what it publishes is right within five seconds after the API
// server is ready. (nfd-master may take a minute more. nfd-worker exits when it does not
// reach the API server, and relies on the kubelet to start it again; there is none here.)
func interrupt(t *testing.T, a *agent, p *process, pause time.Duration) {
	before := labelsOf(t, a.tree)
	if err := p.kill(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // also after a failure: the next test needs it
		if !p.stopped {
			return
		}
		if err := p.start(); err != nil {
			t.Error(err)
		}
	})
	if before[prefix+"gpudirect.storage"] == "true" {
		unload(t, a.tree)
	} else {
		load(t, a.tree)
	}
	after := labelsOf(t, a.tree)
	time.Sleep(pause)
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	if err := until(t.Context(), 3*patience, a.cluster.admin.ready); err != nil { // it does much as it starts
		t.Fatal(err)
	}
	began := time.Now()
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		return a.right(ctx, after)
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("right again %v after the API server is", time.Since(began).Round(time.Millisecond))
	a.worker.stopped = a.worker.alive() != nil
}

// checkRetries checks the agent's log of an outage of twenty seconds: it tried again, less
// and less often, and at irregular times.
func checkRetries(t *testing.T, p *process) {
	t.Helper()
	log, err := os.ReadFile(p.log())
	if err != nil {
		t.Fatal(err)
	}
	waits := map[string]int{}
	tries := regexp.MustCompile(`failed again; next try in ([0-9.a-z]+)`).FindAllSubmatch(log, -1)
	for _, try := range tries {
		waits[string(try[1])]++
	}
	if len(tries) < 3 || len(tries) > 40 {
		t.Errorf("%d retries", len(tries))
	}
	if len(waits) < 3 {
		t.Errorf("waits without jitter: %v", waits)
	}
	t.Logf("%d retries, after %v", len(tries), waits)
}
