package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// The API server accepts the examples with the schedulers' own resources, and refuses them
// with one field more. What they select are the nodes that they name.
func TestSchedulers(t *testing.T) {
	install(t, "schedulers.yaml")
	install(t, "mpijobs.yaml")
	nodes := fleet(t)
	for _, name := range []string{"kueue", "volcano", "kai"} {
		t.Run(name, func(t *testing.T) {
			for _, o := range shipped(t, "examples/schedulers/"+name+".yaml") {
				if err := shared.apply(t.Context(), []*unstructured.Unstructured{o}, metav1.DryRunAll); err != nil {
					t.Errorf("refused: %v", err)
				}
				wrong := o.DeepCopy()
				if err := unstructured.SetNestedField(wrong.Object, "x", "spec", "gdr"); err != nil {
					t.Fatal(err)
				}
				if err := shared.apply(t.Context(), []*unstructured.Unstructured{wrong}, metav1.DryRunAll); err == nil {
					t.Errorf("%s %s is accepted with a field that it has not", o.GetKind(), o.GetName())
				}
				selectsNodes(t, o, nodes)
				keysOf(t, name, o)
			}
		})
	}
}

// selectsNodes checks which nodes an object of an example is for.
func selectsNodes(t *testing.T, o *unstructured.Unstructured, nodes map[string]*corev1.Node) {
	t.Helper()
	switch o.GetKind() {
	case "ResourceFlavor": // Kueue makes them the nodeSelector of the Pods
		want := map[string][]string{"gdr-pix": {"ready"}, "gdr-pxb": nil, "gdr": {"far", "ready"}}
		selector, _, err := unstructured.NestedStringMap(o.Object, "spec", "nodeLabels")
		if err != nil {
			t.Fatal(err)
		}
		expectPicked(t, o.GetName(), corev1.PodSpec{NodeSelector: selector}, nodes, want[o.GetName()]...)
	case "Topology": // a node must have all labels
		levels := list(t, o.Object, "spec", "levels")
		first, last := levels[0].(map[string]any)["nodeLabel"], levels[len(levels)-1].(map[string]any)["nodeLabel"]
		if _, ok := nodes["ready"].Labels[fmt.Sprint(first)]; !ok || last != corev1.LabelHostname {
			t.Errorf("levels from %v to %v", first, last)
		}
	case "HyperNode":
		want := map[string][]string{"gdr-pix": {"ready"}, "gdr-pxb": nil, "gdr-switch": nil}
		var got []string
		for _, member := range list(t, o.Object, "spec", "members") {
			match, found, err := unstructured.NestedMap(member.(map[string]any), "selector", "labelMatch")
			if err != nil {
				t.Fatal(err)
			}
			if !found {
				continue
			}
			selector, err := metav1.LabelSelectorAsSelector(convert[metav1.LabelSelector](t, &unstructured.Unstructured{Object: match}))
			if err != nil {
				t.Fatal(err)
			}
			for name, node := range nodes {
				if selector.Matches(labels.Set(node.Labels)) {
					got = append(got, name)
				}
			}
		}
		if slices.Sort(got); !slices.Equal(got, want[o.GetName()]) {
			t.Errorf("HyperNode %s has %q, want %q", o.GetName(), got, want[o.GetName()])
		}
	case "Job":
		if o.GroupVersionKind().Group != batchv1.GroupName {
			template := list(t, o.Object, "spec", "tasks")[0].(map[string]any)["template"].(map[string]any)
			pod := convert[corev1.Pod](t, &unstructured.Unstructured{Object: template})
			expectPicked(t, "Volcano's job", pod.Spec, nodes, "ready")
			return
		}
		// Kueue's, to which it adds the flavor's nodeSelector.
		if pod := convert[batchv1.Job](t, o).Spec.Template; len(pod.Spec.NodeSelector) > 0 {
			t.Errorf("Kueue's job has a nodeSelector of its own: %v", pod.Spec.NodeSelector)
		}
	case "MPIJob":
		pods := map[string]*corev1.Pod{}
		for _, role := range []string{"Launcher", "Worker"} {
			template, _, err := unstructured.NestedMap(o.Object, "spec", "mpiReplicaSpecs", role, "template")
			if err != nil {
				t.Fatal(err)
			}
			pods[role] = convert[corev1.Pod](t, &unstructured.Unstructured{Object: template})
		}
		expectPicked(t, "KAI's job", pods["Worker"].Spec, nodes, "far", "ready")
		if diff := cmp.Diff(pods["Worker"].Spec.Tolerations, pods["Launcher"].Spec.Tolerations); diff != "" {
			t.Errorf("both go to nodes with GPUs (-tolerations of the workers +of the launcher):\n%s", diff)
		}
	default:
		if !slices.Contains([]string{"ClusterQueue", "LocalQueue"}, o.GetKind()) { // which select no nodes
			t.Errorf("a %s", o.GetKind())
		}
	}
}

