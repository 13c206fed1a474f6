package e2e

import (
	"maps"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The labels of a machine are on its Node, and in the NodeFeature, which has no owner since
// there is no Pod.
func TestMachines(t *testing.T) {
	for _, name := range []string{"dell-xe9680-h100", "dgx-1v", "azure-ndv5-h100"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, &shared, name)
			n.work(t, time.Second)
			tree := machine(t, name, "ready")
			labels := labelsOf(t, tree)
			n.update(t, printed(t, tree))
			n.expect(t, labels)

			feature, err := shared.admin.nfd.NfdV1alpha1().NodeFeatures(nfdNamespace).Get(t.Context(), n.name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(labels, feature.Spec.Labels); diff != "" {
				t.Errorf("labels of the NodeFeature (-want +got):\n%s", diff)
			}
			if len(feature.OwnerReferences) > 0 {
				t.Errorf("the NodeFeature belongs to %v", feature.OwnerReferences)
			}
		})
	}
}

// When the state of a machine changes, so do the labels of its Node: values change, labels
// are added and removed. Without the feature file all are removed.
func TestStates(t *testing.T) {
	t.Parallel()
	n := newNode(t, &shared, "changing")
	n.work(t, time.Second)
	var before map[string]string
	for _, state := range []string{"ready", "closed-no-peermem", "no-drivers", "ready"} {
		t.Logf("state %s", state)
		tree := machine(t, "dell-xe9680-h100", state)
		labels := labelsOf(t, tree)
		if maps.Equal(labels, before) {
			t.Fatalf("%s: the same labels as before", state)
		}
		before = labels
		n.update(t, printed(t, tree))
		n.expect(t, labels)
	}
	t.Log("without feature file")
	if err := os.Remove(n.featureFile()); err != nil {
		t.Fatal(err)
	}
	n.expect(t, nil)
}
