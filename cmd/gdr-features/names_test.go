package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"gdr-features/test/machine"
)

// hostile is what a terminal may obey: ESC, a control of U+0080 to U+009F, DEL, and a turn of the
// direction of text.
const hostile = "\x1b[2J\u009b\x7f\u202e"

// TestOddNames: control characters in the names of a device and of a network interface
// are not printed, and do not prevent a snapshot.
func TestOddNames(t *testing.T) {
	odd := strings.NewReplacer("mlx5_1", "mlx5"+hostile+"1", "ibxb83fd20300a1c2e4", "mlx5_0").Replace(identified)
	m, err := machine.Parse(odd)
	if err != nil {
		t.Fatal(err)
	}
	dir := m.Tree(t, m.Ready())
	function := filepath.Join(dir, "sys/bus/pci/devices/0000:19:00.1")
	state := filepath.Join(function, "infiniband/mlx5"+hostile+"1/ports/1/state")
	for _, d := range []string{filepath.Join(function, "net", "eth\n\x1b[31m0"), state} { // the latter is a problem to be told
		if err := os.RemoveAll(d); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{
		"topo", "topo -o wide", "topo -o json", "topo -o dot", "topo -o html", "topo -o nccl-xml", "topo -o slurm", "topo --summary", "check", "check -o json", "check --pod",
		"explain", "explain GPU0 0000:19:00.1", "labels", "labels -o json", "env", "env --for nccl", "env --for ucx", "env --for mooncake -o file", "env -o json", "claim", "slices",
	} {
		said, status := runOn(t, dir, strings.Fields(command)...)
		if acts := strings.IndexFunc(said, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); acts >= 0 {
			t.Errorf("%s: %+q", command, said[max(0, acts-40):min(len(said), acts+40)])
		}
		if names := strings.HasPrefix(command, "topo -o wide") || command == "topo" || command == "check" || strings.HasPrefix(command, "explain"); names && (status == 1 || !strings.Contains(said, "mlx5?[2J???1")) {
			t.Errorf("%s: %d, %+q", command, status, said)
		}
	}
	file := takeSnapshot(t, dir)
	compareForms(t, dir, file, []string{"labels", "topo", "topo -o wide", "topo -o json", "check", "check -o json", "explain"})
}
