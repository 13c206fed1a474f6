package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// node is a Node of a cluster, with a directory of its own.
type node struct {
	cluster *cluster
	name    string
	uid     types.UID
	// dir is the node's /etc/kubernetes/node-feature-discovery.
	dir string
	// worker is its nfd-worker; nil for none.
	worker *process
}

// newNode creates a node on which nothing runs.
func newNode(t *testing.T, c *cluster, name string) *node {
	t.Helper()
	made, err := c.createNode(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{cluster: c, name: name, uid: made.UID, dir: filepath.Join(c.dir, name)}
	if err := os.MkdirAll(filepath.Join(n.dir, "features.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	return n
}

// work starts an nfd-worker on the node, which is stopped after the test. It has our
// configuration, but reads only feature files, every interval.
func (n *node) work(t *testing.T, interval time.Duration) {
	t.Helper()
	config, err := filepath.Abs(deploy + "/nfd-worker-conf.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n.worker, err = n.cluster.startNFD(t.Context(), "nfd-worker", n.dir, n.name, "-config="+config,
		fmt.Sprintf("-options={core: {sleepInterval: %v}}", interval), "-feature-sources=local", "-label-sources=local")
	if err != nil {
		t.Fatal(err)
	}
	stopAfter(t, n.worker)
}

// stopAfter stops a process after the test, which fails if it has ended before.
func stopAfter(t *testing.T, p *process) {
	t.Cleanup(func() {
		if err := p.stop(); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
}

// featureFile returns the name of our feature file.
func (n *node) featureFile() string {
	return filepath.Join(n.dir, "features.d", "gdr-features.features")
}

// update returns the output of `gdr-features labels` to the worker as the help of labels describes.
func (n *node) update(t *testing.T, out []byte) {
	t.Helper()
	beside := filepath.Join(n.dir, "gdr.tmp")
	if err := os.WriteFile(beside, out, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(beside, n.featureFile()); err != nil {
		t.Fatal(err)
	}
}

// patch merges JSON into the Node, or into a subresource of it. An update could fail: NFD
// changes the Node, too.
func (n *node) patch(t *testing.T, text string, subresource ...string) {
	t.Helper()
	nodes := n.cluster.admin.kube.CoreV1().Nodes()
	if _, err := nodes.Patch(t.Context(), n.name, types.MergePatchType, []byte(text), metav1.PatchOptions{}, subresource...); err != nil {
		t.Fatal(err)
	}
}

// processes returns the processes that the labels of the node need.
func (n *node) processes() []*process {
	all := n.cluster.processes()
	if n.worker != nil {
		all = append(all, n.worker)
	}
	return all
}

// has returns an error unless the Node has exactly these labels and the one it was created
// with.
func (n *node) has(ctx context.Context, labels map[string]string) error {
	want := map[string]string{corev1.LabelHostname: n.name}
	maps.Copy(want, labels)
	now, err := n.cluster.admin.kube.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if diff := cmp.Diff(want, now.Labels); diff != "" {
		return fmt.Errorf("labels of the Node (-want +got):\n%s", diff)
	}
	return nil
}

// expect waits until the Node has exactly these labels.
func (n *node) expect(t *testing.T, labels map[string]string) {
	t.Helper()
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		return n.has(ctx, labels)
	}, n.processes()...); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d labels of gdr-features are on the Node", len(labels))
}

// watch watches the Node, which has the labels, from now on. The function that it gives ends
// the watch and tells which of the labels were missing at any moment.
func (n *node) watch(t *testing.T, labels map[string]string) (missing func() []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	nodes, one := n.cluster.admin.kube.CoreV1().Nodes(), metav1.SingleObject(metav1.ObjectMeta{Name: n.name})
	now, err := nodes.List(ctx, one) // without its version, the watch could begin with an older state
	if err != nil || len(now.Items) != 1 {
		t.Fatalf("%d Nodes, error %v", len(now.Items), err)
	}
	one.ResourceVersion = now.ResourceVersion
	w, err := nodes.Watch(ctx, one)
	if err != nil {
		t.Fatal(err)
	}
	var gone []string
	for key := range labels {
		if _, ok := now.Items[0].Labels[key]; !ok {
			gone = append(gone, "label missing from the start: "+key)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			now, ok := e.Object.(*corev1.Node)
			if !ok {
				break
			}
			for key := range labels {
				if _, ok := now.Labels[key]; !ok {
					gone = append(gone, "label missing for a moment: "+key)
				}
			}
		}
		if ctx.Err() == nil {
			gone = append(gone, "the watch of the Node ended")
		}
	}()
	return func() []string {
		cancel()
		<-ended
		return gone
	}
}
