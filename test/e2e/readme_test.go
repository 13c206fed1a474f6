package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pool is the label by which the README selects its nodes.
const pool = "pool"

// What the README shows of a cluster is what kubectl prints, except for the age.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)<!-- nodes -->\n```console\n\\$ (.*?)\n(NAME.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("the README shows no nodes")
	}
	for name, is := range map[string][2]string{
		"a40-1": {"a40-8gpu-2cx7-nccl1343", "ready"},
		"cpu-1": {"nic-only", "ready"},
		"hgx-1": {"dell-xe9680-h100", "ready"},
		"hgx-2": {"dell-xe9680-h100", "closed-no-peermem"},
		"hgx-3": {"dell-xe9680-h100", "no-drivers"},
		"rtx-1": {"geforce-4x4090", "ready"},
	} {
		shown(t, name, is[0], is[1])
	}
	kubeconfig, err := shared.kubeconfig(t.TempDir(), "admin", shared.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	out, errs, status := shell(t, kubeconfig, string(block[1]))
	if status != 0 {
		t.Fatalf("%s: status %d\n%s", block[1], status, errs)
	}
	if diff := cmp.Diff(fields(string(block[2])), fields(out)); diff != "" {
		t.Errorf("nodes (-README +kubectl):\n%s\nkubectl printed\n%s", diff, out)
	}

	block = regexp.MustCompile("(?s)<!-- fleet -->\n```console\n\\$ (.*?)\n(NODE.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("the README shows no fleet")
	}
	out, errs, status = shell(t, kubeconfig, string(block[1]))
	if diff := cmp.Diff(masked(string(block[2])), masked(out)); diff != "" {
		t.Errorf("fleet (-README +kubectl): status %d %s\n%s\nkubectl printed\n%s", status, errs, diff, out)
	}
}

// shown creates a node of the README: it has the agent's labels, and looks as if it had a
// kubelet.
func shown(t *testing.T, name, kind, state string) {
	t.Helper()
	n := newNode(t, &shared, name)
	tree := machine(t, kind, state)
	n.run(t, tree)
	want := parse(t, printed(t, tree))
	nodes := n.cluster.admin.kube.CoreV1().Nodes()
	var is *corev1.Node
	if err := until(t.Context(), 20*time.Second, func(ctx context.Context) (err error) {
		if is, err = nodes.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		for key, value := range want {
			if is.Labels[key] != value {
				return fmt.Errorf("%s is %q, want %q", key, is.Labels[key], value)
			}
		}
		is.Labels[pool] = "train"
		is, err = nodes.Update(ctx, is, metav1.UpdateOptions{})
		return err
	}, n.processes()...); err != nil {
		t.Fatal(err)
	}
	is.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	is.Status.NodeInfo.KubeletVersion = "v1.35.3"
	if _, err := nodes.UpdateStatus(t.Context(), is, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// fields splits a table into rows and words, with the age of nodes left out.
func fields(table string) (rows [][]string) {
	for line := range strings.Lines(table) {
		row := strings.Fields(line)
		if len(row) > 3 {
			row = append(row[:3], row[4:]...)
		}
		rows = append(rows, row)
	}
	return rows
}
