package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NFD cannot label a node whose name is longer than the value of a label may be. The agent
// says so, and so does nfd-worker: a feature file does not help. Labelling by hand, as in
// deploy/README.md, does.
func TestLongName(t *testing.T) {
	t.Parallel()
	name := "gpu-" + strings.Repeat("x", 60) + ".example.com"
	_, err := shared.admin.kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{corev1.LabelHostname: "gpu"}, Annotations: map[string]string{"node.alpha.kubernetes.io/ttl": "0"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{cluster: &shared, name: name, dir: filepath.Join(shared.dir, "long-name")}
	if err := os.MkdirAll(filepath.Join(n.dir, "features.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	tree := machine(t, "dell-xe9680-h100", "ready")
	a := n.run(t, tree, "--publish=nodefeature,file", "--listen="+address(t))
	worker, err := shared.startNFD(t.Context(), "nfd-worker", n.dir, name, "-config=", "-feature-sources=local", "-label-sources=local")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = worker.stop() }) // which is an error, since it has ended
	const why = "metadata.labels: Invalid value"
	if err := until(t.Context(), patience, func(context.Context) error {
		if !a.said(t, why) {
			return errors.New("the agent does not say why there are no labels")
		}
		if worker.alive() == nil || !strings.Contains(string(worker.tail()), why) {
			return errors.New("nfd-worker does not end, or not for that reason")
		}
		return nil
	}, a.process); err != nil {
		t.Error(err)
	}
	if a.metric(t, failures) == 0 {
		t.Error("no failure is counted")
	}

	config, err := shared.kubeconfig(n.dir, "admin", shared.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--kubeconfig=" + config, "label", "node", name, "--overwrite"}, strings.Fields(string(printed(t, tree)))...)
	if out, err := exec.CommandContext(t.Context(), program("kubectl"), args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	now, err := shared.admin.kube.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range labelsOf(t, tree) {
		if now.Labels[key] != value {
			t.Errorf("label %s is %q, want %q", key, now.Labels[key], value)
		}
	}
}
