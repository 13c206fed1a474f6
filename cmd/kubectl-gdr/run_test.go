package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
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

// around is what a cluster has beside NodeFeatures, of nodes n1 to n4: n1 still has what its agent
// published before, the agent of n3 is not ready, and n4 has none. Of pool=train are n2 and n5.
func around(w io.Writer, r *http.Request) bool {
	node := func(name, ready string) string {
		return fmt.Sprintf(`{"metadata": {"name": %q, "labels": {"feature.node.kubernetes.io/gpudirect.rdma": %q, "feature.node.kubernetes.io/gdr.level": "PIX"%s}}}`,
			name, ready, map[string]string{"n4": `, "feature.node.kubernetes.io/gdr.reason": "NoNIC"`}[name])
	}
	pod := func(name, ready string) string {
		return fmt.Sprintf(`{"spec": {"nodeName": %q}, "status": {"conditions": [{"type": "Ready", "status": %q}]}}`, name, ready)
	}
	answer := ""
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/daemonsets"):
		answer = `{"status": {"numberReady": 2, "desiredNumberScheduled": 4}}`
	case strings.HasSuffix(path, "/pods"):
		answer = strings.Join([]string{pod("n1", "True"), pod("n2", "True"), pod("n3", "False")}, ",")
	case path == "/api/v1/nodes" && r.URL.Query().Get("labelSelector") == "pool=train":
		answer = node("n2", "true") + "," + node("n5", "true")
	case path == "/api/v1/nodes":
		answer = strings.Join([]string{node("n1", "false"), node("n2", "true"), node("n3", "true"), node("n4", "false")}, ",")
	default:
		return false
	}
	fmt.Fprintf(w, `{"items": [%s], "metadata": {}}`, answer)
	return true
}

const table = `chain: 2 of 4 agents ready, 1 Node differs (7200 s), 1 NodeFeature without agent
  agents:  not ready on n3, n4
  differs: n1 (gpudirect.rdma is false, published true)
  likely:  changed by hand, nfd-master does not run, or allowOverwrite is false
           (docs/oncall.md#do-the-labels-reach-the-nodes)
  without: n4

NODE   READY   LEVEL   REASON/WARN   AGE
n1     true    PIX     -             120m
n2     true    PIX     -             120m
n3     true    PIX     -             120m
n4     false   PIX     NoNIC         120m

4 nodes, 3 ready, 1 not ready
     1 NoNIC
`

// n2 is what is printed of that node alone.
const n2 = "chain: 2 of 4 agents ready, no Node differs\n  agents:  not ready on n3, n4\n\nNODE   READY   LEVEL   REASON/WARN   AGE\nn2     true    PIX     -             120m\n\n1 node, 1 ready\n"

// What is printed where, and when progress is shown on a terminal.
func TestRun(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch q := r.URL.Query(); {
		case around(w, r):
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
	someNodes := strings.Replace(n2, "n3, n4", "n3", 1) // of n4 nothing was read
	summary := table[:strings.Index(table, "\n\n")+1] + table[strings.LastIndex(table, "\n\n")+2:]
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
		{"summary of none", "--summary --ready unknown", false, 0, 0, "chain: 2 of 4 agents ready, no Node differs\n  agents:  not ready on n3, n4\n0 nodes, 0 ready\n", ""},
		{"none", "--ready unknown", false, 0, 0, "", "no node matches\n"},
		{"a reason that no node has", "--reason NoNICS", false, 0, 0, "", "no node matches; existing reasons: NoNIC\n"},
		{"none for scripts", "--ready unknown --no-headers", false, 0, 0, "", "no node matches\n"},
		{"without headings", "--no-headers n2", false, 0, 0, "n2   true   PIX   -   120m\n", ""},
		{
			"one missing", "n2 n7 --no-headers", false, 0, 1, "n2   true   PIX   -   120m\n",
			"gdr-features: no agent has published a NodeFeature of n7: there is no such node, its agent is not ready (kubectl gdr shows that), or it has no NVIDIA or AMD GPU\n",
		},
		{"a label of the Node", "-l pool=train", false, 0, 0, someNodes, ""},
		{"labels of both kinds", "-l pool=train,gdr.level=PXB", false, 0, 0, "", "no node matches\n"},
		{"wait for a ready node", "--wait 1m n2", false, 0, 0, n2, ""},
		{"wait for a Node that has nothing published", "-l pool=train --wait 1s", false, 0, 2, someNodes, "1 of 2 nodes ready, waiting for n5 (nothing published)\nnot all nodes were ready within 1s\n"},
		{
			"wait for all", "--no-headers --wait 1s n2 n1 n4", false, 0, 2, "n1   true    PIX   -       120m\nn2   true    PIX   -       120m\nn4   false   PIX   NoNIC   120m\n",
			"1 of 3 nodes ready, waiting for n1 (gpudirect.rdma is false on the Node), n4 (NoNIC)\nnot all nodes were ready within 1s\n",
		},
		{"wait for agents", "-n empty --wait 1s", false, 0, 2, "", "0 of 0 nodes ready, but 4 of 4 agents have published nothing\nnot all nodes were ready within 1s\nno node matches\n"},
		{"no journal", "history n2", false, 0, 0, "", "no change of n2 is recorded; older agents keep no journal\n"},
		{"no journal, JSON", "history n2 -o json", false, 0, 0, "{\n  \"node\": \"n2\",\n  \"namespace\": \"gdr-features\",\n  \"changes\": []\n}\n", ""},
		{"no object", "history n7", false, 0, 1, "", "gdr-features: no agent has published a NodeFeature of n7: there is no such node, its agent is not ready (kubectl gdr shows that), or it has no NVIDIA or AMD GPU\n"},
		{"names", "__complete history n", false, 0, 0, "n1\nn2\nn3\nn4\n:4\n", "Completion ended with directive: ShellCompDirectiveNoFileComp\n"},
		{"all missing", "n7", false, 0, 1, "", "gdr-features: no agent has published a NodeFeature of n7: there is no such node, its agent is not ready (kubectl gdr shows that), or it has no NVIDIA or AMD GPU\n"},
		{"nobody there", "-n empty -o json", false, 0, 1, "", "gdr-features: no agent has published a NodeFeature in namespace empty; is the DaemonSet running there? " +
			"(kubectl -n empty get daemonsets; -n or -A for another namespace; agents with --publish file write none)\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
			clock := func() time.Time { now = now.Add(test.step); return now }
			var out, errs strings.Builder
			args := append(strings.Fields(test.args), "--kubeconfig", kubeconfig)
			if args[0] == "__complete" { // the last word is what is completed
				args = []string{"__complete", "history", "--kubeconfig", kubeconfig, "n"}
			}
			status := run(t.Context(), args, streams{out: &out, err: &errs, terminal: test.terminal, now: clock})
			printed := strings.NewReplacer("(7202 s)", "(7200 s)", "(7208 s)", "(7200 s)").Replace(out.String()) // of the clock that goes on
			if status != test.status || printed != test.out || errs.String() != test.err {
				t.Errorf("status %d\nprinted %s\nand on standard error %q", status, out.String(), errs.String())
			}
		})
	}
}

