package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestRestrictions: an nfd-master that stops our labels is told by the command of the page, with
// its own configuration, and does what the page says; one that stops none is told too.
func TestRestrictions(t *testing.T) {
	command := commandsBelow(t, repository+"/docs/administrator.md", "### Does my NFD let the labels through?")[0]
	allTaken(t)
	c := ownCluster(t, "restrictions", "", (*cluster).start)
	kubeconfig, err := c.kubeconfig(t.TempDir(), "admin", c.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	maps := c.admin.kube.CoreV1().ConfigMaps(nfdNamespace)
	file, args := filepath.Join(c.dir, "nfd-master.conf"), c.master.args[:len(c.master.args)-1] // without -config=
	for i, restriction := range []struct{ name, conf, option, told string }{
		{"none", "restrictions: {allowOverwrite: true}\n# denyLabelNs: [x]\n", "", "nothing stops them"},
		{"disableLabels", "restrictions:\n  disableLabels: true\n", "", "  disableLabels: true"},
		{"denyLabelNs", "denyLabelNs: [\"*.kubernetes.io\"]\n", "", `denyLabelNs: ["*.kubernetes.io"]`},
		{"allowOverwrite", "restrictions:\n  allowOverwrite: false\n", "", "  allowOverwrite: false"},
		{"argument", "", "-no-publish", "-no-publish"},
		{"options", "", `-options={"restrictions": {"disableLabels": true}}`, `-options={"restrictions": {"disableLabels": true}}`},
	} {
		t.Run(restriction.name, func(t *testing.T) {
			conf := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "nfd-master-" + fmt.Sprint(i)},
				Data:       map[string]string{"nfd-master.conf": restriction.conf},
			}
			if _, err := maps.Create(t.Context(), conf, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			c.giveMaster(t, restriction.option)
			out, errs, status := shell(t, kubeconfig, command)
			t.Logf("the command prints %q", out)
			if status != 0 || out != restriction.told+"\n" {
				t.Errorf("status %d, want %q\n%s", status, restriction.told, errs)
			}
			if err := os.WriteFile(file, []byte(restriction.conf), 0o600); err != nil {
				t.Fatal(err)
			}
			c.master.args = append(slices.Clone(args), "-config="+file)
			if restriction.option != "" {
				c.master.args = append(c.master.args, restriction.option)
			}
			if err := c.master.restart(); err != nil {
				t.Fatal(err)
			}
			n := newNode(t, c, "restricted-"+fmt.Sprint(i))
			ready := machine(t, "dell-xe9680-h100", "ready")
			labels := labelsOf(t, ready)
			a := n.run(t, ready)
			s := a.strained(t, "restrictions: "+restriction.name)
			published := func(ctx context.Context) error { return a.right(ctx, labels) }
			onNode := func(ctx context.Context) error { return n.has(ctx, labels) }
			if restriction.name != "none" && restriction.name != "allowOverwrite" {
				s.recovers(t, 10, 1, published)
				settle()
				n.expect(t, nil)
			} else {
				s.recovers(t, 10, 1, onNode)
				s = a.strained(t, "restrictions: "+restriction.name+", the drivers are gone")
				a.become(t, "no-drivers")
				labels = labelsOf(t, a.tree)
				if restriction.name == "none" {
					s.recovers(t, 10, 3, onNode) // two of them the change, and its event
				} else {
					s.recovers(t, 10, 3, published)
					settle()
					n.keeps(t, "true")
				}
			}
			if err := maps.Delete(t.Context(), conf.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// giveMaster gives nfd-master's Deployment an argument, and no other; "" for none.
func (c *cluster) giveMaster(t *testing.T, arg string) {
	t.Helper()
	args := []string{}
	if arg != "" {
		args = append(args, arg)
	}
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/spec/template/spec/containers/0/args", "value": args}})
	if err == nil {
		_, err = c.admin.kube.AppsV1().Deployments(nfdNamespace).Patch(t.Context(), "nfd-master", types.JSONPatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// confirm waits until the agent has published these labels.
func (a *agent) confirm(t *testing.T, labels map[string]string) {
	t.Helper()
	if err := until(t.Context(), patience, func(ctx context.Context) error { return a.right(ctx, labels) }, a.process); err != nil {
		t.Fatal(err)
	}
}

// become gives the agent's machine another state, and waits until the agent has published it.
func (a *agent) become(t *testing.T, state string) {
	t.Helper()
	if err := a.process.stop(); err != nil {
		t.Fatal(err)
	}
	a.tree = machine(t, "dell-xe9680-h100", state)
	a.process.args = a.arguments()
	if err := a.process.start(); err != nil {
		t.Fatal(err)
	}
	a.confirm(t, labelsOf(t, a.tree))
}

// keeps checks that the Node's label gpudirect.rdma has this value.
func (n *node) keeps(t *testing.T, value string) {
	t.Helper()
	now, err := n.cluster.admin.kube.CoreV1().Nodes().Get(t.Context(), n.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := now.Labels[prefix+"gpudirect.rdma"]; got != value {
		t.Errorf("gpudirect.rdma is %q on the Node, want %q", got, value)
	}
	t.Logf("gpudirect.rdma=%s and gdr.reason=%s are on the Node", now.Labels[prefix+"gpudirect.rdma"], now.Labels[prefix+"gdr.reason"])
}
