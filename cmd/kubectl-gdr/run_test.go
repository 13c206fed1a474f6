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

// drivers are the ResourceSlices of n1, which has no agent that lists anything, and of n9, which
// has no agent.
const drivers = `{"items": [
	{"spec": {"driver": "gpu.nvidia.com", "nodeName": "n1", "pool": {"generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "gpu-0", "attributes": {"resource.kubernetes.io/pciBusID": {"string": "0000:11:00.0"}}}]}},
	{"spec": {"driver": "gpu.nvidia.com", "nodeName": "n9", "pool": {"generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "gpu-0", "attributes": {"resource.kubernetes.io/pciBusID": {"string": "0000:11:00.0"}}}]}}]}`

const notListed = `
NotListed: n1: gpu.nvidia.com publishes 0000:11:00.0, which the agent does not list
    fix: see with gdr-features topo whether the device is still in the node; restart the Pod of the driver or of the agent, whichever is outdated
`

// The command slices: what is printed where.
func TestSlices(t *testing.T) {
	published := drivers
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.Contains(r.URL.Path, "/namespaces/empty/"):
			fmt.Fprint(w, `{"items": []}`)
		case strings.HasSuffix(r.URL.Path, "/resourceslices"):
			fmt.Fprint(w, published)
		default:
			fmt.Fprint(w, features(1, ""))
		}
	}))
	defer server.Close()
	kubeconfig := config(t, server.URL)
	const heading = "NODE   GPUS   NICS   PCIEROOT   NUMANODE   ADDRESS   FINDINGS\n"
	const row1, row9 = "n1     1/0    0/0    0/1        0/1        0/1       NotListed\n", "n9     1/0    0/0    0/1        0/1        0/1       NoAgent\n"
	for _, test := range []struct {
		name, args, published string
		status                int
		out, err              string
	}{
		{"all", "", drivers, 0, heading + row1 + "n2     0/0    0/0    -          -          -         -\n" + row9 + "\n" +
			"NoAgent: n9: no agent has published a NodeFeature of this node, so there is nothing to compare with\n    fix: run the agent of gdr-features on the node\n" +
			strings.TrimPrefix(notListed, "\n"), ""},
		{"one", "n1", drivers, 0, heading + row1 + notListed, ""},
		{"without agent", "n9 --no-headers", drivers, 0, "n9   1/0   0/0   0/1   0/1   0/1   NoAgent\n", ""},
		{"for scripts", "n1 --no-headers", drivers, 0, "n1   1/0   0/0   0/1   0/1   0/1   NotListed\n", ""},
		{"with a filter", "--ready true n1", drivers, 0, heading + row1 + notListed, ""},
		{"none", "--ready false", drivers, 0, "", "no node matches\n"},
		{"none as JSON", "--ready false -o json", drivers, 0, "{\n  \"nodes\": []\n}\n", ""},
		{
			"one missing", "n1 n7 --no-headers", drivers, 1, "n1   1/0   0/0   0/1   0/1   0/1   NotListed\n",
			"gdr-features: no agent has published a NodeFeature of n7; is there a node of that name, and does it have an NVIDIA or AMD GPU?\n",
		},
		{"no agent", "-n empty", drivers, 1, "", "gdr-features: no agent has published a NodeFeature in namespace empty; is the DaemonSet running there? " +
			"(kubectl -n empty get daemonsets; -n or -A for another namespace; agents with --publish file write none)\n"},
		{"no driver", "", `{"items": []}`, 1, "", "gdr-features: no ResourceSlice of gpu.nvidia.com, gpu.amd.com, dra.net, sriovnetwork.k8snetworkplumbingwg.io is there; is one of these DRA drivers installed?\n"},
		{"no list", "", "x", 1, "", "gdr-features: the answer of the API server is not a list of ResourceSlices: invalid character 'x' looking for beginning of value\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			published = test.published
			var out, errs strings.Builder
			args := append([]string{"slices", "--kubeconfig", kubeconfig}, strings.Fields(test.args)...)
			status := run(t.Context(), args, streams{out: &out, err: &errs, now: time.Now})
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
