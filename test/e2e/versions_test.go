//go:build compatibility

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// startWith starts a cluster of its own name with further flags of its API server, and checks its
// version.
func startWith(t *testing.T, name, version string, flags ...string) *cluster {
	t.Helper()
	c := ownCluster(t, name, "kubernetes-"+version, func(c *cluster, ctx context.Context) error {
		c.flags = flags
		return c.start(ctx)
	})
	if v, err := c.admin.kube.Discovery().ServerVersion(); err != nil || v.Major+"."+v.Minor != version {
		t.Fatalf("Kubernetes %v, error %v", v, err)
	}
	return c
}

// TestVersionsOfKubernetes: with the oldest Kubernetes that needs no setting of its own, and with
// the newest, our manifests apply, the admission policies refuse what they should, labels come and
// change, the NodeFeature is the Node's, and kubectl-gdr lists it.
func TestVersionsOfKubernetes(t *testing.T) {
	for _, version := range []string{"1.30", "1.37"} {
		t.Run(version, func(t *testing.T) {
			begun := time.Now()
			c := startWith(t, "version", version)
			n := newNode(t, c, "node-1")
			tree := machine(t, "dell-xe9680-h100", "ready")
			a := n.run(t, tree)
			n.expect(t, labelsOf(t, tree))
			load(t, tree)
			n.expect(t, labelsOf(t, tree))
			if now, err := a.published(t.Context()); err != nil || len(now.OwnerReferences) != 1 || now.OwnerReferences[0].UID != n.uid {
				t.Errorf("owners %v, error %v; want the Node", now.OwnerReferences, err)
			}
			kubeconfig, err := c.kubeconfig(t.TempDir(), "admin", c.admin.token)
			if err != nil {
				t.Fatal(err)
			}
			if out := prints(t, kubeconfig, "--no-headers"); len(out) == 0 {
				t.Error("kubectl gdr lists no node")
			}
			a.deleteNode(t)
			testPolicyBounds(t, c)
			testEventPolicy(t, c)
			t.Logf("Kubernetes %s: %.0f s", version, time.Since(begun).Seconds())
		})
	}
}

// apart is a machine whose GPUs and NICs have neither a root bus nor a NUMA node in common.
const apart = `nodes 2
pci0000:10 numa=0
  0000:10:01.0 port 8086:352a
    0000:11:00.0 gpu 10de:2330 driver=nvidia
pci0000:20 numa=0
  0000:20:01.0 port 8086:352a
    0000:21:00.0 gpu 10de:2330 driver=nvidia
pci0000:80 numa=1
  0000:80:01.0 port 8086:352a
    0000:81:00.0 ib 15b3:1021 rdma=mlx5_0 driver=mlx5_core
pci0000:90 numa=1
  0000:90:01.0 port 8086:352a
    0000:91:00.0 ib 15b3:1021 rdma=mlx5_1 driver=mlx5_core
`

// TestDerivedClaim: the scheduler of Kubernetes 1.37, with derived attributes switched on, gives
// the claim of `claim --derived` each pair of the machine once, and a Pod more stays Pending.
func TestDerivedClaim(t *testing.T) {
	const gate = "--feature-gates=DRADerivedAttributes=true"
	c := startWith(t, "derived", "1.37", gate)
	tree := t.TempDir()
	description := filepath.Join(t.TempDir(), "apart.txt")
	if err := os.WriteFile(description, []byte(apart), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), program("mktree"), description, tree, "ready").CombinedOutput(); err != nil {
		t.Fatalf("mktree: %v\n%s", err, out)
	}
	n := newNode(t, c, "node-1")
	n.patch(t, `{"spec":{"taints":null}}`)
	n.patch(t, `{"status":{"allocatable":{"pods":"110"}}}`, "status")
	resources := c.admin.kube.ResourceV1()
	for name, expression := range classes {
		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}},
		}}
		if _, err := resources.DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := exec.CommandContext(t.Context(), program("slices"), tree, n.name).Output()
	if err != nil {
		t.Fatalf("slices: %v", err)
	}
	var list resourcev1.ResourceSliceList
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	addresses := map[string]string{}
	for i := range list.Items {
		for _, d := range list.Items[i].Spec.Devices {
			for _, name := range []resourcev1.QualifiedName{"resource.kubernetes.io/pciBusID", "dra.net/pciAddress"} {
				if a, ok := d.Attributes[name]; ok {
					addresses[list.Items[i].Spec.Driver+"/"+d.Name] = *a.StringValue
				}
			}
		}
		if _, err := resources.ResourceSlices().Create(t.Context(), &list.Items[i], metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig, err := c.kubeconfig(t.TempDir(), "scheduler", c.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := start(c.dir, c.file("kube-scheduler"), nil, "--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig, gate)
	if err != nil {
		t.Fatal(err)
	}
	stopAfter(t, scheduler)

	spec := derivedSpec(t, tree)
	got := map[string]string{} // addresses of NICs by those of GPUs
	for i := range 3 {
		name := fmt.Sprintf("pair-%d", i)
		claimPod(t, c, name, spec)
		pods := c.admin.kube.CoreV1().Pods("default")
		var pending string
		if err := until(t.Context(), patience, func(ctx context.Context) error {
			pod, err := pods.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
					pending = condition.Message
				}
			}
			if pod.Spec.NodeName == "" && pending == "" {
				return fmt.Errorf("%s is not decided", name)
			}
			return nil
		}, scheduler); err != nil {
			t.Fatalf("%v\n%s", err, scheduler.tail())
		}
		claim, err := resources.ResourceClaims("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		switch allocated := claim.Status.Allocation; {
		case i == 2 && (pending == "" || allocated != nil):
			t.Errorf("the third of two pairs: %v", allocated)
		case i < 2 && allocated == nil:
			t.Errorf("%s is Pending: %s", name, pending)
		case i < 2:
			of := map[string]string{}
			for _, d := range allocated.Devices.Results {
				of[d.Request] = addresses[d.Driver+"/"+d.Device]
			}
			got[of["gpu-0"]] = of["nic-0"]
		}
	}
	want := map[string]string{"0000:11:00.0": "0000:81:00.0", "0000:21:00.0": "0000:91:00.0"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("given %v, want %v", got, want)
	}
}

// derivedSpec is the spec of the claims that `claim --derived` prints a template of. Its fields
// are not in the API that this test is built with.
func derivedSpec(t *testing.T, tree string) map[string]any {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program("gdr-features"), "claim", "--derived", "--root", tree)
	text, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 2 || !bytes.Contains(text, []byte("derivedAttributes")) {
		t.Fatalf("claim --derived: %v\n%s", err, text)
	}
	var template struct {
		Spec struct{ Spec map[string]any }
	}
	if err := yaml.Unmarshal(text, &template); err != nil {
		t.Fatal(err)
	}
	return template.Spec.Spec
}

// claimPod creates a claim and a Pod that uses it, both of a name.
func claimPod(t *testing.T, c *cluster, name string, spec map[string]any) {
	t.Helper()
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
	kind := schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}
	if _, err := c.admin.dynamic.Resource(kind).Namespace("default").Create(t.Context(), claim, metav1.CreateOptions{FieldValidation: "Strict"}); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}} // no controller makes it
	if _, err := c.admin.kube.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil && name == "pair-0" {
		t.Fatal(err)
	}
	if _, err := c.admin.kube.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			ResourceClaims: []corev1.PodResourceClaim{{Name: "pair", ResourceClaimName: &name}},
			Containers: []corev1.Container{{
				Name: "job", Image: "job", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "pair"}}},
			}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
