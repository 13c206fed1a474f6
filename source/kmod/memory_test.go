package kmod_test

import (
	"os"
	"path/filepath"
	"testing"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/test/machine"
	"gdr-features/tristate"
)

// The symbol table is read once for each set of modules, whoever uses them, and
// again as long as it could not be read.
func TestMemory(t *testing.T) {
	m, err := machine.Load("../../testdata/machines/dell-xe9680-h100.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir := m.Tree(t, m.Ready())
	table, list := filepath.Join(dir, "proc/kallsyms"), filepath.Join(dir, "proc/modules")
	symbols, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	memory := kmod.Cache{}
	expect := func(what string, want tristate.State) {
		t.Helper()
		if got := memory.Scan(fs, &pci.Inventory{}, family.Known(), source.What{}).Symbols[kmod.UmemDMABuf].Found; got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	const none = "0000000000000000 T nothing\n"
	write(list, "mlx5_ib 100 0 - Live 0x0000000000000000\n")
	write(table, "")
	expect("empty", tristate.Unknown)
	write(table, string(symbols))
	expect("first reading", tristate.True)
	write(table, none)
	expect("the same modules", tristate.True)
	write(list, "mlx5_ib 100 3 rdma_ucm, Live 0x0000000000000000\n")
	expect("used by another", tristate.True)
	write(list, "mlx5_ib 200 3 rdma_ucm, Live 0x0000000000000000\n")
	expect("another module of that name", tristate.False)
	write(table, string(symbols))
	expect("the same modules again", tristate.False)
	if err := os.Remove(list); err != nil {
		t.Fatal(err)
	}
	expect("a kernel without modules", tristate.True)
	write(table, none)
	if err := os.WriteFile(filepath.Join(dir, "sys/module/mlx5_ib/srcversion"), []byte("1\n"), 0o644); err != nil {
		if err := os.MkdirAll(filepath.Join(dir, "sys/module/mlx5_ib"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(filepath.Join(dir, "sys/module/mlx5_ib/srcversion"), "1\n")
	}
	expect("another build", tristate.False)
}
