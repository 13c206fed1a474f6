package e2e

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	base     = deploy + "/kustomize/base"
	overlays = deploy + "/kustomize/overlays/"
	chart    = deploy + "/helm/gdr-features"
	// placeholder is the file of expectations in the overlay.
	placeholder = overlays + "expect/expect.yaml"
)

// variants are the ways to deploy: a kustomization, and the values of the chart that give
// the same.
var variants = []struct {
	name, kustomization string
	values              []string
	// violates is what Pod Security "restricted" objects to in its Pods.
	violates []string
}{
	{"base", base, nil, nil},
	{"feature-file", overlays + "feature-file", []string{"--set", "publish={file}"}, []string{"hostPath", "runAsNonRoot", "runAsUser=0"}},
	{"acs", overlays + "acs", []string{"--set", "acs=true"}, []string{"SYS_ADMIN", "runAsNonRoot", "runAsUser=0"}},
	{"host-sys", overlays + "host-sys", []string{"--set", "hostSys=true"}, []string{"hostPath"}},
	{"kernel-config", overlays + "kernel-config", []string{"--set", "kernelConfig=true"}, []string{"hostPath"}},
	{"expect", overlays + "expect", []string{"--set-file", "expect=" + placeholder}, nil},
	{"monitoring", overlays + "monitoring", []string{"--set", "monitoring.enabled=true"}, nil},
	{"node-critical", overlays + "node-critical", []string{"--set", "priorityClassName=system-node-critical"}, nil},
}

// The API server accepts every object of every variant in a dry run, and Helm's lint finds
// no fault with the chart. Chart and kustomization give the same objects, except for the
// Namespace, which a chart does not create, and Helm's own labels.
func TestManifests(t *testing.T) {
	applyOperators(t)
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			want, err := render(t.Context(), "kustomize", "build", v.kustomization)
			if err != nil {
				t.Fatal(err)
			}
			lint := exec.CommandContext(t.Context(), program("helm"), append([]string{"lint", "--strict", chart}, v.values...)...)
			if out, err := lint.CombinedOutput(); err != nil {
				t.Errorf("helm lint: %v\n%s", err, out)
			}
			got, err := render(t.Context(), "helm", append([]string{"template", agentName, chart, "--namespace", agentName}, v.values...)...)
			if err != nil {
				t.Fatal(err)
			}
			for _, objects := range [][]*unstructured.Unstructured{want, got} {
				if err := shared.apply(t.Context(), objects, metav1.DryRunAll); err != nil {
					t.Errorf("refused: %v", err)
				}
			}
			want = slices.DeleteFunc(want, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" })
			for _, o := range got {
				labels := o.GetLabels()
				for _, own := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart"} {
					if labels[own] == "" {
						t.Errorf("%s: no label %s", o.GetKind(), own)
					}
					delete(labels, own)
				}
				o.SetLabels(labels)
			}
			if diff := cmp.Diff(byName(t, want), byName(t, got)); diff != "" {
				t.Errorf("objects (-kustomize +helm):\n%s", diff)
			}
		})
	}
}

