package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
)

// TestHostileTexts: nothing that a terminal obeys is printed, whatever objects and a log hold.
func TestHostileTexts(t *testing.T) {
	const hostile = "\x1b[2J\u009b2J\x7f\u202e"
	quoted, err := strconv.Unquote(`"` + hostile + `"`)
	if err != nil {
		t.Fatal(err)
	}
	escaped := strings.Trim(strconv.QuoteToASCII(quoted), `"`)
	escaped = strings.NewReplacer(`\x1b`, `\u001b`, `\x7f`, `\u007f`).Replace(escaped)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		odd := strings.NewReplacer("H100 SXM5", "H100 "+escaped, "mlx5_3", "mlx5_"+escaped, "6.8.0-49", escaped, `"PIX"`, `"P`+escaped+`"`, "570.86", "5"+escaped)
		fmt.Fprintf(w, `{"items": [%s, %s, %s, %s]}`, odd.Replace(fleetObject(99)), odd.Replace(fleetObject(102)), fleetObject(105),
			// A Node, a network and a DaemonSet in one.
			strings.ReplaceAll(`{"metadata": {"name": "n", "annotations": {"k8s.v1.cni.cncf.io/resourceName": "rdma/ODD"}},
				"spec": {"taints": [{"key": "ODD", "value": "ODD", "effect": "ODD"}], "template": {"spec": {"containers": [{"image": "ODD"}]}}},
				"status": {"allocatable": {"nvidia.com/gpu": "8", "rdma/ODD": "1", "ODD/x": "1"}}}`, "ODD", escaped))
	}))
	defer server.Close()
	kubeconfig := config(t, server.URL)
	log := filepath.Join(t.TempDir(), "log")
	text := "n" + hostile + ":1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n" +
		"n:1:2 [0] NCCL WARN Call to ibv_reg_mr failed with error " + hostile + "\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"", "-o wide", "-o json", "--summary", "--summary -o json", "--reason x", "diff", "diff -o wide", "diff -o json", "log " + log, "log -o json " + log, "example nccl"} {
		var out, errs strings.Builder
		given := strings.Fields(args)
		if !strings.HasPrefix(args, "log") {
			given = append(given, "--kubeconfig", kubeconfig)
		}
		run(t.Context(), given, streams{out: &out, err: &errs, now: time.Now})
		if out.Len()+errs.Len() == 0 {
			t.Errorf("%q: nothing", args)
		}
		said := out.String() + errs.String()
		if at := strings.IndexFunc(said, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); at >= 0 {
			t.Errorf("%q: %+q", args, said[max(0, at-40):min(len(said), at+40)])
		}
	}
}
