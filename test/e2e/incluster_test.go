package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestMapExamples: the API server accepts the examples in which an initContainer writes the
// map, their Pods go to nodes that are ready, and the volume, the devices and the file of
// the initContainer are those of the container that reads them.
func TestMapExamples(t *testing.T) {
	const namespace = "map-examples"
	createNamespace(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, "default")
	install(t, "mpijobs.yaml")
	nodes := fleet(t)
	for name, want := range map[string]struct {
		pods  int      // with an initContainer
		nodes []string // that they go to
		set   []string // variables that the file sets
	}{
		"env-job":        {1, []string{"ready"}, []string{"NCCL_IB_HCA"}},
		"nccl":           {1, []string{"ready"}, []string{"NCCL_IB_HCA"}},
		"vllm":           {2, []string{"ready"}, []string{"VLLM_GPU_NIC_PCIE_MAPPING", "VLLM_NIC_SELECTION_VARS"}},
		"sglang":         {2, []string{"ready"}, nil}, // a file that it reads itself
		"vllm-nodes":     {1, []string{"ready"}, []string{"NCCL_IB_HCA"}},
		"sglang-nodes":   {1, []string{"ready"}, []string{"NCCL_IB_HCA"}},
		"mpijob":         {1, []string{"ready"}, []string{"NCCL_IB_HCA"}},
		"mpijob-nvshmem": {1, []string{"ready"}, []string{"NVSHMEM_HCA_LIST"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := shipped(t, "examples/"+name+".yaml")
			for _, o := range objects {
				o.SetNamespace(namespace)
			}
			if err := shared.apply(t.Context(), objects, metav1.DryRunAll); err != nil {
				t.Errorf("refused: %v", err)
			}
			var all []corev1.PodSpec
			for _, o := range objects {
				all = append(all, podSpecs(t, o.Object)...)
			}
			specs := slices.DeleteFunc(slices.Clone(all), func(s corev1.PodSpec) bool { return len(s.InitContainers) == 0 })
			if len(specs) != want.pods {
				t.Fatalf("%d Pods with an initContainer, want %d", len(specs), want.pods)
			}
			for _, spec := range specs {
				expectPicked(t, name, spec, nodes, want.nodes...)
				file := sharedFile(t, &spec)
				if !slices.ContainsFunc(all, func(s corev1.PodSpec) bool { return reads(s.Containers[0], file) }) {
					t.Errorf("no container reads %s", file)
				}
				if path.Ext(file) == ".json" {
					file := printedFile(t, &spec)
					if !json.Valid(file) {
						t.Errorf("the map is\n%s", file)
					}
					continue
				}
				if diff := cmp.Diff(want.set, variables(t, &spec)); diff != "" {
					t.Errorf("variables (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestMapPage: the Pod of docs/env.md is a part of that in examples/env-job.yaml.
func TestMapPage(t *testing.T) {
	objects, err := decode([]byte(blocksBelow(t, repository+"/docs/env.md", "## In a Pod", "yaml")[0]))
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	page := convert[corev1.PodSpec](t, objects[0])
	spec := only[batchv1.Job](t, shipped(t, "examples/env-job.yaml"), "Job").Spec.Template.Spec
	part := func(c corev1.Container) corev1.Container {
		return corev1.Container{Name: c.Name, Args: c.Args, Command: commandWords(c.Command), Resources: c.Resources, VolumeMounts: c.VolumeMounts}
	}
	for i, c := range []corev1.Container{spec.InitContainers[0], spec.Containers[0]} {
		shown := []corev1.Container{page.InitContainers[0], page.Containers[0]}[i]
		if diff := cmp.Diff(part(c), part(shown)); diff != "" {
			t.Errorf("(-examples/env-job.yaml +docs/env.md):\n%s", diff)
		}
	}
}

// commandWords are the words of a command; lines and semicolons are alike to a shell.
func commandWords(command []string) []string {
	return strings.Fields(strings.ReplaceAll(strings.Join(command, " "), ";", " "))
}

// podSpecs returns the Pods of the templates in an object, however deep.
func podSpecs(t *testing.T, object map[string]any) (specs []corev1.PodSpec) {
	t.Helper()
	for key, value := range object {
		list, _ := value.([]any) // of tasks, each with its template
		for _, of := range list {
			if inner, ok := of.(map[string]any); ok {
				specs = append(specs, podSpecs(t, inner)...)
			}
		}
		inner, ok := value.(map[string]any)
		if !ok {
			continue
		}
		if key != "template" {
			specs = append(specs, podSpecs(t, inner)...)
			continue
		}
		var template corev1.PodTemplateSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(inner, &template, true); err != nil {
			t.Fatal(err)
		}
		specs = append(specs, template.Spec)
	}
	return specs
}

// sharedFile returns the file that the initContainer writes. It must lie in a volume that the
// first container has at the same place, and both must have the same devices.
func sharedFile(t *testing.T, spec *corev1.PodSpec) string {
	t.Helper()
	first, main := &spec.InitContainers[0], &spec.Containers[0]
	if diff := cmp.Diff(first.Resources, main.Resources); diff != "" || len(first.Resources.Limits) != 2 {
		t.Errorf("%s and %s have other devices (-first +second):\n%s", first.Name, main.Name, diff)
	}
	at := slices.Index(first.Args, "-f")
	if at < 0 || at+1 == len(first.Args) {
		t.Fatalf("%q writes no file", first.Args)
	}
	file := first.Args[at+1]
	mount := func(c *corev1.Container) string {
		for _, m := range c.VolumeMounts {
			if m.MountPath == path.Dir(file) {
				return m.Name
			}
		}
		return "none of " + c.Name
	}
	if mount(first) != mount(main) || !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount(first) && v.EmptyDir != nil }) {
		t.Errorf("%s is in the volume %s, read from %s", file, mount(first), mount(main))
	}
	return file
}

// reads reports whether a container's shell reads a file of variables, or its program a map.
func reads(c corev1.Container, file string) bool {
	command := strings.Join(c.Command, " ")
	return strings.Contains(command, ". "+file) || strings.Contains(command, "--disaggregation-ib-device="+file)
}

// printedFile returns the file that the initContainer's program writes on a machine.
func printedFile(t *testing.T, spec *corev1.PodSpec) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	args := slices.Clone(spec.InitContainers[0].Args)
	args[slices.Index(args, "-f")+1] = file
	c := exec.CommandContext(t.Context(), program("gdr-features"), append([]string{"--root", machine(t, "dell-xe9680-h100", "ready")}, args...)...)
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 && !slices.Contains(args, "file") {
		t.Fatalf("%q: %v, %s", args, err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// variables are those that the initContainer's program sets on a machine, but for the order
// in which CUDA counts.
func variables(t *testing.T, spec *corev1.PodSpec) (names []string) {
	t.Helper()
	for line := range strings.Lines(string(printedFile(t, spec))) {
		if name, ok := strings.CutPrefix(line, "export "); ok {
			name, _, _ = strings.Cut(name, "=")
			names = append(names, name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "CUDA_DEVICE_ORDER" })
}
