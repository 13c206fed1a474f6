package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pool is the label by which the pages select their nodes.
const pool = "pool"

// shownNodes are the nodes of the pages, by name: a machine of testdata and the state of its
// drivers.
var shownNodes = map[string][2]string{
	"a40-1": {"a40-8gpu-2cx7-nccl1343", "ready"},
	"cpu-1": {"nic-only", "ready"},
	"hgx-1": {"dell-xe9680-h100", "ready"},
	"hgx-2": {"dell-xe9680-h100", "closed-no-peermem"},
	"hgx-3": {"dell-xe9680-h100", "no-drivers"},
	"rtx-1": {"geforce-4x4090", "ready"},
}

// What the pages show of a cluster is what kubectl prints, except for ages.
func TestReadme(t *testing.T) {
	t.Parallel()
	for name, is := range shownNodes {
		shown(t, name, is[0], is[1])
	}
	kubeconfig, err := shared.kubeconfig(t.TempDir(), "admin", shared.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, page := range allPages(t) {
		for _, block := range page.Blocks {
			if block.Kind != "cluster" {
				continue
			}
			blocks++
			printed := ""
			for _, command := range block.Commands {
				out, errs, status := shell(t, kubeconfig, command)
				if status != 0 || errs != "" {
					t.Errorf("%s: %s: status %d\n%s", page.Path, command, status, errs)
				}
				printed += "$ " + command + "\n" + out
			}
			if diff := cmp.Diff(fields(block.Text), fields(printed)); diff != "" {
				t.Errorf("%s (-page +kubectl):\n%s\nkubectl printed\n%s", page.Path, diff, printed)
			}
		}
	}
	if blocks < 5 {
		t.Errorf("only %d blocks of commands", blocks)
	}
}

// shown creates a node of the pages: it has the agent's labels, and looks as if it had a
// kubelet.
func shown(t *testing.T, name, kind, state string) {
	t.Helper()
	n := newNode(t, &shared, name)
	tree := machine(t, kind, state)
	n.run(t, tree)
	want := parse(t, printed(t, tree))
	nodes := n.cluster.admin.kube.CoreV1().Nodes()
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		now, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for key, value := range want {
			if now.Labels[key] != value {
				return fmt.Errorf("%s is %q, want %q", key, now.Labels[key], value)
			}
		}
		return nil
	}, n.processes()...); err != nil {
		t.Fatal(err)
	}
	n.label(t, pool, "train")
	n.patch(t, `{"status":{"conditions":[{"type":"Ready","status":"True"}],"nodeInfo":{"kubeletVersion":"v1.35.3"}}}`, "status")
}

// fields splits a table into rows and words, with ages masked.
func fields(table string) (rows [][]string) {
	for line := range strings.Lines(masked(table)) {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}
