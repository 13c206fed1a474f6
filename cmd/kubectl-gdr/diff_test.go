package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

const fleetLabels = `"feature.node.kubernetes.io/gpudirect.rdma": "true", "feature.node.kubernetes.io/gdr.level": "PIX",
	"feature.node.kubernetes.io/gdr.mofed": "24.10-1.1.4", "feature.node.kubernetes.io/gdr.gpus": "8"`

// fleetObject is the NodeFeature of a node with 8 GPUs and 10 NICs, as the agent writes it. Of each
// hundred nodes one has another MTU, and another kernel.
func fleetObject(i int) string {
	var gpus, nics, pairs []string
	instance := func(attributes map[string]string) string {
		text, err := json.Marshal(map[string]any{"attributes": attributes})
		if err != nil {
			panic(err)
		}
		return string(text)
	}
	kind, mtu, kernel := i%3, "4096", "6.8.0-45-generic"
	if i%100 == 99 {
		mtu, kernel = "1024", "6.8.0-49-generic"
	}
	for g := range 8 {
		gpus = append(gpus, instance(map[string]string{
			"address": fmt.Sprintf("%04x:%02x:00.0", kind, 0x10+g), "device": "2330", "family": "nvidia", "name": "H100 SXM5 80GB", "numaNode": strconv.Itoa(g / 4), "pcieRoot": fmt.Sprintf("pci0000:%02x", 0x10+g),
		}))
		for r := range 10 {
			pairs = append(pairs, instance(map[string]string{
				"gpu": fmt.Sprintf("%04x:%02x:00.0", kind, 0x10+g), "nic": fmt.Sprintf("%04x:%02x:00.0", kind, 0x80+r), "rdma": fmt.Sprint("mlx5_", r), "level": "NODE", "nccl": "PHB", "bridge": "",
			}))
		}
	}
	for r := range 10 {
		nics = append(nics, instance(map[string]string{
			"address": fmt.Sprintf("%04x:%02x:00.0", kind, 0x80+r), "device": "1021", "family": "mlx5", "name": "ConnectX-7", "numaNode": strconv.Itoa(r / 5), "pcieRoot": fmt.Sprintf("pci0000:%02x", 0x10+r),
			"rdma": fmt.Sprint("mlx5_", r), "rail": strconv.Itoa(r), "state": "ACTIVE", "linkLayer": "Ethernet", "rateGbps": "400", "mtu": mtu, "mtuFrom": "netdev", "gidIndex": "3",
		}))
	}
	labels := fleetLabels
	fields := `{"manager": "gdr-features", "operation": "Apply", "time": "2026-05-04T10:00:00Z", "fieldsV1": {"f:spec": {"f:features": {"f:instances": {}}}}}`
	return fmt.Sprintf(`{"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature", "metadata": {"name": "gdr-features-node-%04[1]d", "namespace": "gdr-features", "managedFields": [%[7]s],
		"annotations": {"gdr-features/journal": "[{\"time\":\"2026-05-04T10:00:00Z\",\"name\":\"gdr.rate\",\"old\":\"400\",\"new\":\"100\"}]"},
		"labels": {"app.kubernetes.io/managed-by": "gdr-features", "nfd.node.kubernetes.io/node-name": "node-%04[1]d"}},
		"spec": {"labels": {%[2]s}, "features": {"flags": {}, "attributes": {"gdr.node": {"elements": {%[2]s}}, "gdr.state": {"elements": {"kernel": %[6]q, "driverVersion": "570.86.15", "driverOpen": "true"}}},
		"instances": {"gdr.gpu": {"elements": [%[3]s]}, "gdr.nic": {"elements": [%[4]s]}, "gdr.pair": {"elements": [%[5]s]}}}}}`,
		i, labels, strings.Join(gpus, ","), strings.Join(nics, ","), strings.Join(pairs, ","), kernel, fields)
}

