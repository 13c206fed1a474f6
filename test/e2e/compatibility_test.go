//go:build compatibility

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestCompatibility is TestUpgrade with older versions of NFD: see docs/compatibility.md.
func TestCompatibility(t *testing.T) {
	for _, nfd := range []string{"nfd-0.16"} {
		t.Run(nfd, func(t *testing.T) { testUpgrade(t, nfd) })
	}
}

// TestOldestKubernetes runs the agent with the oldest kube-apiserver that the chart accepts,
// deployed as docs/compatibility.md says: by Helm without the admission policy, and by the
// variant feature-file.
func TestOldestKubernetes(t *testing.T) {
	const version = "1.29"
	c := ownCluster(t, "oldest", "kubernetes-"+version, (*cluster).startEmpty)
	if v, err := c.admin.kube.Discovery().ServerVersion(); err != nil || v.Major+"."+v.Minor != version {
		t.Fatalf("Kubernetes %v, error %v", v, err)
	}
	namespaces := c.admin.kube.CoreV1().Namespaces()
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agentName}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, variant := range []struct {
		name    string
		values  []string
		publish string
		level   string // of Pod Security
	}{
		{"no-admission-policy", []string{"--set", "admissionPolicy.enabled=false"}, "--publish=nodefeature", "restricted"},
		{"feature-file", []string{"--set", "publish={file}"}, "--publish=file", "privileged"},
	} {
		t.Run(variant.name, func(t *testing.T) {
			enforce := fmt.Appendf(nil, `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": %q}}}`, variant.level)
			if _, err := namespaces.Patch(t.Context(), agentName, types.MergePatchType, enforce, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			objects := templated(t, agentName, append(variant.values, "--kube-version", "v"+version+".0")...)
			if err := c.apply(t.Context(), slices.DeleteFunc(objects, isHook)); err != nil {
				t.Fatal(err)
			}
			n := newNode(t, c, variant.name)
			n.work(t, time.Second)
			tree := machine(t, "dell-xe9680-h100", "ready")
			a := n.run(t, tree, variant.publish)
			n.expect(t, labelsOf(t, tree))
			load(t, tree)
			n.expect(t, labelsOf(t, tree))
			if variant.publish == "--publish=file" {
				return
			}
			if now, err := a.published(t.Context()); err != nil || len(now.OwnerReferences) > 0 {
				t.Errorf("owners %v, error %v; this version is not documented to give the node to the agent", now.OwnerReferences, err)
			}
			kubeconfig, err := c.kubeconfig(t.TempDir(), "admin", c.admin.token)
			if err != nil {
				t.Fatal(err)
			}
			if out := prints(t, kubeconfig, "--no-headers"); len(out) == 0 {
				t.Error("kubectl gdr lists no node")
			}
			a.deleteNode(t)
		})
	}
}
