package kmod

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/test/trees"
	"gdr-features/tristate"
)

// Contents in place of files.
const (
	isDir  = trees.Dir
	isFIFO = trees.FIFO
	isLoop = trees.Loop
	absent = trees.Absent // takes back what scan adds
)

func tree(t *testing.T, all map[string]string) *host.FS { t.Helper(); return trees.Tree(t, all) }

// scan reads a tree of some files of a machine with a GPU of NVIDIA and ConnectX NICs. Unless the
// files say otherwise there are modules, and symbols that do not matter.
func scan(t *testing.T, files map[string]string) State {
	t.Helper()
	functions, table := machine("nvidia", "mlx5", "mlx4")
	return Scan(tree(t, withKernel(files)), functions, table, source.What{})
}

// machine has a function of each of these families, which no driver drives.
func machine(families ...string) (*pci.Inventory, family.Table) {
	table, functions := family.Known(), pci.Inventory{}
	add := func(f pci.Function) {
		f.Address.Bus, f.Eligible, f.DriverKnown = uint8(len(functions.Functions)+1), pci.Counts, true
		functions.Functions = append(functions.Functions, f)
	}
	for _, g := range table.GPUs {
		if slices.Contains(families, g.Name) {
			add(pci.Function{GPU: g})
		}
	}
	for _, n := range slices.Concat(table.NICs, table.Others) {
		if slices.Contains(families, n.Name) {
			add(pci.Function{NIC: n})
			if !slices.Contains(table.NICs, n) {
				table.NICs = append(table.NICs, n)
			}
		}
	}
	return &functions, table
}

func withKernel(files map[string]string) map[string]string {
	all := map[string]string{
		"sys/module/kernel": isDir,
		kallsyms:            "0000000000000000 T vfs_read\n",
	}
	maps.Copy(all, files)
	return all
}

// wantProblems checks that there are problems with these beginnings, in this
// order, and no others.
func wantProblems(t *testing.T, problems []error, beginnings ...string) {
	t.Helper()
	for i, err := range problems {
		if i >= len(beginnings) || !strings.HasPrefix(err.Error(), beginnings[i]) {
			t.Errorf("problem %d: %v", i, err)
		}
	}
	if len(problems) < len(beginnings) {
		t.Errorf("no problem tells of %q", beginnings[len(problems):])
	}
}

const (
	yes     = tristate.True
	no      = tristate.False
	unknown = tristate.Unknown
)
