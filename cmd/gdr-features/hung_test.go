package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gdr-features/internal/cli/machineflags"
	"gdr-features/test/machine"
)

// TestHungAdvice: a file that only advice needs does not change the verdict when
// reading it hangs.
func TestHungAdvice(t *testing.T) {
	t.Parallel()
	m, err := machine.Load(filepath.Join(machinesDir, "dell-xe9680-h100.txt"))
	if err != nil {
		t.Fatal(err)
	}
	healthy := read(t, takeSnapshot(t, m.Tree(t, m.Ready())))
	hung := strings.Replace(healthy, `{"exists":"/run/nvidia/validations","error":"ENOENT"}`, `{"exists":"/run/nvidia/validations","error":"no-answer"}`, 1)
	file := filepath.Join(t.TempDir(), "hung")
	if err := os.WriteFile(file, []byte(hung), 0o644); err != nil || hung == healthy {
		t.Fatal(err)
	}
	said, status := runWithin(t, machineflags.ReadLimit, file, "check")
	if status != 0 || strings.Contains(said, "UNKNOWN") || !strings.Contains(said, "ready by peermem") || !strings.Contains(said, "advice") {
		t.Errorf("status %d\n%s", status, said)
	}
}

// TestHungACS: where a device's registers give no answer, the device nodes are read nevertheless.
func TestHungACS(t *testing.T) {
	t.Parallel()
	m, err := machine.Load(filepath.Join(machinesDir, "dell-xe9680-h100.txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir := m.Tree(t, m.Ready())
	m.Container(t, dir, []int{0}, m.RDMADevices()...)
	healthy := read(t, takeSnapshot(t, dir))
	config := regexp.MustCompile(`(?m)^(\{"read":"/sys/bus/pci/devices/[0-9a-f:.]*/config",).*$`)
	hung := config.ReplaceAllString(healthy, `$1"error":"no-answer"}`)
	file := filepath.Join(t.TempDir(), "hung")
	if err := os.WriteFile(file, []byte(hung), 0o644); err != nil || hung == healthy {
		t.Fatal(err)
	}
	said, status := runWithin(t, machineflags.ReadLimit, file, "env", "--for", "nccl")
	if status != 0 || strings.Contains(said, "device node") || !strings.Contains(said, "export NCCL_IB_HCA='=mlx5_0:1'") {
		t.Errorf("status %d\n%s", status, said)
	}
}
