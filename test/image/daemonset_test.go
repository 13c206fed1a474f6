//go:build image

package image

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// daemonSet is what a DaemonSet says about how its Pods run.
type daemonSet struct {
	Spec struct {
		Template struct {
			Spec podSpec `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type podSpec struct {
	HostNetwork     bool
	HostPID         bool
	HostIPC         bool
	Volumes         []map[string]any
	Containers      []container
	SecurityContext struct {
		RunAsUser, RunAsGroup int
		RunAsNonRoot          bool
		SupplementalGroups    []int
		SeccompProfile        map[string]string
	}
}

type container struct {
	Command, Args   []string
	VolumeMounts    []map[string]any
	SecurityContext map[string]any
	Resources       struct {
		Limits map[string]string
	}
}

func readDaemonSet(t *testing.T) podSpec {
	t.Helper()
	text, err := os.ReadFile("../../deploy/kustomize/base/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d daemonSet
	if err := yaml.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("%d containers in the DaemonSet", len(d.Spec.Template.Spec.Containers))
	}
	return d.Spec.Template.Spec
}

// memoryLimit is that of the DaemonSet in bytes.
func memoryLimit(t *testing.T) int64 {
	t.Helper()
	limit, err := resource.ParseQuantity(readDaemonSet(t).Containers[0].Resources.Limits["memory"])
	if err != nil {
		t.Fatal(err)
	}
	return limit.Value()
}

// The DaemonSet asks for what testdata/pod.json has, and its arguments are the
// image's own.
func TestDaemonSet(t *testing.T) {
	var want podSpec
	want.SecurityContext.RunAsUser, want.SecurityContext.RunAsGroup = nobody, nobody
	want.SecurityContext.RunAsNonRoot = true
	want.SecurityContext.SeccompProfile = map[string]string{"type": "RuntimeDefault"}
	want.Containers = []container{{
		Args: native(t).config.Config.Cmd,
		SecurityContext: map[string]any{
			"allowPrivilegeEscalation": false,
			"readOnlyRootFilesystem":   true,
			"capabilities":             map[string]any{"drop": []any{"ALL"}},
		},
	}}
	got := readDaemonSet(t)
	got.Containers[0].Resources.Limits = nil // memoryLimit takes it over
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-testdata/pod.json +DaemonSet):\n%s", diff)
	}
}
