package e2e

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPreflightExample: the API server accepts the example with the initContainer that checks
// its Pod, and the Pod goes to nodes that are ready.
func TestPreflightExample(t *testing.T) {
	const namespace = "preflight-example"
	createNamespace(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, "default")
	objects := shipped(t, "examples/preflight.yaml")
	for _, o := range objects {
		o.SetNamespace(namespace)
	}
	if err := shared.apply(t.Context(), objects, metav1.DryRunAll); err != nil {
		t.Errorf("refused: %v", err)
	}
	spec := only[batchv1.Job](t, objects, "Job").Spec.Template.Spec
	expectPicked(t, "preflight", spec, fleet(t), "ready")
}
