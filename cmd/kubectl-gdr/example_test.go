package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// exampleServer answers what example reads. Without Multus there is no resource of networks.
func exampleServer(t *testing.T, multus bool) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/api/v1/nodes":
			selector := r.URL.Query().Get("labelSelector")
			if selector == "feature.node.kubernetes.io/gdr.level=SYS,feature.node.kubernetes.io/gpudirect.rdma=true" {
				fmt.Fprint(w, `{"items": []}`)
				return
			}
			if want := "feature.node.kubernetes.io/gdr.level=PIX,pool=train,feature.node.kubernetes.io/gpudirect.rdma=true"; selector != want && !strings.Contains(selector, "rate") && !strings.HasPrefix(selector, "feature") {
				t.Errorf("selector %s", selector)
			}
			fmt.Fprint(w, `{"items": [{"metadata": {"name": "hgx-1", "labels": {"feature.node.kubernetes.io/gdr.level": "PIX"}},
				"spec": {"taints": [{"key": "pool", "value": "train", "effect": "NoSchedule"}]},
				"status": {"allocatable": {"nvidia.com/gpu": "8", "example.com/ib": "8"}}}]}`)
		case multus && r.URL.Path == "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions":
			fmt.Fprint(w, `{"items": [{"metadata": {"name": "ib", "annotations": {"k8s.v1.cni.cncf.io/resourceName": "example.com/ib"}}}]}`)
		case r.URL.Path == "/apis/apps/v1/namespaces/gdr-features/daemonsets":
			fmt.Fprint(w, `{"items": [{"spec": {"template": {"spec": {"containers": [{"image": "registry.local/gdr:v9"}]}}}}]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return config(t, server.URL)
}

// The command example: what it asks for, what it prints, and its errors.
func TestExample(t *testing.T) {
	with, without := exampleServer(t, true), exampleServer(t, false)
	for _, tt := range []struct {
		args []string
		out  []string // parts
		err  string
	}{
		{[]string{}, []string{"nccl\n", "mpi\n"}, ""},
		{
			[]string{"nccl", "-l", "pool=train,gdr.level=PIX", "--kubeconfig", with},
			[]string{
				"example.com/ib: 8", `"ib,ib,ib,ib,ib,ib,ib,ib"`, "registry.local/gdr:v9", `{key: pool, operator: Equal, value: "train", effect: NoSchedule}`,
				`- {key: "pool", operator: In, values: ["train"]}`, `- {key: "feature.node.kubernetes.io/gdr.level", operator: In, values: ["PIX"]}`,
			},
			"",
		},
		{[]string{"mpi", "-l", "gdr.rate>300,a!=b,c,!d", "--kubeconfig", without}, []string{`.io/gdr.rate", operator: Gt, values: ["300"]}`, `{key: "a", operator: NotIn, values: ["b"]}`, `{key: "c", operator: Exists}`, `{key: "d", operator: DoesNotExist}`}, ""},
		{[]string{"nccl", "--kubeconfig", without}, []string{"# TODO: RDMA devices: which of these is it? example.com/ib"}, ""},
		{[]string{"nccl", "-l", "gdr.level=SYS", "--kubeconfig", with}, nil, "no node that is ready matches"},
		{[]string{"ncl"}, nil, `no example "ncl": there are`},
		{[]string{"nccl", "-l", "a in b", "--kubeconfig", with}, nil, "--selector a in b"},
	} {
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), append([]string{"example"}, tt.args...), streams{out: &stdout, err: &stderr, now: time.Now})
		out, errs := stdout.String(), stderr.String()
		if (status == 0) != (tt.err == "") || !strings.Contains(errs, tt.err) || tt.err != "" && out != "" {
			t.Errorf("%q: status %d, error %q", tt.args, status, errs)
		}
		for _, part := range tt.out {
			if !strings.Contains(out, part) {
				t.Errorf("%q: no %q in\n%s", tt.args, part, out)
			}
		}
	}
}