// Labels of which no agent has a NodeFeature are told where all of both were read: a Node that was not
// asked for, or that has an agent in another namespace, may have them rightly.
func TestLeftBehind(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/api/v1/nodes":
			items := []string{`{"metadata": {"name": "cpu"}}`}
			for _, name := range []string{"n1", "n2", "left"} {
				items = append(items, fmt.Sprintf(`{"metadata": {"name": %q, "labels": {"feature.node.kubernetes.io/gpudirect.rdma": "true", "feature.node.kubernetes.io/gdr.level": "PIX"}}}`, name))
			}
			fmt.Fprintf(w, `{"items": [%s]}`, strings.Join(items, ","))
		case !around(w, r):
			fmt.Fprint(w, features(1, ""))
		}
	}))
	defer server.Close()
	kubeconfig := config(t, server.URL)
	const text, list = "labels without an agent's NodeFeature on 1 Node\n", `"unpublished": [`
	for args, want := range map[string]string{
		"": text, "-A": text, "-n gdr-features": text, "--summary": text, "--wait 3s": text, "-o json": list,
		"-n other": "", "n1": "", "--ready true": "", "--reason NoNIC --summary": "", "-l gdr.level=PIX": "", "-l pool=train": "", "n1 -o json": "", "--wait 3s n1": "",
	} {
		var out, errs strings.Builder
		run(t.Context(), append(strings.Fields(args), "--kubeconfig", kubeconfig), streams{out: &out, err: &errs, now: time.Now})
		if !strings.Contains(out.String(), "n1") && !strings.Contains(args, "summary") || !strings.Contains(out.String(), want) {
			t.Errorf("%q prints no %q:\n%s%s", args, want, out.String(), errs.String())
		}
		if tells := strings.Contains(out.String(), "left"); tells != (want != "") {
			t.Errorf("%q names the Node: %v\n%s", args, tells, out.String())
		}
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
	if !slices.Contains(packages, "gdr-features/internal/fleet/nodes") {
		t.Fatalf("dependencies are %q", packages)
	}
	for _, name := range packages {
		if name == "gdr-features/host" || strings.HasPrefix(name, "gdr-features/source/") {
			t.Errorf("kubectl-gdr depends on %s", name)
		}
	}
}

// TestWaitCutLater: when the time ends during a later look, the whole one before is printed.
func TestWaitCutLater(t *testing.T) {
	var looks atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/api/v1/nodes" && looks.Add(1) > 1:
			<-r.Context().Done()
		case r.URL.Path == "/api/v1/nodes":
			fmt.Fprint(w, `{"items": [{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}}]}`)
		case !around(w, r):
			fmt.Fprint(w, features(1, ""))
		}
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	args := []string{"--wait", "2s", "--kubeconfig", config(t, server.URL)}
	status := run(t.Context(), args, streams{out: &stdout, err: &stderr, now: time.Now})
	if status != 2 || looks.Load() < 2 || strings.Contains(stdout.String(), "deadline exceeded") {
		t.Errorf("status %d after %d looks\n%s%s", status, looks.Load(), stdout.String(), stderr.String())
	}
}

// TestWaitCut: when the time ends while the Nodes are read, it is not known whether they have the label.
func TestWaitCut(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1/nodes" {
			<-r.Context().Done()
			return
		}
		if !around(w, r) {
			fmt.Fprint(w, features(1, ""))
		}
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	args := []string{"--wait", "1s", "n2", "--kubeconfig", config(t, server.URL)}
	if status := run(t.Context(), args, streams{out: &stdout, err: &stderr, now: time.Now}); status != 2 || !strings.Contains(stderr.String(), "not all nodes were ready within 1s") {
		t.Errorf("status %d\n%s%s", status, stdout.String(), stderr.String())
	}
}
