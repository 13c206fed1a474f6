package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
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

// variants are the ways to deploy: an overlay or components, and the values of the chart
// that give the same.
var variants = []struct {
	name string
	// components are added to the base; without them the overlay of this name is taken.
	components []string
	values     []string
	// violates is what Pod Security "restricted" objects to in its Pods.
	violates []string
}{
	{name: "feature-file", values: set("publish={file}"), violates: []string{"hostPath", "runAsNonRoot", "runAsUser=0", "seLinuxOptions"}},
	{name: "acs", values: set("acs=true"), violates: []string{"SYS_ADMIN", "runAsNonRoot", "runAsUser=0"}},
	{name: "host-sys", values: set("hostSys=true"), violates: []string{"hostPath"}},
	{name: "kernel-config", values: set("kernelConfig=true"), violates: []string{"hostPath"}},
	{name: "probe-verbs", values: set("probeVerbs=true"), violates: []string{"privileged"}},
	{name: "expect", values: []string{"--set-file", "expect=" + placeholder}},
	{name: "topology-file", values: []string{"--set-file", "topologyFile=" + overlays + "topology-file/topology.xml"}},
	{name: "monitoring", values: set("monitoring.enabled=true")},
	{name: "runbooks", values: set("monitoring.enabled=true,monitoring.rules.runbookURL=https://git.example.com/gdr-features/blob/v1.0.0/deploy/monitoring/README.md")},
	{name: "node-critical", values: set("priorityClassName=system-node-critical")},
	{name: "network-policy", values: set("networkPolicy.enabled=true")},
	{name: "openshift", values: set("openshift.enabled=true")},
	{name: "base", components: []string{}},
	{
		name: "openshift-file", components: []string{"feature-file", "openshift-privileged"},
		values: set("publish={file},openshift.enabled=true"), violates: []string{"hostPath", "runAsNonRoot", "runAsUser=0"},
	},
	{
		name: "gpu-operator", components: []string{"node-critical", "host-sys", "monitoring", "network-policy"},
		values: set("priorityClassName=system-node-critical,hostSys=true,monitoring.enabled=true,networkPolicy.enabled=true"), violates: []string{"hostPath"},
	},
}

func set(values string) []string { return []string{"--set", values} }

