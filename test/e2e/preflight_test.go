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

// TestPreflightWithLibraries: the API server accepts the examples that bring the program into
// the job's own container, and leaves nothing of them out.
func TestPreflightWithLibraries(t *testing.T) {
	const namespace = "preflight-libraries"
	createNamespace(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, "default")
	for _, name := range []string{"preflight-libraries", "image-volume"} {
		objects := shipped(t, "examples/"+name+".yaml")
		for _, o := range objects {
			o.SetNamespace(namespace)
		}
		if err := shared.apply(t.Context(), objects, metav1.DryRunAll); err != nil {
			t.Errorf("%s is refused: %v", name, err)
		}
	}
	spec := only[batchv1.Job](t, shipped(t, "examples/preflight-libraries.yaml"), "Job").Spec.Template.Spec
	preflight, main := spec.InitContainers[1], spec.Containers[0]
	if preflight.Image != main.Image || spec.InitContainers[0].VolumeMounts[0].MountPath != preflight.VolumeMounts[0].MountPath {
		t.Errorf("the preflight is not that of the job: %+v", preflight)
	}
	expectPicked(t, "preflight with libraries", spec, fleet(t), "ready")
}
