package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Helm 3 and Helm 4 give a release of the chart other values, and roll it back to the former by the
// commands of the page. The Node never lacks a label. Both refuse a namespace in which Pod Security
// would refuse the Pods, with the command that helps. After helm uninstall the labels stay; they go
// with the feature file, which --cleanup removes, and with the namespace.
func TestRollback(t *testing.T) {
	slow(t)
	s := &site{cluster: ownCluster(t, "rollback", "", (*cluster).startEmpty)}
	s.deleteNamespaces(t)
	back := commandsBelow(t, deploy+"/README.md", "## Upgrade")[0]
	allTaken(t)
	t.Parallel() // only now: a cluster that starts takes CPU time from other tests
	for _, helm := range []string{"helm3", "helm4"} {
		t.Run(helm, func(t *testing.T) { s.rollback(t, helm, back) })
	}
}

func (s *site) rollback(t *testing.T, helm, back string) {
	n := newNode(t, s.cluster, "rollback-"+helm)
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
	in := "true; "
	if helm == "helm4" {
		in = "PATH=" + filepath.Dir(program("helm4/helm")) + ":$PATH; "
	}
	if out, errs, status := shell(t, config, in+"helm version --short"); status != 0 || !strings.HasPrefix(out, "v"+helm[4:]+".") {
		t.Fatalf("%s is %s%s", helm, out, errs)
	}
	var a *agent
	// apply runs commands, then replaces the agent by one of the DaemonSet.
	apply := func(commands string) *appsv1.DaemonSet {
		t.Helper()
		if out, errs, status := shell(t, config, in+commands); status != 0 {
			t.Fatalf("%s: status %d\n%s%s", commands, status, out, errs)
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
	s.refuses(t, config, in, packed)
	missing := n.watch(t, labels)
	second := apply("helm upgrade gdr-features " + packed + " -n gdr-features --reset-then-reuse-values --set 'publish={nodefeature,file}' --set settle=20s")
	if cmp.Equal(first.Spec, second.Spec) {
		t.Error("the upgrade changes nothing")
	}
	settle()
	third := apply(back)
	if diff := cmp.Diff(first.Spec, third.Spec); diff != "" {
		t.Errorf("after the rollback (-first +now):\n%s", diff)
	}
	settle()

	s.endPod(t, a)
	if out, errs, status := shell(t, config, in+"helm uninstall gdr-features -n gdr-features"); status != 0 {
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

// refuses checks that Helm refuses Pods that the namespace would refuse, names the command that
// helps, and takes them after that command.
func (s *site) refuses(t *testing.T, config, in, packed string) {
	t.Helper()
	const label = "kubectl label --overwrite namespace gdr-features pod-security.kubernetes.io/enforce="
	upgrade := in + "helm upgrade gdr-features " + packed + " -n gdr-features --reuse-values --dry-run=server --set acs=true"
	for _, level := range []string{"restricted", "baseline"} {
		if out, errs, status := shell(t, config, label+level); status != 0 {
			t.Fatalf("%s%s", out, errs)
		}
		_, errs, status := shell(t, config, upgrade)
		if status == 0 || !strings.Contains(errs, label+"privileged") {
			t.Errorf("%s: status %d\n%s", level, status, errs)
		}
		t.Logf("%s: %s", level, errs)
	}
	if out, errs, status := shell(t, config, label+"privileged"+" && "+upgrade); status != 0 {
		t.Errorf("after the command: status %d\n%s%s", status, out, errs)
	}
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
