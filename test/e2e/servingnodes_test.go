package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// TestServingNodes: in the examples that serve one model from two nodes, the servers have each
// its rank and the address of the first one, which alone answers requests.
func TestServingNodes(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"vllm", "python3"} { // prints what it was told
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho $NCCL_IB_HCA \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(bin, "getent"), []byte("#!/bin/sh\n[ $1 = hosts ] && case $2 in *-nodes-0.*-nodes) ;; *) exit 2 ;; esac\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]string{
		"vllm-nodes": {
			"serve deepseek-ai/DeepSeek-V3 --port 8000 --tensor-parallel-size 8 --pipeline-parallel-size 2 --nnodes 2 --node-rank 0 --master-addr vllm-nodes-0.vllm-nodes",
			"serve deepseek-ai/DeepSeek-V3 --port 8000 --tensor-parallel-size 8 --pipeline-parallel-size 2 --nnodes 2 --node-rank 1 --headless --master-addr vllm-nodes-0.vllm-nodes",
		},
		"sglang-nodes": {
			"-m sglang.launch_server --model-path=deepseek-ai/DeepSeek-V3 --trust-remote-code --tp-size=16 --nnodes=2 --node-rank=0 --dist-init-addr=sglang-nodes-0.sglang-nodes:20000 --host=0.0.0.0 --port=30000",
			"-m sglang.launch_server --model-path=deepseek-ai/DeepSeek-V3 --trust-remote-code --tp-size=16 --nnodes=2 --node-rank=1 --dist-init-addr=sglang-nodes-0.sglang-nodes:20000 --host=0.0.0.0 --port=30000",
		},
	} {
		set := only[appsv1.StatefulSet](t, shipped(t, "examples/"+name+".yaml"), "StatefulSet")
		spec := set.Spec.Template.Spec
		file := filepath.Join(t.TempDir(), "env")
		if err := os.WriteFile(file, printedFile(t, &spec), 0o644); err != nil {
			t.Fatal(err)
		}
		args, main := spec.InitContainers[0].Args, spec.Containers[0]
		script := strings.ReplaceAll(main.Command[2], args[slices.Index(args, "-f")+1], file)
		for i, pod := range []string{name + "-0", name + "-1"} {
			c := exec.CommandContext(t.Context(), main.Command[0], main.Command[1], script)
			c.Env = []string{"HOSTNAME=" + pod, "PATH=" + bin + ":" + os.Getenv("PATH")}
			out, err := c.CombinedOutput()
			if nics, told, _ := strings.Cut(strings.TrimSpace(string(out)), " "); err != nil || !strings.HasPrefix(nics, "=mlx5_") || told != want[i] {
				t.Errorf("%s: %v\n%s", pod, err, out)
			}
		}
	}
}
