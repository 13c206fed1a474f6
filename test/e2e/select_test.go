package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// fleet returns nodes that differ in the labels that selectors use, by name, each with the
// labels that `gdr-features labels` prints there.
func fleet(t *testing.T) map[string]*corev1.Node {
	t.Helper()
	unreadable := machine(t, "dell-xe9680-h100", "ready")
	rewrite(t, unreadable, "0x15b3", map[string]string{"vendor": "", "modalias": ""})
	listed, efa := machine(t, "dell-xe9680-h100", "ready"), machine(t, "dell-xe9680-h100", "ready")
	rewrite(t, listed, "0x15b3", map[string]string{"vendor": "0x1077\n", "device": "0x7322\n", "modalias": ""}) // InfiniPath, which nobody will judge
	rewrite(t, efa, "0x15b3", map[string]string{"vendor": "0x1d0f\n", "device": "0xefa1\n", "modalias": ""})
	// Whether a GPU is reached is known of EFA on Amazon's machines alone.
	vendor := filepath.Join(efa, "sys/class/dmi/id/sys_vendor")
	if err := os.WriteFile(vendor, []byte("Amazon EC2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	nodes := map[string]*corev1.Node{}
	for name, tree := range map[string]string{
		"ready":       machine(t, "dell-xe9680-h100", "ready"),
		"not-ready":   machine(t, "dell-xe9680-h100", "closed-no-peermem"),
		"far":         machine(t, "a40-8gpu-2cx7-nccl1343", "ready"),
		"unsupported": machine(t, "geforce-4x4090", "ready"),
		"no-gpu":      machine(t, "nic-only", "ready"),
		"efa":         efa,
		"not-judged":  listed,
		"unknown":     unreadable,
	} {
		nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: parse(t, printed(t, tree))}}
	}
	if len(nodes["unknown"].Labels) == 0 || nodes["unknown"].Labels[prefix+gate] != "" {
		t.Fatalf("the unknown node is not one: %v", nodes["unknown"].Labels)
	}
	if nodes["efa"].Labels[prefix+"gpudirect.rdma.capable"] != "true" {
		t.Fatalf("the node with EFA is not capable: %v", nodes["efa"].Labels)
	}
	return nodes
}

