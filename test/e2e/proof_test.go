package e2e

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestProofExample: the API server accepts the example that measures a node. Its Pods have no rights
// on the API and take nobody's place, and what one container writes, the next one reads.
func TestProofExample(t *testing.T) {
	const namespace = "proof-example"
	createNamespace(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, "default")
	objects := shipped(t, "examples/proof.yaml")
	class := only[schedulingv1.PriorityClass](t, objects, "PriorityClass")
	if class.Value >= 0 || class.GlobalDefault || *class.PreemptionPolicy != corev1.PreemptNever {
		t.Errorf("it may take the place of others: %+v", class)
	}
	for _, o := range objects {
		if o.GetKind() == "Job" {
			o.SetNamespace(namespace)
		}
	}
	if err := shared.apply(t.Context(), objects); err != nil { // of the class, then of the Job
		t.Fatalf("refused: %v", err)
	}
	spec := only[batchv1.Job](t, objects, "Job").Spec.Template.Spec
	if spec.PriorityClassName != class.Name || spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
		t.Errorf("%+v", spec)
	}
	if len(spec.InitContainers) != 2 || len(spec.Containers) != 1 {
		t.Fatalf("%d and %d containers", len(spec.InitContainers), len(spec.Containers))
	}
	plan, measure, read := spec.InitContainers[0], spec.InitContainers[1], spec.Containers[0]
	if plan.Image != read.Image || plan.Image == measure.Image {
		t.Errorf("images %s, %s, %s", plan.Image, measure.Image, read.Image)
	}
	if diff := cmp.Diff(plan.Resources, measure.Resources); diff != "" {
		t.Errorf("other devices are planned than measured:\n%s", diff)
	}
	script, out := measure.Command[1], measure.Command[2]
	if !slices.Equal(measure.Command[:1], []string{"sh"}) || !slices.Equal(plan.Args, []string{"proof", "plan", "-f", script}) ||
		!slices.Equal(read.Args, []string{"proof", "read", out}) {
		t.Errorf("%q, %q, %q", plan.Args, measure.Command, read.Args)
	}
}
