package platform

import (
	"maps"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/pci"
	"gdr-features/test/trees"
)

// Contents in place of files.
const (
	isDir  = trees.Dir
	isFIFO = trees.FIFO
	isLoop = trees.Loop
	absent = trees.Absent // takes back what scan adds
)

func tree(t *testing.T, all map[string]string) *host.FS { t.Helper(); return trees.Tree(t, all) }

// scan reads a tree of some files. Unless they say otherwise there is a CPU without a hypervisor's
// flag.
func scan(t *testing.T, some map[string]string, functions *pci.Inventory, what source.What) State {
	t.Helper()
	all := map[string]string{CPUFile[1:]: "flags\t\t: fpu vme\n"}
	maps.Copy(all, some)
	fs := tree(t, all)
	return Read(fs, ReadDMI(fs), functions, what)
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
