package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	nfdv1alpha1 "sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
)

// applyRule applies a NodeFeatureRule of the examples, which is deleted after the test.
func (c *cluster) applyRule(t *testing.T, file string) {
	t.Helper()
	rules := shipped(t, "examples/"+file)
	if err := c.apply(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, o := range rules {
			if err := c.deleteRule(context.WithoutCancel(t.Context()), o.GetName()); err != nil {
				t.Error(err)
			}
		}
	})
}

func (c *cluster) deleteRule(ctx context.Context, name string) error {
	return c.admin.nfd.NfdV1alpha1().NodeFeatureRules().Delete(ctx, name, metav1.DeleteOptions{})
}

// TestOwnLabels: nfd-master copies the hardware labels to a prefix of one's own. A label of ours
// that the kubelet has set stays on a node without GPU, which the page's command names.
func TestOwnLabels(t *testing.T) {
	command := commandsBelow(t, repository+"/docs/schedulers.md", "## kube-scheduler")[0]
	allTaken(t)
	c := ownCluster(t, "ways", "", (*cluster).start)
	n := newNode(t, c, "gpu")
	a := n.run(t, machine(t, "dell-xe9680-h100", "ready"))
	began := a.strained(t, "labels for a prefix of one's own")
	ours := labelsOf(t, a.tree)
	began.recovers(t, 10, 1, func(ctx context.Context) error { return n.has(ctx, ours) })
	c.applyRule(t, "own-prefix.yaml")
	with := maps.Clone(ours)
	with["example.com/gdr.level"], with["example.com/gpudirect.rdma.capable"] = "PIX", "true"
	n.expect(t, with)

	claimed := map[string]string{prefix + "gpudirect.rdma.capable": "true"}
	none := newNode(t, c, "no-gpu")
	none.patch(t, `{"metadata":{"labels":{"`+prefix+`gpudirect.rdma.capable":"true"}}}`)
	idle := none.run(t, t.TempDir()).strained(t, "a label that the kubelet has set")
	settle()
	idle.recovers(t, 10, 1, func(ctx context.Context) error { return none.has(ctx, claimed) })
	kubeconfig, err := c.kubeconfig(t.TempDir(), "admin", c.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	out, errs, status := shell(t, kubeconfig, command)
	if status != 0 || !strings.Contains(out, "no-gpu") || strings.Contains(out, "\ngpu ") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}

// notReady is the taint of the example.
const notReady = "example.com/gdr-not-ready"

// TestTaintUntilReady: nfd-master sets the taint while a capable node is not ready or not known to
// be, takes over one that the kubelet has set, and removes it; without -enable-taints there is none.
func TestTaintUntilReady(t *testing.T) {
	c := ownCluster(t, "taints", "", (*cluster).start)
	c.applyRule(t, "taint-until-ready.yaml")
	off := newNode(t, c, "taints-off")
	off.run(t, machine(t, "dell-xe9680-h100", "no-drivers"))
	settle()
	off.tainted(t, "")

	c.master.args = append(c.master.args, "-enable-taints")
	if err := c.master.restart(); err != nil {
		t.Fatal(err)
	}
	off.tainted(t, notReady)
	n := newNode(t, c, "registered")
	n.patch(t, `{"spec":{"taints":[{"key":"`+notReady+`","value":"true","effect":"NoSchedule"}]}}`)
	a := n.run(t, machine(t, "dell-xe9680-h100", "no-drivers"))
	n.expect(t, labelsOf(t, a.tree))
	n.tainted(t, notReady)
	for _, step := range []struct{ state, taint string }{{"ready", ""}, {"no-drivers", notReady}, {"ready", ""}} {
		a.become(t, step.state)
		n.expect(t, labelsOf(t, a.tree))
		n.tainted(t, step.taint)
	}

	// What is never published is not known.
	unknown := feature("unknown")
	unknown.Namespace = agentName
	newNode(t, c, "unknown")
	unknown.Spec.Features.Attributes["gdr.node"] = nfdv1alpha1.NewAttributeFeatures(map[string]string{"gpudirect.rdma.capable": "true"})
	if _, err := c.admin.nfd.NfdV1alpha1().NodeFeatures(agentName).Create(t.Context(), unknown, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	(&node{cluster: c, name: "unknown"}).tainted(t, notReady)
	if err := c.admin.nfd.NfdV1alpha1().NodeFeatures(agentName).Delete(t.Context(), unknown.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	(&node{cluster: c, name: "unknown"}).tainted(t, "")
}

// tainted waits until the Node has this taint of the example, "" for none.
func (n *node) tainted(t *testing.T, key string) {
	t.Helper()
	var want []corev1.Taint
	if key != "" {
		want = []corev1.Taint{{Key: key, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	}
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		now, err := n.cluster.admin.kube.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		// The API server adds one of its own to new Nodes.
		got := slices.DeleteFunc(now.Spec.Taints, func(t corev1.Taint) bool { return t.Key != notReady })
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			return fmt.Errorf("taints of %s (-want +got):\n%s", n.name, diff)
		}
		return nil
	}, n.cluster.processes()...); err != nil {
		t.Fatal(err)
	}
}

// TestWorkerPatch: the patch applies to NFD's own DaemonSet, and gives its Pods what it says.
func TestWorkerPatch(t *testing.T) {
	t.Parallel()
	command := commandsBelow(t, repository+"/deploy/README.md", "## Which variant")[0]
	allTaken(t)
	kubeconfig, err := shared.kubeconfig(t.TempDir(), "admin", shared.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	out, errs, status := shell(t, kubeconfig, "cd "+repository+" && "+strings.TrimSpace(command)+" --dry-run=server -o yaml")
	if status != 0 {
		t.Fatalf("status %d\n%s", status, errs)
	}
	objects, err := decode([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	pod := only[appsv1.DaemonSet](t, objects, "DaemonSet").Spec.Template.Spec
	if pod.SecurityContext.SELinuxOptions == nil || pod.SecurityContext.SELinuxOptions.Type != "spc_t" || len(pod.Tolerations) != 1 || pod.Tolerations[0].Operator != corev1.TolerationOpExists {
		t.Errorf("%+v", pod)
	}
}
