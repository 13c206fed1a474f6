package e2e

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A release of the chart is given other values and rolled back to the former. The Node never
// lacks a label. After helm uninstall the labels stay; they go with the feature file, which
// --cleanup removes, and with the namespace.
func TestRollback(t *testing.T) {
	s := &site{cluster: ownCluster(t, "rollback", "", (*cluster).startEmpty)}
	s.deleteNamespaces(t)
	t.Parallel() // only now: a cluster that starts takes CPU time from other tests
	n := newNode(t, s.cluster, "rollback")
	n.work(t, time.Second)
	tree := machine(t, "dell-xe9680-h100", "ready")
	labels := labelsOf(t, tree)
	config, err := s.kubeconfig(t.TempDir(), "admin", s.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := filepath.Abs(chart)
	if err != nil {
		t.Fatal(err)
	}
	var a *agent
	// apply runs a command, then replaces the agent by one of the DaemonSet.
	apply := func(command string) *appsv1.DaemonSet {
		t.Helper()
		if out, errs, status := shell(t, config, command); status != 0 {
			t.Fatalf("%s: status %d\n%s%s", command, status, out, errs)
		}
		set, err := s.admin.kube.AppsV1().DaemonSets(agentName).Get(t.Context(), agentName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if a != nil {
			s.endPod(t, a)
		}
		args := slices.Concat(set.Spec.Template.Spec.Containers[0].Args[1:], []string{"--listen=", "--features-dir=" + filepath.Join(n.dir, "features.d")})
		a = n.run(t, tree, args...)
		n.expect(t, labels)
		return set
	}

	first := apply("helm install gdr-features " + packed + " -n gdr-features --create-namespace --set image.repository=registry.example.com/gdr-features")
	missing := n.watch(t, labels)
	second := apply("helm upgrade gdr-features " + packed + " -n gdr-features --reset-then-reuse-values --set 'publish={nodefeature,file}' --set settle=20s")
	if cmp.Equal(first.Spec, second.Spec) {
		t.Error("the upgrade changes nothing")
	}
	settle()
	third := apply("helm rollback gdr-features 1 -n gdr-features")
	if diff := cmp.Diff(first.Spec, third.Spec); diff != "" {
		t.Errorf("after the rollback (-first +now):\n%s", diff)
	}
	settle()

	s.endPod(t, a)
	if out, errs, status := shell(t, config, "helm uninstall gdr-features -n gdr-features"); status != 0 {
		t.Fatalf("status %d\n%s%s", status, out, errs)
	}
	settle()
	for _, what := range missing() {
		t.Error(what)
	}
	a.command(t, "--publish=file", "--cleanup")
	if out, errs, status := shell(t, config, "kubectl delete namespace gdr-features"); status != 0 {
		t.Fatalf("status %d\n%s%s", status, out, errs)
	}
	n.expect(t, nil)
}

// endPod ends the agent and deletes its Pod, as a kubelet does.
func (s *site) endPod(t *testing.T, a *agent) {
	t.Helper()
	if err := a.process.stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.admin.kube.CoreV1().Pods(agentName).Delete(t.Context(), a.pod.Name, *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
}
