package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each change of readiness causes one event on the Node, with the reason; the start of the
// agent causes none.
func TestEvents(t *testing.T) {
	t.Parallel()
	n := newNode(t, &shared, "events")
	tree := machine(t, "dell-xe9680-h100", "ready")
	a := n.run(t, tree, "--interval=10m", "--settle=0s")
	n.expect(t, labelsOf(t, tree))
	var want [][3]string
	for _, turn := range []struct {
		state string
		event [3]string
	}{
		{"1: DOWN\n", [3]string{corev1.EventTypeWarning, "GPUDirectRDMALost", "GPUDirect RDMA does not work any more: NoActivePort"}},
		{"4: ACTIVE\n", [3]string{corev1.EventTypeNormal, "GPUDirectRDMAReady", "GPUDirect RDMA works: every prerequisite is in place"}},
	} {
		ports(t, tree, turn.state)
		start := time.Now()
		n.expect(t, labelsOf(t, tree))
		t.Logf("ports %q: on the Node after %v", turn.state, time.Since(start).Round(time.Millisecond))
		want = append(want, turn.event)
		if err := until(t.Context(), patience, func(ctx context.Context) error {
			got, err := n.events(ctx)
			if diff := cmp.Diff(want, got); err == nil && diff != "" {
				err = fmt.Errorf("events (-want +got):\n%s", diff)
			}
			return err
		}, a.process); err != nil {
			t.Fatal(err)
		}
	}
}

// ports sets the state of all ports of the machine in the tree.
func ports(t *testing.T, tree, state string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(tree, "sys/class/infiniband/*/ports/*/state"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if err := os.WriteFile(file, []byte(state), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// events returns type, reason and message of those that `kubectl describe node`
// shows, in their order.
func (n *node) events(ctx context.Context) (all [][3]string, err error) {
	list, err := n.cluster.admin.kube.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Node,involvedObject.namespace=,involvedObject.name=" + n.name + ",involvedObject.uid=" + string(n.uid),
	})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		e := &list.Items[i]
		all = append(all, [3]string{e.Type, e.Reason, e.Message})
	}
	return all, nil
}
