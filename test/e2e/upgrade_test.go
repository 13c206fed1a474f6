package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// old is the directory below .bin with the sources of the version that was published before
// this one, and in its bin its programs. build.sh says which version that is.
const old = "old"

// TestUpgrade upgrades the agents of a cluster node by node from the version that was
// published before, and goes back. At each moment each Node has the labels that its agent has
// published: none is missing for a moment, and none has another value.
func TestUpgrade(t *testing.T) {
	slow(t)
	testUpgrade(t, "")
}

// testUpgrade is TestUpgrade with the NFD in a directory below .bin.
func testUpgrade(t *testing.T, nfd string) {
	if _, err := os.Stat(program(filepath.Join(old, "bin"))); err != nil {
		t.Fatalf("%v: build.sh builds it from an older commit, which this clone may lack; "+
			"run git fetch --unshallow, or git fetch origin with the OLD_REF that build.sh names, and build.sh again", err)
	}
	c := ownCluster(t, "upgrade", nfd, (*cluster).startEmpty)
	oldVersion := release{filepath.Join(old, "bin", agentName), program(filepath.Join(old, "deploy"))}
	newVersion := release{agentName, deploy}
	if err := c.deployAgentOf(t.Context(), oldVersion.manifests); err != nil {
		t.Fatal(err)
	}
	all := []*upgraded{
		{node: newNode(t, c, "first"), tree: machine(t, "dell-xe9680-h100", "ready")},
		{node: newNode(t, c, "file"), tree: machine(t, "dell-xe9680-h100", "ready"), args: []string{"--publish=file"}},
		{node: newNode(t, c, "amd"), tree: machine(t, "supermicro-mi300x-thor2", "ready")},
		{node: newNode(t, c, "incapable"), tree: machine(t, "geforce-4x4090", "ready")},
		{node: newNode(t, c, "last"), tree: machine(t, "dell-xe9680-h100", "ready")},
	}
	all[1].work(t, time.Second)
	first, last := all[0], all[len(all)-1]
	t.Parallel() // only now: a cluster that starts takes CPU time from other tests

	for _, n := range all {
		n.publish(t, oldVersion)
	}
	recorded := c.recordLabels(t)
	announced(t, all, oldVersion, newVersion)

	for _, step := range []struct {
		name   string
		to     release
		change func(*testing.T, string)
	}{{"upgrade", newVersion, load}, {"downgrade", oldVersion, unload}} {
		t.Logf("%s: the manifests", step.name)
		if err := c.deployAgentOf(t.Context(), step.to.manifests); err != nil {
			t.Fatal(err)
		}
		for _, n := range all {
			if n == last {
				// Agents of both versions notice and publish a change.
				for _, n := range []*upgraded{first, last} {
					step.change(t, n.tree)
				}
				for _, n := range []*upgraded{first, last} {
					n.expectLabels(t)
				}
			}
			t.Logf("%s: the agent of %s", step.name, n.name)
			n.publish(t, step.to)
		}
	}
	history := recorded()
	for _, n := range all {
		for _, what := range n.wrong(history[n.name]) {
			t.Errorf("%s: %s", n.name, what)
		}
	}
}

// release is a version of this repository.
type release struct {
	program   string // gdr-features, by its path below .bin
	manifests string // its deploy
}

// upgraded is a node whose agent is exchanged for that of another version.
type upgraded struct {
	*node
	tree  string
	args  []string // of the agent
	agent *agent
	runs  release
	// labels are what the Node has had to have, one after another.
	labels []map[string]string
}

// publish ends the agent, as a DaemonSet's controller and the kubelet do, and starts that of
// a version. It returns when the Node has its labels.
func (n *upgraded) publish(t *testing.T, v release) {
	t.Helper()
	if n.agent != nil {
		if err := n.agent.process.stop(); err != nil {
			t.Fatal(err)
		}
		if err := n.cluster.admin.kube.CoreV1().Pods(agentName).Delete(t.Context(), n.agent.pod.Name, *metav1.NewDeleteOptions(0)); err != nil {
			t.Fatal(err)
		}
	}
	n.agent, n.runs = n.runProgram(t, v.program, n.tree, n.args...), v
	settle() // both versions may give the same labels
	n.expectLabels(t)
}

// expectLabels waits until the Node has the labels that its agent's version prints.
func (n *upgraded) expectLabels(t *testing.T) {
	t.Helper()
	labels := parse(t, printedBy(t, n.runs.program, n.tree))
	n.expect(t, labels)
	n.labels = append(n.labels, labels)
}

