package main

import (
	"path/filepath"
	"testing"

	"gdr-features/test/machine"
)

// slurmMachines are those whose part of Slurm's configuration is a golden file: NVIDIA's
// GPUs with ConnectX, AMD's with Thor 2, and virtual functions beside their physical one.
var slurmMachines = []string{"a40-8gpu-2cx7-nccl1343", "supermicro-mi300x-thor2", "vfs-with-pf"}

func slurmFile(machine string) string { return filepath.Join(goldenDir, machine, "slurm.txt") }

// TestGoldenSlurm compares what topo -o slurm prints on machines with device nodes, and on
// snapshots of them.
func TestGoldenSlurm(t *testing.T) {
	for _, name := range slurmMachines {
		t.Run(name, func(t *testing.T) {
			m, err := machine.Load(filepath.Join(machinesDir, name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			dir := m.Tree(t, m.Ready())
			m.Container(t, dir, nil)
			text, _ := printed(t, dir, "topo -o slurm")
			golden(t, slurmFile(name), text)
			compareForms(t, dir, takeSnapshot(t, dir), []string{"topo -o slurm"})
		})
	}
}