// kustomized returns the objects of an overlay, or of the base with components.
func kustomized(t *testing.T, name string, components []string) []*unstructured.Unstructured {
	t.Helper()
	dir := overlays + name
	if components != nil {
		// kustomize takes only relative paths.
		dir = t.TempDir()
		to, err := filepath.Abs(deploy + "/kustomize")
		if err == nil {
			to, err = filepath.Rel(dir, to)
		}
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		fmt.Fprintf(&text, "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [%s/base]\ncomponents:\n", to)
		for _, c := range components {
			fmt.Fprintf(&text, "  - %s/components/%s\n", to, c)
		}
		if err := os.WriteFile(dir+"/kustomization.yaml", []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := render(t.Context(), "kustomize", "build", dir)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// templated returns the objects of the chart in a namespace, with options of `helm template`.
func templated(t *testing.T, namespace string, options ...string) []*unstructured.Unstructured {
	t.Helper()
	// Without --kube-version, a helm that `go install` has built takes 1.20.
	args := []string{"template", agentName, chart, "--namespace", namespace, "--kube-version", "v1.35.3", "--set", "image.repository=" + agentName}
	objects, err := render(t.Context(), "helm", append(args, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// isHook reports whether Helm makes an object for a moment only, as it does for helm test.
func isHook(o *unstructured.Unstructured) bool { return o.GetAnnotations()["helm.sh/hook"] != "" }

// The API server accepts every object of every variant in a dry run. Chart and
// kustomization give the same objects, except for the Namespace, which a chart does not
// create, the test of the release, and Helm's own labels.
func TestManifests(t *testing.T) {
	applyOperators(t)
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			want, got := kustomized(t, v.name, v.components), templated(t, agentName, v.values...)
			got = slices.DeleteFunc(got, isHook)
			for _, objects := range [][]*unstructured.Unstructured{want, got} {
				if err := shared.apply(t.Context(), objects, metav1.DryRunAll); err != nil {
					t.Errorf("refused: %v", err)
				}
			}
			want = slices.DeleteFunc(want, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" })
			for _, o := range got {
				labels := o.GetLabels()
				for _, own := range []string{"instance", "managed-by", "version", "component", "part-of"} {
					own = "app.kubernetes.io/" + own
					if labels[own] == "" {
						t.Errorf("%s: no label %s", o.GetKind(), own)
					}
					delete(labels, own)
				}
				delete(labels, "helm.sh/chart")
				o.SetLabels(labels)
			}
			if diff := cmp.Diff(byName(t, want), byName(t, got)); diff != "" {
				t.Errorf("objects (-kustomize +helm):\n%s", diff)
			}
		})
	}
}

// touching are values of the chart (files in its directory ci) that change the same part of
// the same object: the API server accepts any two of a line together.
var touching = [][]string{
	{"feature-file", "both-publishers", "acs", "probe-verbs", "host-sys", "kernel-config", "openshift", "pod-security-context", "security-context"},
	{"feature-file", "host-sys", "kernel-config", "topology-file", "expect", "extra-volumes"},
	{"feature-file", "both-publishers", "no-node-events", "no-admission-policy", "openshift", "network-policy", "network-policy-from"},
	{"monitoring", "pod-monitor", "rules", "dashboard", "service-monitor", "common"},
	{"network-policy", "network-policy-from", "egress", "feature-file"},
	{"topology-file", "pod-metadata", "extra-env", "resources", "common"},
	{"topology-files", "expect", "global", "image"},
	{"scheduling", "node-critical"},
}

// The API server accepts, in a dry run, what the chart renders with each of the files of
// values in ci, and with any two that touch each other. That Kubernetes' types accept all
// other pairs too is tested by test/chart.
func TestChart(t *testing.T) {
	applyOperators(t)
	files, err := filepath.Glob(chart + "/ci/*-values.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	file := func(name string) string { return chart + "/ci/" + name + "-values.yaml" }
	all := map[string][]string{}
	for _, f := range files {
		all[strings.TrimSuffix(filepath.Base(f), "-values.yaml")] = []string{"--values", f}
	}
	for _, group := range touching {
		for i, a := range group {
			for _, b := range group[i+1:] {
				all[a+"+"+b] = []string{"--values", file(a), "--values", file(b)}
			}
		}
	}
	// That Pod Security "restricted" admits the agent's Pods is another test.
	const namespace = agentName + "-chart"
	createNamespace(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, agentName)
	for name, options := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := shared.apply(t.Context(), templated(t, namespace, options...), metav1.DryRunAll); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// alike matches what chart and kustomization say in their own way: the tag of the image, and
// how a changed topology file replaces the Pods (by an annotation, or by another name).
var alike = regexp.MustCompile(`(gdr-features):v[0-9.]+"|"annotations":\{"checksum/topology":"[0-9a-f]+"\},|(gdr-features-topology)-[a-z0-9]{10}`)

// byName returns the contents of objects by kind and name, which are unique.
func byName(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, o := range objects {
		text, err := json.Marshal(o) // gives numbers the same type
		if err != nil {
			t.Fatal(err)
		}
		text = alike.ReplaceAllFunc(text, func(found []byte) []byte {
			switch {
			case bytes.HasPrefix(found, []byte(`"annotations"`)):
				return nil
			case bytes.HasSuffix(found, []byte(`"`)):
				return []byte(agentName + `"`)
			}
			return []byte(agentName + "-topology")
		})
		var plain any
		if err := json.Unmarshal(text, &plain); err != nil {
			t.Fatal(err)
		}
		all[o.GetKind()+" "+o.GetNamespace()+"/"+alike.ReplaceAllString(o.GetName(), "$2")] = plain
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
			objects := kustomized(t, v.name, v.components)
			pod := podOf(&only[appsv1.DaemonSet](t, objects, "DaemonSet").Spec.Template)

			err := admit(t, agentName, pod)
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
