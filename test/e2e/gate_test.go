package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	nfdv1alpha1 "sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
)

// The label of the gate can be set by hand while a version of gdr-features runs that does not
// know it. NFD takes it over from the version that does, and at no moment is the Node without
// it. When the old version is back, NFD removes it.
func TestGateMoves(t *testing.T) {
	t.Parallel()
	n := newNode(t, &shared, "gate-moves")
	n.work(t, time.Second)
	now := labelsOf(t, machine(t, "dell-xe9680-h100", "ready"))
	value := now[prefix+gate]
	if value == "" || value != now[prefix+"gpudirect.rdma.capable"] {
		t.Fatalf("%s is %q: %v", gate, value, now)
	}
	before := maps.Clone(now)
	delete(before, prefix+gate)

	n.update(t, printable(before))
	n.expect(t, before)
	n.label(t, prefix+gate, value)
	missing := n.watch(t, map[string]string{prefix + gate: value})
	n.update(t, printable(now))
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		return n.taken(ctx, gate)
	}, n.processes()...); err != nil {
		t.Fatal(err)
	}
	n.expect(t, now)
	for _, what := range missing() {
		t.Error(what)
	}

	n.update(t, printable(before))
	n.expect(t, before)
}

// printable returns labels as `gdr-features labels` prints them.
func printable(labels map[string]string) []byte {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&out, "%s=%s\n", name, labels[name])
	}
	return []byte(out.String())
}

// label sets a label of the Node, as `kubectl label node` does.
func (n *node) label(t *testing.T, name, value string) {
	t.Helper()
	n.patch(t, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, name, value))
}

// taken returns an error unless a label, its name without prefix, is among those of the Node
// that NFD has set.
func (n *node) taken(ctx context.Context, name string) error {
	now, err := n.cluster.admin.kube.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	own := now.Annotations[nfdv1alpha1.FeatureLabelsAnnotation]
	if !slices.Contains(strings.Split(own, ","), name) {
		return fmt.Errorf("NFD has not set %s, but %s", name, own)
	}
	return nil
}
