package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAdministrator: the commands that answer an administrator's questions tell a cluster in which
// labels are stopped from one in which they are not, and show the labels of rules.
func TestAdministrator(t *testing.T) {
	const page, namespace = repository + "/docs/administrator.md", "administrator"
	through := commandsBelow(t, page, "### Does my NFD let the labels through?")[0]
	collide := commandsBelow(t, page, "### Do its labels collide with the rules of the GPU Operator?")[0]
	allTaken(t)
	kubeconfig, err := shared.kubeconfig(t.TempDir(), "admin", shared.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	answers := func(command, want string) {
		t.Helper()
		if out, errs, status := shell(t, kubeconfig, command); status != 0 || !strings.Contains("\n"+out, "\n"+want+"\n") {
			t.Errorf("%s\nstatus %d, no %q in\n%s%s", command, status, want, out, errs)
		}
	}

	createNamespace(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, "default")
	maps := shared.admin.kube.CoreV1().ConfigMaps(namespace)
	conf := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "nfd-master-conf"},
		Data:       map[string]string{"nfd-master.conf": "# restrictions:\n#   denyNodeFeatureLabels: true\nrestrictions:\n  denyNodeFeatureLabels: false\n"},
	}
	if conf, err = maps.Create(t.Context(), conf, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	answers(through, "nothing stops them")
	conf.Data["nfd-master.conf"] = "labelWhiteList: \"^cpu\"\nrestrictions:\n  denyNodeFeatureLabels: true\n"
	if _, err := maps.Update(t.Context(), conf, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	answers(through, "  denyNodeFeatureLabels: true")
	answers(through, `labelWhiteList: "^cpu"`)
	if err := maps.Delete(t.Context(), conf.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	rule, err := decode([]byte(`
apiVersion: nfd.k8s-sigs.io/v1alpha1
kind: NodeFeatureRule
metadata: {name: administrator}
spec:
  rules:
    - name: nobody
      labels: {nvidia.com/peermem.capable: "true"}
      matchFeatures: [{feature: kernel.loadedmodule, matchExpressions: {no_such_module: {op: Exists}}}]
`))
	if err == nil {
		err = shared.apply(t.Context(), rule)
	}
	if err != nil {
		t.Fatal(err)
	}
	answers(collide, `administrator: {"nvidia.com/peermem.capable":"true"}`)
	if _, errs, status := shell(t, kubeconfig, "kubectl delete nodefeaturerule administrator"); status != 0 {
		t.Error(errs)
	}
}
