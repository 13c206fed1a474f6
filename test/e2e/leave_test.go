package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fleetOfTwo is a cluster of its own with two nodes: gdr-capable and gdr-incapable of
// deploy/gpu-operator/nvidiadrivers.yaml have one each.
type fleetOfTwo struct {
	*cluster
	nodes  []*node
	trees  map[string]string
	agents []*agent
}

// TestLeaving walks the steps of deploy/README.md and deploy/gpu-operator/README.md by which an
// administrator installs the drivers' objects, switches the publisher, leaves gdr-features and
// keeps the hardware labels, comes back, moves the drivers to the new label, and hands them
// over: with the commands that these pages show. At no moment is a node without the NVIDIADriver
// that it had.
func TestLeaving(t *testing.T) {
	slow(t)
	f := startFleetOfTwo(t)
	t.Parallel() // only now: a cluster that starts takes CPU time from other tests
	f.publish(t)
	f.expectAll(t)
	f.syncDrivers(t)
	lost := f.watchDrivers(t, map[string]string{"capable": "gdr-capable", "incapable": "gdr-incapable"})

	t.Run("install", f.install)
	t.Run("to feature files", f.toFiles)
	t.Run("back to NodeFeatures", f.toNodeFeatures)
	t.Run("leave and come back", f.leaveAndComeBack)
	t.Run("move to the new label", f.move)
	t.Run("hand the drivers over", f.handOver)
	allTaken(t)

	for _, what := range lost() {
		t.Error(what)
	}
}

func startFleetOfTwo(t *testing.T) *fleetOfTwo {
	t.Helper()
	f := &fleetOfTwo{cluster: ownCluster(t, "leaving", "", (*cluster).start), trees: map[string]string{
		"capable":   machine(t, "dell-xe9680-h100", "ready"),
		"incapable": machine(t, "geforce-4x4090", "ready"),
	}}
	objects := slices.Concat(built(t, "operators.yaml"), shipped(t, "gpu-operator/nvidiadrivers.yaml"), shipped(t, "kustomize/components/openshift/rolebinding.yaml"))
	if err := f.apply(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"capable", "incapable"} {
		n := newNode(t, f.cluster, name)
		n.work(t, time.Second)
		f.nodes = append(f.nodes, n)
	}
	return f
}

// publish starts the agents of the Pods that the DaemonSet would have now.
func (f *fleetOfTwo) publish(t *testing.T, args ...string) {
	t.Helper()
	f.agents = nil
	for _, n := range f.nodes {
		f.agents = append(f.agents, n.run(t, f.trees[n.name], args...))
	}
}

// end stops the agents and deletes their Pods, as a DaemonSet's controller and kubelets do.
func (f *fleetOfTwo) end(t *testing.T) {
	t.Helper()
	for _, a := range f.agents {
		if err := a.process.stop(); err != nil {
			t.Fatal(err)
		}
		if err := f.admin.kube.CoreV1().Pods(agentName).Delete(t.Context(), a.pod.Name, *metav1.NewDeleteOptions(0)); err != nil {
			t.Fatal(err)
		}
	}
	f.agents = nil
}

// expectAll waits until each Node has the labels of its machine, and no others.
func (f *fleetOfTwo) expectAll(t *testing.T, more ...string) {
	t.Helper()
	for _, n := range f.nodes {
		labels := labelsOf(t, f.trees[n.name])
		for _, name := range more {
			labels[name] = labels[prefix+gate]
		}
		n.expect(t, labels)
	}
}

// settle gives NFD's master the time of several updates.
func settle() { time.Sleep(3 * time.Second) }

// shell runs commands in a folder below deploy, as the administrator, and returns what they
// print.
func (f *fleetOfTwo) shell(t *testing.T, dir, script string) string {
	t.Helper()
	config, err := f.kubeconfig(f.dir, "admin", f.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir = filepath.Join(deploy, dir)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+config, "PATH="+program("")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", script, err, out)
	}
	t.Logf("%s\n%s", script, out)
	return string(out)
}

