package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	nfdv1alpha1 "sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
)

// agentName is what everything of the agent is called: namespace, service
// account, role, DaemonSet.
const agentName = "gdr-features"

// deployAgent applies what we ship, the default variant, and waits until its
// admission policy counts. The DaemonSet stays without pods.
func (c *cluster) deployAgent(ctx context.Context) error {
	objects, err := render(ctx, "kustomize", "build", deploy+"/kustomize/base")
	if err != nil {
		return err
	}
	if err := c.apply(ctx, objects); err != nil {
		return err
	}
	token, err := c.token(ctx, agentName, agentName, nil)
	if err != nil {
		return err
	}
	a, err := c.access(token)
	if err != nil {
		return err
	}
	return until(ctx, 20*time.Second, func(ctx context.Context) error {
		const policy = "ValidatingAdmissionPolicy 'gdr-features'"
		err := a.write(ctx, feature("control-plane"), metav1.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), policy) {
			return fmt.Errorf("the admission policy does not count: error %w", err)
		}
		return nil
	}, c.processes()...)
}

// feature gives the NodeFeature of a node, as its agent names and labels it.
func feature(node string) *nfdv1alpha1.NodeFeature {
	return &nfdv1alpha1.NodeFeature{
		TypeMeta: metav1.TypeMeta{APIVersion: nfdv1alpha1.SchemeGroupVersion.String(), Kind: "NodeFeature"},
		ObjectMeta: metav1.ObjectMeta{
			Name: agentName + "-" + node, Namespace: agentName,
			Labels: map[string]string{nfdv1alpha1.NodeFeatureObjNodeNameLabel: node},
		},
		// Its Go type writes null for what is not set, which its schema refuses.
		Spec: nfdv1alpha1.NodeFeatureSpec{Features: *nfdv1alpha1.NewFeatures(), Labels: map[string]string{}},
	}
}

// createPod makes a pod of the deployed DaemonSet on a node.
func (c *cluster) createPod(ctx context.Context, node string) (*corev1.Pod, error) {
	set, err := c.admin.kube.AppsV1().DaemonSets(agentName).Get(ctx, agentName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pod := podOf(&set.Spec.Template)
	pod.Spec.NodeName = node
	return c.admin.kube.CoreV1().Pods(agentName).Create(ctx, pod, metav1.CreateOptions{})
}

// podOf makes a pod from the template, as a controller does.
func podOf(template *corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.GenerateName = agentName + "-"
	return pod
}
