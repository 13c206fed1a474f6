package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const repository = "../.."

// node is a Node with a running nfd-worker.
type node struct {
	cluster *cluster
	name    string
	// dir is the worker's /etc/kubernetes/node-feature-discovery.
	dir    string
	worker *process
}

// newNode makes a node that goes with the test. Its worker has the configuration
// that we deploy, but looks at feature files only, and more often.
func newNode(t *testing.T, c *cluster, name string) *node {
	t.Helper()
	n := &node{cluster: c, name: name, dir: filepath.Join(c.dir, name)}
	if err := os.MkdirAll(filepath.Join(n.dir, "features.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := c.createNode(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	config, err := filepath.Abs(repository + "/deploy/nfd-worker-conf.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n.worker, err = start(n.dir, "nfd-worker", nfdEnv(name), "-kubeconfig="+c.kubeconfig, "-config="+config,
		"-options={core: {sleepInterval: 1s}}", "-feature-sources=local", "-label-sources=local", noPort)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.worker.stop(); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	return n
}

func (n *node) featureFile() string {
	return filepath.Join(n.dir, "features.d", "gdr-features.features")
}

// update makes the node the given machine: it runs `gdr-features labels`, hands
// its output to the worker as the README says, and gives it as labels.
func (n *node) update(t *testing.T, machine, state string) map[string]string {
	t.Helper()
	tree := t.TempDir()
	description := filepath.Join(repository, "testdata/machines", machine+".txt")
	if out, err := exec.CommandContext(t.Context(), program("mktree"), description, tree, state).CombinedOutput(); err != nil {
		t.Fatalf("mktree: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program("gdr-features"), "labels", "--root", tree)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("gdr-features labels: %v", err)
	}
	beside := filepath.Join(n.dir, "gdr.tmp")
	if err := os.WriteFile(beside, out, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(beside, n.featureFile()); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for line := range strings.Lines(string(out)) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok || !strings.HasPrefix(key, prefix) {
			t.Fatalf("gdr-features labels printed %q", line)
		}
		labels[key] = value
	}
	if len(labels) == 0 {
		t.Fatal("gdr-features labels printed nothing")
	}
	return labels
}

// expect waits until the Node has these labels, the one it was made with, and
// no other.
func (n *node) expect(t *testing.T, labels map[string]string) {
	t.Helper()
	want := map[string]string{corev1.LabelHostname: n.name}
	maps.Copy(want, labels)
	processes := append([]*process{n.worker}, n.cluster.processes...)
	if err := until(t.Context(), 10*time.Second, func(ctx context.Context) error {
		now, err := n.cluster.kube.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, now.Labels); diff != "" {
			return fmt.Errorf("labels of the Node (-want +got):\n%s", diff)
		}
		return nil
	}, processes...); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d labels of gdr-features are on the Node", len(labels))
}
