package pci_test

import (
	"os"
	"path/filepath"
	"testing"

	"gdr-features/source"
)

// TestOneNode: nodes without CPUs, such as the memory of a GPU, are none that a function may be in.
func TestOneNode(t *testing.T) {
	const node, cpu = "sys/devices/system/node/", "sys/devices/system/cpu/"
	const without, with = "pci0009:00\n  0009:01:00.0 gpu 10de:2342\n", "pci0009:00 numa=0\n  0009:01:00.0 gpu 10de:2342\n"
	for _, tt := range []struct {
		name, nodes, functions, hasCPU, present, online string
		want                                            bool
	}{
		{"one node", "1", without, "", "", "", true},
		{"nodes of unknown kind", "2", without, "", "", "", false},
		{"one node has CPUs", "2", without, "0\n", "0-71\n", "0-71\n", true},
		{"the other one has", "2", without, "1\n", "0-71\n", "0-71\n", true},
		{"several have", "18", without, "0-1\n", "0-143\n", "0-143\n", false},
		{"several in several parts", "4", without, "0,2\n", "0-143\n", "0-143\n", false},
		{"CPUs are offline, maybe those of a node", "2", without, "0\n", "0-143\n", "0-71\n", false},
		{"CPUs that cannot be read", "2", without, "0\n", "", "", false},
		{"garbage", "2", without, "x\n", "0-71\n", "0-71\n", false},
		{"garbage in a part", "2", without, "0,1-0\n", "0-71\n", "0-71\n", false},
		{"empty", "2", without, "\n", "0-71\n", "0-71\n", false},
		{"nobody asks", "2", with, "0\n", "0-71\n", "0-71\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, "nodes "+tt.nodes+"\n"+tt.functions)
			for name, text := range map[string]string{node + "has_cpu": tt.hasCPU, cpu + "present": tt.present, cpu + "online": tt.online} {
				if text == "" {
					continue
				}
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750); err != nil {
					t.Fatal(err)
				}
				put(t, dir, name, text)
			}
			inv := scan(t, dir, source.What{})
			if got := inv.OneNode(); got != tt.want {
				t.Errorf("%v, want %v: %d nodes, one with CPUs %v", got, tt.want, inv.NUMANodes, inv.OneCPUNode)
			}
			wantProblems(t, inv.Problems)
		})
	}
}
