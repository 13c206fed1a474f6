//go:build nccl

package nccl

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gdr-features/test/machine"
	"gdr-features/topology/nccl"
)

// TestRefused changes a topology file in many ways: we report exactly the files that
// NCCL's reader refuses.
func TestRefused(t *testing.T) {
	m, err := machine.Load(filepath.Join(machinesDir, "numa-far.txt"))
	if err != nil {
		t.Fatal(err)
	}
	root := m.Tree(t, m.Ready())
	addBuses(t, root)
	r := collect(t, root, nil)
	text, err := r.Matrix.WriteFile(&r.PCI, r.Platform.CPU)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	const bits = " \t\n<>/=\"'a-!?1"
	seen := map[bool]int{}
	for i := range 600 {
		changed := slices.Clone(text)
		if i%10 == 0 {
			changed = bytes.Replace(changed, []byte("<!-- "), []byte("<!--"), 1)
			at := bytes.Index(changed, []byte("<!--")) + len("<!--") + random.IntN(6)
			changed = slices.Insert(changed, at, "=/ ->"[random.IntN(5)])
		}
		for range 1 + random.IntN(2) {
			at := random.IntN(len(changed))
			changed = slices.Replace(changed, at, at+random.IntN(2), bits[random.IntN(len(bits))])
		}
		if err := os.WriteFile(filepath.Join(root, "topo.xml"), changed, 0o644); err != nil {
			t.Fatal(err)
		}
		file, err := nccl.ParseFile(changed)
		if err != nil {
			continue // NCCL may take it all the same: it is not read, and nothing is said of NCCL
		}
		a := ask(t, &r, question{root: root, file: "/topo.xml"})
		why := file.RefusedFor(nil)
		seen[why != nil]++
		if why != nil && a.fails == "" {
			t.Errorf("we say %v, and NCCL takes it:\n%s", why, changed)
		}
		if why == nil && strings.Contains(a.fails, "XML") {
			t.Errorf("NCCL says %s, and we take it:\n%s", a.fails, changed)
		}
	}
	if seen[true] < 50 || seen[false] < 50 {
		t.Errorf("refused and taken: %v", seen)
	}
}
