package frameworks_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/test/machine"
	"gdr-features/tristate"
)

// odd is a value with everything that a shell would change.
var odd = frameworks.Settings{
	Notes:     []string{"it's $HOME"},
	Variables: []frameworks.Variable{{Name: "A", Value: `a'b "$HOME" \ ; * =`}, {Name: "B", Value: "=mlx5_0:1,mlx5_1:1"}},
}

// TestShells: every shell there is reads what was written.
func TestShells(t *testing.T) {
	want := odd.Variables[0].Value + "|" + odd.Variables[1].Value
	for _, shell := range []string{"sh", "bash", "dash"} {
		path, err := exec.LookPath(shell)
		if err != nil && shell != "sh" {
			t.Logf("no %s here", shell)
			continue
		}
		c := exec.Command(path, "-c", `eval "$(cat)"; printf '%s|%s' "$A" "$B"`)
		c.Stdin = strings.NewReader(string(frameworks.Shell(odd)))
		if out, err := c.Output(); err != nil || string(out) != want {
			t.Errorf("%s: %v, %q, want %q", shell, err, out, want)
		}
	}
	given, err := frameworks.Parse(frameworks.Shell(odd))
	if err != nil || given[0].Variables["A"] != odd.Variables[0].Value {
		t.Errorf("read back: %v, %v", err, given)
	}
}

// TestDotEnv reads the lines by the rules of docker --env-file.
func TestDotEnv(t *testing.T) {
	got := map[string]string{}
	for line := range strings.Lines(string(frameworks.DotEnv(odd))) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.ContainsAny(name, " \t") {
			t.Errorf("docker refuses %q", line)
		}
		got[name] = value
	}
	want := map[string]string{"A": odd.Variables[0].Value, "B": odd.Variables[1].Value}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("export NCCL_IB_HCA='=mlx5_0:1'\nUCX_NET_DEVICES=^mlx5_1:1\n"))
	f.Add([]byte("NVSHMEM_ENABLE_NIC_PE_MAPPING=1\nNVSHMEM_HCA_PE_MAPPING=mlx5_0:1:2,:::\nNVSHMEM_HCA_LIST=^mlx5_2"))
	f.Add([]byte("VLLM_GPU_NIC_PCIE_MAPPING=13:00.0=15:00.0,=,.:=\nVLLM_NIC_SELECTION_VARS=UCX_NET_DEVICES,:1"))
	f.Add([]byte(`{"variables":{"nccl":{"NCCL_IB_HCA":"^="}},"files":{"sglang":{"0":""},"mooncake":[]}}`))
	f.Add([]byte(`{"cuda:0":[["mlx5_0"],[]],"cpu:0":[[],["x"]],"cuda:-1":[[],[]],"cuda:":[[],[]]}`))
	f.Add([]byte(`{"0":"mlx5_0","*":"","x":"y"}`))
	described, err := machine.Parse(four)
	if err != nil {
		f.Fatal(err)
	}
	dir := described.Tree(f, described.Ready())
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		f.Fatal(err)
	}
	r := report.Collect(f.Context(), fs, report.ForEnv)
	here := assign.NewMachine(&r.Node, func(string) bool { return true })
	m := here.Assign(here.EveryGPU(), nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		given, err := frameworks.Parse(data)
		if err != nil {
			return
		}
		for _, g := range given {
			for _, finding := range frameworks.Check(m, g) {
				if finding.State != tristate.True && len(finding.Problems) == 0 {
					t.Errorf("%+v: no problem is named", finding)
				}
			}
		}
	})
}