// install tries the commands at the top of deploy/gpu-operator/README.md, but for those of
// NVIDIA's chart, and runs those that check what came of them.
func (f *fleetOfTwo) install(t *testing.T) {
	steps := commandsBelow(t, deploy+"/gpu-operator/README.md", "# GPU Operator: nvidia-peermem only on nodes whose hardware supports it")
	if len(steps) != 2 {
		t.Fatalf("%d blocks", len(steps))
	}
	tried := 0
	for command := range strings.Lines(steps[0]) {
		if command, _, _ = strings.Cut(command, " #"); strings.HasPrefix(command, "kubectl ") {
			tried++
			f.shell(t, "gpu-operator", strings.TrimSpace(command)+" --dry-run=server")
		}
	}
	if tried != 2 {
		t.Errorf("%d commands", tried)
	}
	for command := range strings.Lines(steps[1]) {
		out := f.shell(t, "gpu-operator", command)
		for _, n := range f.nodes {
			name := n.name
			if strings.Contains(command, "nvidiadrivers") {
				name = "gdr-" + name
			}
			if !strings.Contains("\n"+out, "\n"+name+" ") {
				t.Errorf("%s: no %s in\n%s", command, name, out)
			}
		}
	}
}

// move gives the drivers the selectors that they had before there was gpudirect.rdma.connectx,
// then follows "Move from gpudirect.rdma.capable" of deploy/gpu-operator/README.md.
func (f *fleetOfTwo) move(t *testing.T) {
	steps := commandsBelow(t, deploy+"/gpu-operator/README.md", "## Move from `gpudirect.rdma.capable`")
	if len(steps) != 2 {
		t.Fatalf("%d blocks", len(steps))
	}
	labels, rest, _ := strings.Cut(steps[0], "\n")
	f.shell(t, "gpu-operator", strings.NewReplacer("OLD=", "NEW=", "NEW=", "OLD=").Replace(labels)+"\n"+rest)
	// What an older agent has labelled does not have the new label.
	older := newNode(t, f.cluster, "older")
	older.label(t, prefix+"gpudirect.rdma.capable", "true")
	missing := labels + "\n" + steps[1]
	if out := f.shell(t, "gpu-operator", missing); !strings.Contains(out, "older ") || strings.Contains(out, "capable ") {
		t.Errorf("these nodes lack the new label: %s", out)
	}
	f.shell(t, "gpu-operator", steps[0])
	older.expect(t, map[string]string{prefix + "gpudirect.rdma.capable": "true", prefix + gate: "true"})
	if out := f.shell(t, "gpu-operator", missing); !strings.Contains(out, "No resources found") {
		t.Errorf("these nodes lack the new label: %s", out)
	}
	if err := f.admin.kube.CoreV1().Nodes().Delete(t.Context(), older.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// toFiles follows "To another variant" below "Upgrade" of deploy/README.md.
func (f *fleetOfTwo) toFiles(t *testing.T) {
	steps := commandsBelow(t, deploy+"/README.md", "## Upgrade")
	if len(steps) != 2 {
		t.Fatalf("%d blocks", len(steps))
	}
	objects, err := render(t.Context(), "kustomize", "build", overlays+"feature-file")
	if err == nil {
		err = f.apply(t.Context(), objects)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.end(t)
	f.publish(t, "--publish=file")
	if err := until(t.Context(), patience, func(context.Context) error {
		out := f.shell(t, ".", steps[0])
		for node, value := range map[string]string{"capable": "true", "incapable": "false"} {
			if !hasRow(out, nfdNamespace, node, value, value) || !hasRow(out, agentName, agentName+"-"+node, value, value) {
				return fmt.Errorf("%s: not in an object that stays", node)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	f.shell(t, ".", steps[1])
	settle()
	f.expectAll(t)
	if n, err := f.admin.nfd.NfdV1alpha1().NodeFeatures(agentName).List(t.Context(), metav1.ListOptions{}); err != nil || len(n.Items) > 0 {
		t.Errorf("%d NodeFeatures are left, error %v", len(n.Items), err)
	}
	// Without this, OpenShift would admit no further Pod.
	if _, err := f.admin.kube.RbacV1().RoleBindings(agentName).Get(t.Context(), agentName+"-scc", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// toNodeFeatures is the way back.
func (f *fleetOfTwo) toNodeFeatures(t *testing.T) {
	if err := f.deployAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.end(t)
	f.publish(t)
	f.published(t)
	remove := with(t, commandsBelow(t, deploy+"/README.md", "## Uninstall"), "features.d")
	for _, n := range f.nodes {
		f.shell(t, ".", strings.Replace(remove, "/etc/kubernetes/node-feature-discovery/features.d/gdr-features.features", n.featureFile(), 1))
	}
	settle()
	f.expectAll(t)
}

// published waits until every agent has published what its machine is.
func (f *fleetOfTwo) published(t *testing.T) {
	t.Helper()
	if err := until(t.Context(), patience, func(ctx context.Context) (all error) {
		for _, a := range f.agents {
			all = errors.Join(all, a.right(ctx, labelsOf(t, a.tree)))
		}
		return all
	}); err != nil {
		t.Fatal(err)
	}
}

// leaveAndComeBack follows "Leave, and keep the hardware labels" of
// deploy/gpu-operator/README.md, then installs gdr-features again.
func (f *fleetOfTwo) leaveAndComeBack(t *testing.T) {
	steps := commandsBelow(t, deploy+"/gpu-operator/README.md", "### Leave, and keep the hardware labels")
	if len(steps) != 1 {
		t.Fatalf("%d blocks", len(steps))
	}
	first, rest, _ := strings.Cut(steps[0], "\n")
	f.shell(t, "gpu-operator", first)
	f.end(t)
	f.shell(t, "gpu-operator", rest)
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		for _, n := range f.nodes {
			now, err := f.admin.kube.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if _, ok := now.Labels[prefix+"gpudirect.rdma"]; ok {
				return fmt.Errorf("%s still has a state label", n.name)
			}
			if now.Labels[prefix+gate] == "" {
				return fmt.Errorf("%s has lost the hardware label", n.name)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	if err := f.deployAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.publish(t)
	f.published(t)
	f.expectAll(t)
}

// handOver follows "Hand the drivers over" of deploy/gpu-operator/README.md, then removes all
// that gdr-features has published.
func (f *fleetOfTwo) handOver(t *testing.T) {
	steps := commandsBelow(t, deploy+"/gpu-operator/README.md", "### Hand the drivers over")
	if len(steps) != 2 {
		t.Fatalf("%d blocks", len(steps))
	}
	depends := strings.TrimSuffix(steps[1], "\n") + " || true" // grep that finds nothing
	if f.shell(t, "gpu-operator", depends) == "" {
		t.Error("the check does not find the drivers that depend on the labels")
	}
	const mine = "example.com/gdr-connectx"
	f.shell(t, "gpu-operator", steps[0])
	f.expectAll(t, mine)
	f.syncDrivers(t)
	if out := f.shell(t, "gpu-operator", depends); out != "" {
		t.Errorf("these still depend on the labels:\n%s", out)
	}

	f.end(t)
	f.shell(t, ".", "kubectl -n gdr-features delete nodefeatures --all")
	for _, n := range f.nodes {
		n.expect(t, map[string]string{mine: labelsOf(t, f.trees[n.name])[prefix+gate]})
	}
}

// syncDrivers gives the DaemonSet of each NVIDIADriver its nodeSelector, as the GPU Operator
// does.
func (f *fleetOfTwo) syncDrivers(t *testing.T) {
	t.Helper()
	drivers, err := f.resource(shipped(t, "gpu-operator/nvidiadrivers.yaml")[0])
	if err != nil {
		t.Fatal(err)
	}
	all, err := drivers.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all.Items {
		labels := map[string]string{"app": "nvidia-driver-" + d.GetName()}
		set := &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: labels["app"], Namespace: "default"},
			Spec: appsv1.DaemonSetSpec{
				Selector:       &metav1.LabelSelector{MatchLabels: labels},
				UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{NodeSelector: selectorOf(t, &d), Containers: []corev1.Container{{Name: "driver", Image: "driver"}}},
				},
			},
		}
		sets := f.admin.kube.AppsV1().DaemonSets(set.Namespace)
		if _, err := sets.Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
			_, err = sets.Update(t.Context(), set, metav1.UpdateOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func selectorOf(t *testing.T, driver *unstructured.Unstructured) map[string]string {
	t.Helper()
	selector, _, err := unstructured.NestedStringMap(driver.Object, "spec", "nodeSelector")
	if err != nil || len(selector) == 0 {
		t.Fatalf("%s selects %v, error %v", driver.GetName(), selector, err)
	}
	return selector
}

// matching returns the names of the drivers whose selectors match labels.
func matching(labels map[string]string, drivers map[string]map[string]string) (names []string) {
	for name, selector := range drivers {
		ok := true
		for key, value := range selector {
			ok = ok && labels[key] == value
		}
		if ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// hasRow reports whether a table has a row of these fields.
func hasRow(table string, fields ...string) bool {
	for line := range strings.Lines(table) {
		if slices.Equal(strings.Fields(line), fields) {
			return true
		}
	}
	return false
}
