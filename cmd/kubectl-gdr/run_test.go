package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// features is a page of two NodeFeatures; more reports whether another page follows.
func features(first int, more string) string {
	item := func(n int) string {
		state := `"feature.node.kubernetes.io/gpudirect.rdma": "true"`
		if n == 4 {
			state = `"feature.node.kubernetes.io/gpudirect.rdma": "false", "feature.node.kubernetes.io/gdr.reason": "NoNIC"`
		}
		return fmt.Sprintf(`{"metadata": {"name": "gdr-features-n%[1]d", "namespace": "gdr-features", "managedFields": [{"manager": "gdr-features", "time": "2026-05-04T10:00:00Z"}],
			"labels": {"nfd.node.kubernetes.io/node-name": "n%[1]d"}},
			"spec": {"labels": {%[2]s, "feature.node.kubernetes.io/gdr.level": "PIX"}}}`, n, state)
	}
	return fmt.Sprintf(`{"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeatureList", "metadata": {"continue": %q}, "items": [%s, %s]}`,
		more, item(first), item(first+1))
}

// config writes a kubeconfig for a server and gives its name.
func config(t testing.TB, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {}}]\n"+
		"contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n", server)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const table = `NODE   CAPABLE   READY   LEVEL   GPUS   NICS   MECHANISM   MOFED   REASON   AGE
n1     unknown   true    PIX     -      -      -           -       -        120m
n2     unknown   true    PIX     -      -      -           -       -        120m
n3     unknown   true    PIX     -      -      -           -       -        120m
n4     unknown   false   PIX     -      -      -           -       NoNIC    120m

4 nodes, 3 ready, 1 not ready
     1 NoNIC
`

// What is printed where, and when progress is shown on a terminal.
func TestRun(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch q := r.URL.Query(); {
		case strings.Contains(r.URL.Path, "/namespaces/empty/"):
			fmt.Fprint(w, `{"items": []}`)
		case q.Get("continue") == "":
			fmt.Fprint(w, features(1, "more"))
		default:
			fmt.Fprint(w, features(3, ""))
		}
	}))
	defer server.Close()
	kubeconfig := config(t, server.URL)
	summary, _ := strings.CutPrefix(table[strings.LastIndex(table, "\n\n"):], "\n\n")
	for _, test := range []struct {
		name, args string
		terminal   bool
		step       time.Duration // the clock goes on at each look
		status     int
		out, err   string
	}{
		{"all", "", true, 0, 0, table, ""},
		{"a slow server, a terminal", "", true, 2 * time.Second, 0, table, "\r2 nodes read\r4 nodes read\r            \r"},
		{"a slow server, no terminal", "", false, 2 * time.Second, 0, table, ""},
		{"summary", "--summary", false, 0, 0, summary, ""},
		{"summary of none", "--summary --ready unknown", false, 0, 0, "0 nodes, 0 ready\n", ""},
		{"none", "--ready unknown", false, 0, 0, "", "no node matches\n"},
		{"a reason that no node has", "--reason NoNICS", false, 0, 0, "", "no node matches; existing reasons: NoNIC\n"},
		{"none for scripts", "--ready unknown --no-headers", false, 0, 0, "", "no node matches\n"},
		{"without headings", "--no-headers n2", false, 0, 0, "n2   unknown   true   PIX   -   -   -   -   -   120m\n", ""},
		{
			"one missing", "n2 n7 --no-headers", false, 0, 1, "n2   unknown   true   PIX   -   -   -   -   -   120m\n",
			"gdr-features: no agent has published a NodeFeature of n7; is there a node of that name, and does it have an NVIDIA or AMD GPU?\n",
		},
		{"all missing", "n7", false, 0, 1, "", "gdr-features: no agent has published a NodeFeature of n7; is there a node of that name, and does it have an NVIDIA or AMD GPU?\n"},
		{"nobody there", "-n empty -o json", false, 0, 1, "", "gdr-features: no agent has published a NodeFeature in namespace empty; is the DaemonSet running there? " +
			"(kubectl -n empty get daemonsets; -n or -A for another namespace; agents with --publish file write none)\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
			clock := func() time.Time { now = now.Add(test.step); return now }
			var out, errs strings.Builder
			args := append([]string{"--kubeconfig", kubeconfig}, strings.Fields(test.args)...)
			status := run(t.Context(), args, streams{out: &out, err: &errs, terminal: test.terminal, now: clock})
			if status != test.status || out.String() != test.out || errs.String() != test.err {
				t.Errorf("status %d\nprinted %s\nand on standard error %q", status, out.String(), errs.String())
			}
		})
	}
}

// It also runs on macOS and Windows, so it must not depend on the packages that read
// a machine, which need Linux.
func TestReadsNoMachine(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, "gdr-features/internal/nodes") {
		t.Fatalf("dependencies are %q", packages)
	}
	for _, name := range packages {
		if name == "gdr-features/host" || strings.HasPrefix(name, "gdr-features/source/") {
			t.Errorf("kubectl-gdr depends on %s", name)
		}
	}
}
