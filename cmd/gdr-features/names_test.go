package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/test/machine"
)

// TestOddNames: control characters in the names of a device and of a network interface
// are not printed, and do not prevent a snapshot.
func TestOddNames(t *testing.T) {
	odd := strings.NewReplacer("mlx5_1", "mlx5\x1b[2J\u202e1", "ibxb83fd20300a1c2e4", "mlx5_0").Replace(identified)
	m, err := machine.Parse(odd)
	if err != nil {
		t.Fatal(err)
	}
	dir := m.Tree(t, m.Ready())
	function := filepath.Join(dir, "sys/bus/pci/devices/0000:19:00.1")
	state := filepath.Join(function, "infiniband/mlx5\x1b[2J\u202e1/ports/1/state")
	for _, d := range []string{filepath.Join(function, "net", "eth\n\x1b[31m0"), state} { // the latter is a problem to be told
		if err := os.RemoveAll(d); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{"topo", "topo -o wide", "check", "explain", "explain GPU0 0000:19:00.1", "topo -o json"} {
		said, status := runOn(t, dir, strings.Fields(command)...)
		if status == 1 || strings.ContainsAny(said, "\x1b\u202e") || !strings.Contains(said, "mlx5?[2J?1") {
			t.Errorf("%s: %d, %+q", command, status, said)
		}
	}
	file := takeSnapshot(t, dir)
	compareForms(t, dir, file, []string{"labels", "topo", "topo -o wide", "topo -o json", "check", "check -o json", "explain"})
}
