package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/frameworks"
	"gdr-features/internal/machine"
	"gdr-features/internal/testsize"
)

// TestEnvOfOneGPU: a GPU that is asked for alone, or is the only one with a device node as
// in a container, has the NIC that it has in the map of the whole machine.
func TestEnvOfOneGPU(t *testing.T) {
	for _, m := range testsize.Share(machine.All(t, machinesDir)) {
		t.Run(m.Name, func(t *testing.T) {
			dir := m.Tree(t, m.Ready())
			gpus := func(args string) []frameworks.DocumentGPU {
				var d frameworks.Document
				if err := json.Unmarshal(printed(t, dir, args), &d); err != nil {
					t.Fatal(err)
				}
				return d.GPUs
			}
			whole := gpus("env -o json")
			for i := range whole {
				if diff := cmp.Diff(whole[i:i+1], gpus(fmt.Sprintf("env -o json --gpus %d", i))); diff != "" {
					t.Errorf("--gpus %d (-whole +got):\n%s", i, diff)
				}
			}
			for i, gpu := range whole {
				put(t, filepath.Join(dir, "proc/driver/nvidia/gpus", gpu.GPU, "information"), fmt.Sprintf("Device Minor: \t %d\n", i))
			}
			for i := range whole {
				node := filepath.Join(dir, fmt.Sprintf("dev/nvidia%d", i))
				put(t, node, "")
				if diff := cmp.Diff(whole[i:i+1], gpus("env -o json")); diff != "" {
					t.Errorf("with the device node of GPU %d (-whole +got):\n%s", i, diff)
				}
				if err := os.Remove(node); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// put writes a file below directories that may not be there yet.
func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