// rewrite gives files of each PCI function of a vendor another text; it removes those whose
// text is "".
func rewrite(t *testing.T, tree, vendor string, files map[string]string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(tree, "sys/bus/pci/devices/*"))
	if err != nil || len(all) == 0 {
		t.Fatalf("functions %v, error %v", all, err)
	}
	for _, function := range all {
		id, err := os.ReadFile(filepath.Join(function, "vendor"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(string(id)) != vendor {
			continue
		}
		for name, text := range files {
			name = filepath.Join(function, name)
			err := os.Remove(name)
			if err == nil && text != "" {
				err = os.WriteFile(name, []byte(text), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// picked names the nodes that the scheduler would consider for a Pod.
func picked(t *testing.T, spec corev1.PodSpec, nodes map[string]*corev1.Node) []string {
	t.Helper()
	required := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: spec})
	var names []string
	for name, n := range nodes {
		ok, err := required.Match(n)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func expectPicked(t *testing.T, what string, spec corev1.PodSpec, nodes map[string]*corev1.Node, want ...string) {
	t.Helper()
	if got := picked(t, spec, nodes); !slices.Equal(got, want) {
		t.Errorf("%s goes to %q, want %q", what, got, want)
	}
}

// The examples run on the nodes that they name, and the API server accepts them: the Pods
// with Pod Security "restricted".
func TestExamples(t *testing.T) {
	nodes := fleet(t)
	const namespace = "examples"
	createNamespace(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, "default")

	pods := map[string]*corev1.Pod{}
	for _, o := range shipped(t, "examples/pods.yaml") {
		pod := convert[corev1.Pod](t, o)
		pods[pod.Name] = pod
		if err := admit(t, namespace, pod); err != nil {
			t.Errorf("%s: %v", pod.Name, err)
		}
	}
	for name, want := range map[string][]string{
		"gdr-ready":     {"far", "ready"},
		"gdr-near":      {"ready"},
		"gdr-400g":      {"far", "ready"},
		"gdr-preferred": {"efa", "far", "no-gpu", "not-judged", "not-ready", "ready", "unknown", "unsupported"},
	} {
		if pods[name] == nil {
			t.Fatalf("no Pod %s", name)
		}
		expectPicked(t, name, pods[name].Spec, nodes, want...)
	}
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(
		pods["gdr-preferred"].Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	if err != nil {
		t.Fatal(err)
	}
	score := func(name string) int64 { return terms.Score(nodes[name]) }
	if score("ready") <= score("far") || score("far") <= score("unsupported") {
		t.Errorf("gdr-preferred: ready has %d, far %d, unsupported %d", score("ready"), score("far"), score("unsupported"))
	}

	objects := shipped(t, "examples/job.yaml")
	for _, o := range objects {
		o.SetNamespace(namespace)
	}
	objects = append(objects, shipped(t, "examples/nodefeaturerules.yaml")...)
	if err := shared.apply(t.Context(), objects, metav1.DryRunAll); err != nil {
		t.Errorf("refused: %v", err)
	}
	job := only[batchv1.Job](t, objects, "Job")
	expectPicked(t, "gdr-bandwidth", job.Spec.Template.Spec, nodes, "far", "ready")
}

// gate is the label by which NVIDIA's operators choose nodes.
const gate = "gpudirect.rdma.connectx"

// Each of the two NVIDIADrivers selects its nodes, and no node is selected by both: that with
// nvidia-peermem those with a ConnectX or BlueField that can do it. The driver of the Network
// Operator runs on the nodes of the first.
func TestGate(t *testing.T) {
	nodes := fleet(t)
	applyOperators(t)
	drivers, policies := shipped(t, "gpu-operator/nvidiadrivers.yaml"), shipped(t, "gpu-operator/nicclusterpolicy.yaml")
	if err := shared.apply(t.Context(), append(slices.Clone(drivers), policies...), metav1.DryRunAll); err != nil {
		t.Errorf("refused: %v", err)
	}

	want := map[string][]string{"true": {"far", "not-ready", "ready"}, "false": {"efa", "not-judged", "unsupported"}}
	for _, o := range drivers {
		selector, _, err := unstructured.NestedStringMap(o.Object, "spec", "nodeSelector")
		if err != nil {
			t.Fatal(err)
		}
		rdma, _, err := unstructured.NestedBool(o.Object, "spec", "rdma", "enabled")
		if err != nil {
			t.Fatal(err)
		}
		value := selector[prefix+gate]
		if rdma != (value == "true") {
			t.Errorf("%s: rdma is enabled: %v", o.GetName(), rdma)
		}
		// The operator makes a DaemonSet with this selector.
		expectPicked(t, o.GetName(), corev1.PodSpec{NodeSelector: selector}, nodes, want[value]...)
		delete(want, value)
	}
	if len(want) > 0 {
		t.Errorf("no driver for %v", want)
	}

	// The Network Operator puts this into its DaemonSets.
	affinity, _, err := unstructured.NestedMap(policies[0].Object, "spec", "nodeAffinity")
	if err != nil {
		t.Fatal(err)
	}
	spec := corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: convert[corev1.NodeAffinity](t, &unstructured.Unstructured{Object: affinity})}}
	expectPicked(t, "the Network Operator's driver", spec, nodes, "far", "not-ready", "ready")
	checkValues(t)
}

// checkValues checks what the chart of the GPU Operator makes of our values. That of v26.7 is no
// Go module: `hack/check.sh gpu-operator` checks it.
func checkValues(t *testing.T) {
	t.Helper()
	for name, leaves := range map[string]bool{"values.yaml": true, "values-clusterpolicy.yaml": false} {
		objects, err := render(t.Context(), "helm", "template", "gpu-operator", program("gpu-operator"),
			"--namespace", "gpu-operator", "--values", deploy+"/gpu-operator/"+name)
		if err != nil {
			t.Fatal(err)
		}
		of := func(kind string) (found []*unstructured.Unstructured) {
			for _, o := range objects {
				if o.GetKind() == kind {
					found = append(found, o)
				}
			}
			return found
		}
		if n := len(of("NVIDIADriver")); n > 0 {
			t.Errorf("%s: %d NVIDIADrivers of its own", name, n)
		}
		policies := of("ClusterPolicy")
		if len(policies) != 1 {
			t.Fatalf("%s: %d ClusterPolicies", name, len(policies))
		}
		spec := policies[0].Object
		if use, _, err := unstructured.NestedBool(spec, "spec", "driver", "useNvidiaDriverCRD"); err != nil || use != leaves {
			t.Errorf("%s: the ClusterPolicy leaves drivers to NVIDIADrivers: %v, error %v", name, use, err)
		}
		if rdma, _, err := unstructured.NestedBool(spec, "spec", "driver", "rdma", "enabled"); err != nil || rdma == leaves {
			t.Errorf("%s: the ClusterPolicy enables rdma: %v, error %v", name, rdma, err)
		}
		if err := shared.apply(t.Context(), policies, metav1.DryRunAll); err != nil {
			t.Errorf("%s: refused: %v", name, err)
		}
	}
}
