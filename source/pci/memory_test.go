package pci_test

import (
	"os"
	"path/filepath"
	"testing"

	"gdr-features/source/pci"
)

// TestMemory: the memory of a GPU is read where its driver shows it and where it was asked
// for. What is no number is a problem.
func TestMemory(t *testing.T) {
	const tree = "pci0000:10 numa=0\n  0000:13:00.0 120000 1002:74a1\n  0000:14:00.0 120000 1002:74a0\n  0000:15:00.0 gpu 10de:2330\n  0000:16:00.0 120000 1002:74a5\n"
	dir := write(t, tree)
	set := func(function, total, visible string) {
		t.Helper()
		for name, text := range map[string]string{"mem_info_vram_total": total, "mem_info_vis_vram_total": visible} {
			if err := os.WriteFile(filepath.Join(dir, devices+function, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	set("0000:13:00.0", "206141652992\n", "268435456\n")
	set("0000:14:00.0", "1073741824\n", "0\n") // MI300A
	set("0000:15:00.0", "1073741824\n", "0\n")
	inv := scan(t, dir, pci.GPUMemory)
	wantProblems(t, inv.Problems)
	for i := range inv.Functions {
		f := &inv.Functions[i]
		if first := i == 0; (f.Memory != nil) != first || first && *f.Memory != (pci.Memory{Total: 206141652992, Visible: 268435456}) {
			t.Errorf("%v: %+v", f.Address, f.Memory)
		}
	}
	if inv := scan(t, dir, pci.Links); inv.Functions[0].Memory != nil {
		t.Errorf("not asked for: %+v", inv.Functions[0].Memory)
	}
	set("0000:13:00.0", "206141652992\n", "much\n")
	inv = scan(t, dir, pci.GPUMemory)
	wantProblems(t, inv.Problems, "/"+devices+`0000:13:00.0/mem_info_vis_vram_total: "much" is not a number of bytes`)
	if inv.Functions[0].Memory != nil {
		t.Errorf("%+v", inv.Functions[0].Memory)
	}
}
