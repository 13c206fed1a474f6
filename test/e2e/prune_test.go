package e2e

import (
	"context"
	"testing"
)

// TestPrune: where one of two NFDs is uninstalled, its nfd-master -prune takes the labels of the
// other one off all Nodes, too. Agents do not see that, and write nothing. The labels are back when
// the nfd-master that is left is restarted.
func TestPrune(t *testing.T) {
	c := ownCluster(t, "prune", "", (*cluster).start)
	n := newNode(t, c, "pruned")
	tree := machine(t, "dell-xe9680-h100", "ready")
	labels := labelsOf(t, tree)
	a := n.run(t, tree)
	n.expect(t, labels)
	other, err := c.startNFD(t.Context(), "nfd-master", t.TempDir(), "control-plane", "-config=", "-prune")
	if err != nil {
		t.Fatal(err)
	}
	<-other.ended
	s := a.strained(t, "another NFD is uninstalled")
	n.expect(t, nil)
	settle()
	n.expect(t, nil)
	s.mend()
	if err := c.master.restart(); err != nil {
		t.Fatal(err)
	}
	s.recovers(t, 0, 0, func(ctx context.Context) error { return n.has(ctx, labels) })
}
