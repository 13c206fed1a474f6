package frameworks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/internal/fleet/mechanism"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/test/machine"
	"gdr-features/tristate"
)

// guestWithVF is a virtual machine whose topology file has a virtual function beside a GPU.
func guestWithVF(t *testing.T, inFile string) *assign.Assignment {
	t.Helper()
	m, err := machine.Parse("virtual\npci0000:00 numa=0\n  0000:00:05.0 gpu 10de:2330\npci0000:01 numa=0\n  0000:01:09.0 ib 15b3:101e rdma=mlx5_0\n")
	if err != nil {
		t.Fatal(err)
	}
	dir := m.Tree(t, m.Ready())
	file := filepath.Join(dir, "var/run/nvidia-topologyd/virtualTopology.xml")
	text := `<system version="1"><cpu numaid="0"><pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">` +
		`<pci busid="0000:00:05.0" class="0x030200"/><pci busid="` + inFile + `" class="0x020700"/></pci></cpu></system>`
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return mapOf(t, dir)
}

// TestMergeVFs: NCCL_IB_MERGE_VFS=0 is printed where NCCL finds a NIC in the topology file with it
// alone, is right where it is set, and another value is wrong where it is needed.
func TestMergeVFs(t *testing.T) {
	needed, not := guestWithVF(t, "0000:01:09.0"), guestWithVF(t, "0000:01:00.0")
	for _, framework := range []string{"nccl", "deepep"} {
		for m, want := range map[*assign.Assignment]bool{needed: true, not: false} {
			s := frameworks.Named(framework).Write(m)
			if text := string(frameworks.Shell(s)); strings.Contains(text, "\nexport NCCL_IB_MERGE_VFS='0'\n") != want {
				t.Errorf("%s: printed, want %v:\n%s", framework, want, text)
			}
		}
	}
	for _, tt := range []struct {
		on    *assign.Assignment
		value string
		state tristate.State
		aside bool
	}{
		{needed, "0", tristate.True, true},
		{needed, "1", tristate.False, false},
		{not, "1", tristate.True, true},
		{not, "0", tristate.True, true},
	} {
		found := frameworks.Check(tt.on, frameworks.Environment{Variables: map[string]string{"NCCL_IB_MERGE_VFS": tt.value}})
		if len(found) != 1 || found[0].State != tt.state || found[0].Aside != tt.aside {
			t.Errorf("%s: %+v", tt.value, found)
			continue
		}
		if tt.state == tristate.False && (found[0].Want != "0" || !found[0].Harmless || !strings.Contains(found[0].Text(), "mlx5_0")) {
			t.Errorf("%s: %+v", tt.value, found[0])
		}
	}
	both := mechanism.Ways{Peermem: tristate.True, DMABuf: tristate.True}
	level := func(merge string) int {
		return len(frameworks.Switches(needed, both, map[string]string{"NCCL_NET_GDR_LEVEL": "LOC", "NCCL_IB_MERGE_VFS": merge}))
	}
	if level("0") != 1 || level("1") != 0 || level("") != 0 {
		t.Errorf("a level that turns off what the variable turns on: %d, %d, %d", level("0"), level("1"), level(""))
	}
}
