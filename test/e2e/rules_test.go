package e2e

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// applyRules applies our NodeFeatureRules, which match what the agents of three nodes
// publish: instances (gdr.pair, gdr.nic) and attributes (gdr.node). They add their labels,
// which are removed with them.
func applyRules(t *testing.T, a *agent) {
	far, other := newNode(t, a.cluster, "far"), newNode(t, a.cluster, "other")
	nodes := []struct {
		*agent
		labels []string
	}{
		{a, []string{"gpu-nic-pix", "nic-400g", "gdr-training"}},
		{far.run(t, machine(t, "a40-8gpu-2cx7-nccl1343", "ready")), []string{"gpu-nic-pix", "nic-400g"}},
		{other.run(t, machine(t, "epyc-3gpu-phb-nccltests320", "ready")), nil},
	}
	rules := shipped(t, "examples/nodefeaturerules.yaml")
	if err := a.cluster.apply(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		want := maps.Clone(labelsOf(t, n.tree))
		for _, name := range n.labels {
			want[prefix+name] = "true"
		}
		n.expect(t, want)
	}
	all := a.cluster.admin.nfd.NfdV1alpha1().NodeFeatureRules()
	for _, r := range rules {
		if err := all.Delete(t.Context(), r.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes {
		n.expect(t, labelsOf(t, n.tree))
	}
}
