package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	nfdv1alpha1 "sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
)

// agentName is the name of the agent's namespace, service account, role and DaemonSet.
const agentName = "gdr-features"

// deployAgent applies the default variant of our manifests and waits until the admission
// policy is in force. The DaemonSet has no Pods.
func (c *cluster) deployAgent(ctx context.Context) error { return c.deployAgentOf(ctx, deploy) }

// deployAgentOf is deployAgent with the manifests of another version.
func (c *cluster) deployAgentOf(ctx context.Context, manifests string) error {
	objects, err := render(ctx, "kustomize", "build", manifests+"/kustomize/base")
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
	return until(ctx, patience, func(ctx context.Context) error {
		const policy = "ValidatingAdmissionPolicy 'gdr-features'"
		err := a.write(ctx, feature("control-plane"), metav1.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), policy) {
			return fmt.Errorf("the admission policy does not count: error %w", err)
		}
		return nil
	}, c.processes()...)
}

// agent is the node agent as it runs on a node.
type agent struct {
	*node
	pod *corev1.Pod
	// tree is the directory with the machine that it reads.
	tree    string
	process *process
}

// run starts the agent on the node, for the machine in the tree, with the token of a Pod of
// our DaemonSet. It is stopped after the test.
func (n *node) run(t *testing.T, tree string, args ...string) *agent {
	t.Helper()
	return n.runProgram(t, agentName, tree, args...)
}

// runProgram is run with the agent of another version, by its path below .bin.
func (n *node) runProgram(t *testing.T, path, tree string, args ...string) *agent {
	t.Helper()
	a := n.prepare(t, tree)
	var err error
	a.process, err = start(n.dir, path, a.environment(), a.arguments(args...)...)
	if err != nil {
		t.Fatal(err)
	}
	stopAfter(t, a.process)
	return a
}

// prepare gives the node a Pod of the agent, and a kubeconfig with its token.
func (n *node) prepare(t *testing.T, tree string) *agent {
	t.Helper()
	pod, err := n.cluster.createPod(t.Context(), n.name)
	if err != nil {
		t.Fatal(err)
	}
	token, err := n.cluster.token(t.Context(), agentName, agentName, pod)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.cluster.kubeconfig(n.dir, agentName, token); err != nil {
		t.Fatal(err)
	}
	return &agent{node: n, pod: pod, tree: tree}
}

// environment is the environment that the DaemonSet gives the agent.
func (a *agent) environment() []string {
	all := []string{"NODE_NAME=" + a.name, "POD_NAMESPACE=" + agentName}
	for _, e := range a.pod.Spec.Containers[0].Env {
		if e.Value != "" {
			all = append(all, e.Name+"="+e.Value)
		}
	}
	return all
}

// arguments adds the flags that a process outside of a Pod needs.
func (a *agent) arguments(more ...string) []string {
	return append([]string{
		"run", "--root=" + a.tree, "--listen=", "--interval=1s", "--settle=1s",
		"--kubeconfig=" + filepath.Join(a.dir, agentName+".kubeconfig"), "--features-dir=" + filepath.Join(a.dir, "features.d"),
	}, more...)
}

// command runs another process of the agent on the node until it ends by itself.
func (a *agent) command(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(agentName), a.arguments(args...)...)
	cmd.Env = a.environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gdr-features %q: %v\n%s", cmd.Args[1:], err, out)
	}
}

// published returns the agent's NodeFeature.
func (a *agent) published(ctx context.Context) (*nfdv1alpha1.NodeFeature, error) {
	return a.cluster.admin.nfd.NfdV1alpha1().NodeFeatures(agentName).Get(ctx, feature(a.name).Name, metav1.GetOptions{})
}

// right returns an error unless the agent is running and its NodeFeature has these labels.
func (a *agent) right(ctx context.Context, labels map[string]string) error {
	if err := a.process.alive(); err != nil {
		return err
	}
	now, err := a.published(ctx)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(labels, now.Spec.Labels); diff != "" {
		return fmt.Errorf("labels of the NodeFeature (-want +got):\n%s", diff)
	}
	return nil
}

// feature returns the NodeFeature of a node, as its agent names and labels it.
func feature(node string) *nfdv1alpha1.NodeFeature {
	return &nfdv1alpha1.NodeFeature{
		TypeMeta: metav1.TypeMeta{APIVersion: nfdv1alpha1.SchemeGroupVersion.String(), Kind: "NodeFeature"},
		ObjectMeta: metav1.ObjectMeta{
			Name: agentName + "-" + node, Namespace: agentName,
			Labels: map[string]string{nfdv1alpha1.NodeFeatureObjNodeNameLabel: node, "app.kubernetes.io/managed-by": agentName},
		},
		// The Go type writes null for unset fields, which the schema refuses.
		Spec: nfdv1alpha1.NodeFeatureSpec{Features: *nfdv1alpha1.NewFeatures(), Labels: map[string]string{}},
	}
}

// createPod creates a Pod of the deployed DaemonSet on a node.
func (c *cluster) createPod(ctx context.Context, node string) (*corev1.Pod, error) {
	set, err := c.admin.kube.AppsV1().DaemonSets(agentName).Get(ctx, agentName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pod := podOf(&set.Spec.Template)
	pod.Spec.NodeName = node
	return c.admin.kube.CoreV1().Pods(agentName).Create(ctx, pod, metav1.CreateOptions{})
}

// podOf makes a Pod from the template, as a controller does.
func podOf(template *corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.GenerateName = agentName + "-"
	return pod
}