// The API server accepts the objects for every value of the chart, and wrong values are an
// error.
func TestChart(t *testing.T) {
	applyOperators(t)
	template := []string{"template", agentName, chart, "--namespace", agentName}
	all := []string{
		"--set", "publish={nodefeature,file}", "--set", "nicFamilies={mlx5,irdma}", "--set", "acs=true,hostSys=true,kernelConfig=true,interval=30s,settle=1m,metricsPairs=true,logLevel=debug",
		"--set", "image.repository=registry.example/gdr-features,image.tag=v1,image.pullPolicy=Always,imagePullSecrets[0].name=pull",
		"--set", "extraArgs={--log-format=json},priorityClassName=system-node-critical,admissionPolicy.enabled=false",
		"--set", "nodeSelector.pool=gpu,tolerations[0].key=gpu,tolerations[0].operator=Exists,resources.limits.memory=128Mi",
		"--set-file", "expect=" + deploy + "/examples/expect.yaml",
		"--set", "monitoring.enabled=true,monitoring.labels.release=prometheus",
	}
	objects, err := render(t.Context(), "helm", append(template, all...)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := shared.apply(t.Context(), objects, metav1.DryRunAll); err != nil {
		t.Errorf("refused: %v", err)
	}
	set := only[appsv1.DaemonSet](t, objects, "DaemonSet")
	want := []string{"run", "--publish=nodefeature,file", "--sysfs=/host/sys", "--expect=/etc/gdr-features/expect.yaml", "--nic-families=mlx5,irdma", "--interval=30s", "--settle=1m", "--metrics-pairs", "--log-level=debug", "--log-format=json"}
	if diff := cmp.Diff(want, set.Spec.Template.Spec.Containers[0].Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	monitoring := 0
	for _, o := range objects {
		if strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy") {
			t.Errorf("a %s in spite of admissionPolicy.enabled=false", o.GetKind())
		}
		if o.GetLabels()["release"] == "prometheus" {
			monitoring++
		}
	}
	if monitoring != 2 {
		t.Errorf("%d objects have the label for Prometheus", monitoring)
	}
	for _, wrong := range []string{"publish={label}", "interval=often", "acs=1", "Interval=1s", "image.repository=", "monitoring.enabled=yes", "expect=true"} {
		if _, err := render(t.Context(), "helm", append(slices.Clone(template), "--set", wrong)...); err == nil {
			t.Errorf("%s is no error", wrong)
		}
	}
}

// byName returns the contents of objects by kind and name, which are unique.
func byName(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, o := range objects {
		text, err := json.Marshal(o) // gives numbers the same type
		if err != nil {
			t.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal(text, &plain); err != nil {
			t.Fatal(err)
		}
		all[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = plain
	}
	if len(all) != len(objects) {
		t.Errorf("some of %v are there twice", slices.Sorted(maps.Keys(all)))
	}
	return all
}

// Our namespace enforces Pod Security "restricted". The API server admits the Pods of the
// default variant to it and refuses those of the others, which the namespace of their own
// variant admits.
func TestPodSecurity(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			objects, err := render(t.Context(), "kustomize", "build", v.kustomization)
			if err != nil {
				t.Fatal(err)
			}
			pod := podOf(&only[appsv1.DaemonSet](t, objects, "DaemonSet").Spec.Template)

			err = admit(t, agentName, pod)
			if len(v.violates) == 0 {
				if err != nil {
					t.Errorf("refused in the namespace: %v", err)
				}
				return
			}
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
				t.Fatalf("the default variant's namespace: the error is %v, and not Pod Security's", err)
			}
			for _, what := range v.violates {
				if !strings.Contains(err.Error(), what) {
					t.Errorf("the refusal does not tell of %s: %v", what, err)
				}
			}

			// The namespace of the variant, under another name.
			namespace := only[corev1.Namespace](t, objects, "Namespace")
			namespace.Name = agentName + "-" + v.name
			createNamespace(t, namespace, agentName)
			if err := admit(t, namespace.Name, pod); err != nil {
				t.Errorf("refused in its own namespace: %v", err)
			}
		})
	}
}

// admit returns the error of the API server for a Pod.
func admit(t *testing.T, namespace string, pod *corev1.Pod) error {
	t.Helper()
	_, err := shared.admin.kube.CoreV1().Pods(namespace).Create(t.Context(), pod,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return err
}

// createNamespace creates a namespace with a service account.
func createNamespace(t *testing.T, namespace *corev1.Namespace, account string) {
	t.Helper()
	core, create := shared.admin.kube.CoreV1(), metav1.CreateOptions{}
	if _, err := core.Namespaces().Create(t.Context(), namespace, create); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: account, Namespace: namespace.Name}
	if _, err := core.ServiceAccounts(namespace.Name).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, create); err != nil {
		t.Fatal(err)
	}
}
