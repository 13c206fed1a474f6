package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The Pod of `helm test` publishes the labels of its node with the rights of the agent, and
// fails where the agent has none.
func TestHelmTest(t *testing.T) {
	t.Parallel()
	n := newNode(t, &shared, "helm-test")
	tree := machine(t, "dell-xe9680-h100", "ready")
	a, out, err := n.helmTest(t, agentName, tree)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	now, err := a.published(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(labelsOf(t, tree), now.Spec.Labels); diff != "" {
		t.Errorf("labels of the NodeFeature (-want +got):\n%s", diff)
	}

	const without = agentName + "-without-role"
	createNamespace(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: without}}, agentName)
	if _, out, err := n.helmTest(t, without, tree); err == nil || !strings.Contains(string(out), "forbidden") {
		t.Errorf("without a role: error %v\n%s", err, out)
	}
}

// helmTest runs the Pod of `helm test` of a release in a namespace, on the node.
func (n *node) helmTest(t *testing.T, namespace, tree string) (*agent, []byte, error) {
	t.Helper()
	pod := only[corev1.Pod](t, templated(t, namespace), "Pod")
	pod.Spec.NodeName = n.name
	ctx := t.Context()
	pod, err := n.cluster.admin.kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token, err := n.cluster.token(ctx, namespace, agentName, pod)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.cluster.kubeconfig(n.dir, agentName, token); err != nil {
		t.Fatal(err)
	}
	a := &agent{node: n, pod: pod, tree: tree}
	cmd := exec.CommandContext(ctx, program(agentName), a.arguments(append(pod.Spec.Containers[0].Args[1:], "--namespace="+namespace)...)...)
	cmd.Env = a.environment()
	out, err := cmd.CombinedOutput()
	return a, out, err
}