// wrong compares the values that each label of the Node has had with those that it should
// have had, one after another.
func (n *upgraded) wrong(history []map[string]string) (wrong []string) {
	for _, name := range namesIn(slices.Concat(n.labels, history)) {
		if diff := cmp.Diff(valuesOf(name, n.labels), valuesOf(name, history)); diff != "" {
			wrong = append(wrong, fmt.Sprintf("values of %s one after another (-want +got):\n%s", name, diff))
		}
	}
	return wrong
}

// namesIn returns the names of all labels but the one that the Node was created with.
func namesIn(all []map[string]string) []string {
	names := map[string]string{}
	for _, labels := range all {
		maps.Copy(names, labels)
	}
	delete(names, corev1.LabelHostname)
	return slices.Sorted(maps.Keys(names))
}

// A label that is missing for a moment or has another value is found, whatever comes after.
func TestWrong(t *testing.T) {
	l := func(pairs ...string) map[string]string {
		labels := map[string]string{corev1.LabelHostname: "n"}
		for i := 0; i < len(pairs); i += 2 {
			labels[pairs[i]] = pairs[i+1]
		}
		return labels
	}
	before, after := l("a", "1", "b", "1"), l("a", "1", "b", "2", "c", "1")
	n := &upgraded{labels: []map[string]string{before, after, before}}
	for _, c := range []struct {
		name    string
		history []map[string]string
		wrong   int
	}{
		{"as it should be", []map[string]string{before, after, before}, 0},
		{"in small steps", []map[string]string{before, before, l("a", "1", "b", "2"), after, l("a", "1", "b", "1", "c", "1"), before}, 0},
		{"one missing", []map[string]string{before, l("b", "1"), after, before}, 1},
		{"all missing", []map[string]string{before, l(), after, before}, 2},
		{"new one lost and back", []map[string]string{before, after, before, after, before}, 2},
		{"another value", []map[string]string{before, l("a", "2", "b", "1"), after, before}, 1},
		{"another label", []map[string]string{before, l("a", "1", "b", "1", "d", "1"), after, before}, 1},
		{"never upgraded", []map[string]string{before}, 2},
		{"nothing seen", nil, 3},
	} {
		if got := n.wrong(c.history); len(got) != c.wrong {
			t.Errorf("%s: %d labels are wrong: %q", c.name, len(got), got)
		}
	}
}

// valuesOf returns the values that a label has one after another; "" is no label.
func valuesOf(name string, history []map[string]string) []string {
	var values []string
	for _, labels := range history {
		values = append(values, labels[name])
	}
	return slices.Compact(values)
}

// recordLabels records the labels of all Nodes from now on. The function that it gives ends
// that and returns, for each Node, what labels it has had one after another.
func (c *cluster) recordLabels(t *testing.T) (recorded func() map[string][]map[string]string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	nodes := c.admin.kube.CoreV1().Nodes()
	now, err := nodes.List(ctx, metav1.ListOptions{}) // without its version, the watch could begin with an older state
	if err != nil {
		t.Fatal(err)
	}
	history := map[string][]map[string]string{}
	for i := range now.Items {
		history[now.Items[i].Name] = []map[string]string{now.Items[i].Labels}
	}
	w, err := nodes.Watch(ctx, metav1.ListOptions{ResourceVersion: now.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		for e := range w.ResultChan() {
			if now, ok := e.Object.(*corev1.Node); ok {
				history[now.Name] = append(history[now.Name], now.Labels)
			}
		}
		err := ctx.Err()
		if err == nil {
			err = errors.New("the watch of the Nodes ended")
		}
		ended <- err
	}()
	return func() map[string][]map[string]string {
		settle() // the watch is behind
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		return history
	}
}

// announced finds each label that the new version adds, removes or gives another value on one
// of these nodes in the first section of CHANGELOG.md, or in the files that will go there.
func announced(t *testing.T, all []*upgraded, before, after release) {
	t.Helper()
	text, err := os.ReadFile(repository + "/CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	newest, _, _ := strings.Cut(strings.SplitAfterN(string(text), "\n## ", 2)[1], "\n## ")
	coming, err := filepath.Glob(repository + "/changes/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range coming {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		newest += string(text)
	}
	changed := map[string]bool{}
	for _, n := range all {
		was, is := parse(t, printedBy(t, before.program, n.tree)), parse(t, printedBy(t, after.program, n.tree))
		for _, name := range namesIn([]map[string]string{was, is}) {
			if was[name] != is[name] {
				changed[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		t.Logf("the new version changes %s", name)
		if !strings.Contains(newest, "`"+strings.TrimPrefix(name, prefix)+"`") {
			t.Errorf("%s changes, and neither CHANGELOG.md nor changes says so", name)
		}
	}
}
