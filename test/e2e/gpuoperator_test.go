//go:build gpuoperator

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The chart of the GPU Operator in the directory GPU_OPERATOR, v26.7 or newer, makes of our
// values what they promise, and the API server with its custom resources accepts these objects
// and our NVIDIADrivers.
func TestGPUOperator(t *testing.T) {
	dir := filepath.Join(os.Getenv("GPU_OPERATOR"), "deployments/gpu-operator")
	crds, err := filepath.Glob(filepath.Join(dir, "crds/nvidia.com_*.yaml"))
	if err != nil || len(crds) == 0 {
		t.Fatalf("no custom resources in %s, error %v; GPU_OPERATOR=DIR hack/check.sh gpu-operator needs the sources of the GPU Operator", dir, err)
	}
	for _, file := range crds {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := decode(text)
		if err == nil {
			err = shared.apply(t.Context(), objects)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string][]string{
		"values.yaml":               {"ClusterPolicy"},
		"values-gpucluster.yaml":    {"GPUCluster"},
		"values-clusterpolicy.yaml": {"ClusterPolicy"},
	} {
		objects, err := render(t.Context(), "helm", "template", "gpu-operator", dir, "--namespace", "gpu-operator", "--kube-version", "v1.35.3",
			"--api-versions", "resource.k8s.io/v1/DeviceClass", "--set", "nfd.enabled=false", "--values", deploy+"/gpu-operator/"+file)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, o := range objects {
			if !strings.HasPrefix(o.GetAPIVersion(), "nvidia.com/") {
				continue
			}
			kinds = append(kinds, o.GetKind())
			if err := shared.applyOne(t.Context(), o, metav1.DryRunAll); err != nil {
				t.Errorf("%s: refused: %v", file, err)
			}
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("%s: the chart makes %q, want %q", file, kinds, want)
		}
	}
	if err := shared.apply(t.Context(), shipped(t, "gpu-operator/nvidiadrivers.yaml"), metav1.DryRunAll); err != nil {
		t.Errorf("refused: %v", err)
	}
}