// The command diff: what is printed where, and the exit status.
func TestDiff(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch q := r.URL.Query(); {
		case strings.HasSuffix(r.URL.Path, "/api/v1/nodes"):
			fmt.Fprint(w, map[string]string{
				"pool=train": `{"items": [{"metadata": {"name": "node-0098"}}, {"metadata": {"name": "node-0101"}}]}`,
				"pool=odd":   `{"items": [{"metadata": {"name": "node-0099"}}, {"metadata": {"name": "node-0102"}}, {"metadata": {"name": "node-0105"}}]}`,
				"pool=none":  `{"items": []}`,
			}[q.Get("labelSelector")])
		case strings.Contains(r.URL.Path, "/namespaces/older/"):
			fmt.Fprint(w, features(1, ""))
		default:
			var items []string
			for i := 98; i < 110; i++ {
				items = append(items, fleetObject(i))
			}
			fmt.Fprintf(w, `{"items": [%s]}`, strings.Join(items, ","))
		}
	}))
	defer server.Close()
	kubeconfig := config(t, server.URL)
	const title = "8x H100 SXM5 80GB, 10x ConnectX-7: "
	for _, test := range []struct {
		name, args string
		status     int
		out, err   string
	}{
		{"alike", "-l pool=train", 0, title + "2 nodes, alike\n\n2 nodes of 1 kind: 2 alike, 0 differ\n", ""},
		{
			"not alike", "-l pool=odd", 2, title + `3 nodes, 1 differ
FACT         JOB   HERE                 MOST                        NODES
active MTU   yes   1024 on mlx5_0 to mlx5_9   4096 (2 of 3)               node-0099
kernel       -     6.8.0-49-generic     6.8.0-45-generic (2 of 3)   node-0099

3 nodes of 1 kind: 2 alike, 1 differ
`, "",
		},
		{"for scripts", "-l pool=odd --no-headers node-0099 node-0102", 2, `active MTU   yes   4096 on mlx5_0 to mlx5_9   1024 (1 of 2)               node-0102
kernel       -     6.8.0-45-generic    6.8.0-49-generic (1 of 2)   node-0102
`, ""}, // of two the first is the majority
		{"none", "-l pool=none", 0, "", "no node matches\n"},
		{"labels of both kinds", "-l pool=odd,gdr.level=PXB", 0, "", "no node matches\n"},
		{"published labels need no Nodes", "-l gdr.level=PXB", 0, "", "no node matches\n"},
		{
			"one missing", "node-0098 n7", 1, title + "1 node, alike\n\n1 node of 1 kind: 1 alike, 0 differ\n",
			"gdr-features: no agent has published a NodeFeature of n7: there is no such node, its agent is not ready (kubectl gdr shows that), or it has no NVIDIA or AMD GPU\n",
		},
		{
			"older agents", "-n older", 1, "0 nodes of 0 kinds: 0 alike, 0 differ\nnot compared, older agent: n1, n2\n",
			"gdr-features: no agent of these nodes publishes what diff compares; are they of an older version?\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out, errs strings.Builder
			args := append([]string{"diff", "--kubeconfig", kubeconfig}, strings.Fields(test.args)...)
			status := run(t.Context(), args, streams{out: &out, err: &errs, now: time.Now})
			same := strings.Join(strings.Fields(out.String()), " ") == strings.Join(strings.Fields(test.out), " ")
			if status != test.status || !same || errs.String() != test.err {
				t.Errorf("status %d\nprinted %s\nand on standard error %q", status, out.String(), errs.String())
			}
		})
	}
}

// On a terminal a table is broken at its width; JSON is not.
func TestColumns(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, features(1, "")) }))
	defer server.Close()
	kubeconfig := config(t, server.URL)
	printed := func(args string, columns int) string {
		var out, errs strings.Builder
		if status := run(t.Context(), append([]string{"--kubeconfig", kubeconfig}, strings.Fields(args)...), streams{out: &out, err: &errs, columns: columns, now: time.Now}); status != 0 {
			t.Errorf("%s: status %d, %s", args, status, errs.String())
		}
		return out.String()
	}
	for _, args := range []string{"-o wide", "diff --help", "--help"} {
		for line := range strings.Lines(printed(args, 80)) {
			if len(line) > 81 {
				t.Errorf("%s: %s", args, line)
			}
		}
	}
	if printed("-o json", 40) != printed("-o json", 0) {
		t.Error("JSON depends on the terminal")
	}
}
