package e2e

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The agent runs on Linux nodes of both architectures, cordoned and tainted ones included, and
// not on nodes that are no machines.
func TestAgentNodes(t *testing.T) {
	t.Parallel()
	nodes := map[string]*corev1.Node{}
	for name, labels := range map[string]map[string]string{
		"amd64":           {},
		"arm64":           {corev1.LabelArchStable: "arm64"},
		"eks-hybrid":      {"eks.amazonaws.com/compute-type": "hybrid"},
		"fargate":         {"eks.amazonaws.com/compute-type": "fargate"},
		"ppc64le":         {corev1.LabelArchStable: "ppc64le"},
		"virtual-kubelet": {"type": "virtual-kubelet"},
		"windows":         {corev1.LabelOSStable: "windows"},
	} {
		all := map[string]string{corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}
		maps.Copy(all, labels)
		nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}}
	}
	set := only[appsv1.DaemonSet](t, kustomized(t, "base", []string{}), "DaemonSet")
	expectPicked(t, "the agent", set.Spec.Template.Spec, nodes, "amd64", "arm64", "eks-hybrid")
	if got := set.Spec.Template.Spec.Tolerations; len(got) != 1 || got[0].Key != "" || got[0].Operator != corev1.TolerationOpExists || got[0].Effect != "" {
		t.Errorf("tolerations %v do not tolerate every taint", got)
	}
}