// list returns a list of an object, which must not be empty.
func list(t *testing.T, object map[string]any, fields ...string) []any {
	t.Helper()
	all, _, err := unstructured.NestedSlice(object, fields...)
	if err != nil || len(all) == 0 {
		t.Fatalf("%q: %v, error %v", fields, all, err)
	}
	return all
}

// keysOf checks that the scheduler's source code names the labels and annotations that the
// object has for it: no schema does.
func keysOf(t *testing.T, scheduler string, o *unstructured.Unstructured) {
	t.Helper()
	keys := slices.Collect(maps.Keys(o.GetLabels()))
	keys = slices.AppendSeq(keys, maps.Keys(o.GetAnnotations()))
	for _, kind := range []string{"labels", "annotations"} {
		of, _, err := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", kind)
		if err != nil {
			t.Fatal(err)
		}
		keys = slices.AppendSeq(keys, maps.Keys(of))
	}
	for _, key := range keys {
		if !inSource(t, scheduler, `"`+key+`"`) {
			t.Errorf("%s knows no %s", scheduler, key)
		}
	}
	if inSource(t, scheduler, `"`+scheduler+`/gdr"`) {
		t.Errorf("%s knows everything", scheduler)
	}
}

// inSource reports whether a text is in the source code of a scheduler.
func inSource(t *testing.T, scheduler, text string) bool {
	t.Helper()
	dir, err := filepath.EvalSymlinks(program(scheduler))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	err = filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		source, err := os.ReadFile(name)
		if strings.Contains(string(source), text) {
			found = true
			return fs.SkipAll
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// slinky is the annotation that Slinky's operator reads.
const slinky = "features.slinky.slurm.net/spec"

// nfd-master writes the annotation for Slinky with the rights that NFD's own manifests give
// it. The annotation follows the level, goes when the node is no longer ready, and leaves
// other annotations alone.
func TestSlinky(t *testing.T) {
	t.Parallel()
	rules := shipped(t, "examples/schedulers/slinky.yaml")
	for _, o := range rules {
		if o.GetKind() != "NodeFeatureRule" {
			t.Errorf("a %s: only rules are needed", o.GetKind())
		}
	}
	if err := shared.apply(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		all := shared.admin.nfd.NfdV1alpha1().NodeFeatureRules()
		for _, o := range rules {
			if err := all.Delete(context.WithoutCancel(t.Context()), o.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})

	node := newNode(t, &shared, "slinky")
	a := node.run(t, machine(t, "dell-xe9680-h100", "ready"))
	for _, step := range []struct{ machine, state, want string }{
		{"dell-xe9680-h100", "ready", "gdr,gdr-pix"},
		{"a40-8gpu-2cx7-nccl1343", "ready", "gdr,gdr-node"},
		{"a40-8gpu-2cx7-nccl1343", "closed-no-peermem", ""},
		{"broadcom-nested", "ready", "gdr,gdr-pxb"},
	} {
		if err := a.process.stop(); err != nil {
			t.Fatal(err)
		}
		a.tree = machine(t, step.machine, step.state)
		a.process.args = a.arguments()
		if err := a.process.start(); err != nil {
			t.Fatal(err)
		}
		node.expect(t, labelsOf(t, a.tree))
		if err := until(t.Context(), patience, func(ctx context.Context) error {
			now, err := shared.admin.kube.CoreV1().Nodes().Get(ctx, node.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if got := now.Annotations[slinky]; got != step.want || now.Annotations["node.alpha.kubernetes.io/ttl"] != "0" {
				return fmt.Errorf("%s, %s: annotations %v, want %s %q", step.machine, step.state, now.Annotations, slinky, step.want)
			}
			return nil
		}, node.processes()...); err != nil {
			t.Fatal(err)
		}
	}
}
