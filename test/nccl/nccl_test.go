//go:build nccl

package nccl

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/source/pci"
	"gdr-features/test/machine"
	"gdr-features/topology"
	"gdr-features/topology/nccl"
)

const (
	machinesDir = "../../testdata/machines"
	filesDir    = "../../testdata/ncclfiles" // machines with topology files
)

// collect reads a tree, with a topology file or without.
func collect(t *testing.T, root string, file *nccl.File) report.Report {
	t.Helper()
	fs, err := host.Open(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	r := report.Collect(t.Context(), fs, report.Options{What: report.ForTopo.What, TopologyFile: file})
	if r.Platform.BIOS != "" { // by which RCCL differs
		r.Platform.BIOS = "not of Azure"
		r.Matrix = topology.Build(topology.Inputs{PCI: &r.PCI, RDMA: &r.RDMA, Platform: r.Platform, File: file})
	}
	return r
}

// tooLarge: NCCL does not start, since the machine has more elements than it takes.
func tooLarge(a answer) bool { return strings.Contains(a.fails, "too many XML nodes") }

// compare compares our levels with NCCL's and gives the number of pairs.
func compare(t *testing.T, what string, r *report.Report, a answer) int {
	t.Helper()
	if a.fails != "" {
		if tooLarge(a) {
			t.Logf("%s: not compared (more elements than NCCL takes): %s", what, a.fails)
			return 0
		}
		if r.Matrix.NCCL.Failed != nil {
			return 0
		}
		t.Errorf("%s: NCCL fails: %s", what, a.fails)
		return 0
	}
	ours, pairs := said(r), 0
	for i := range r.Matrix.NICs {
		n := &r.Matrix.NICs[i]
		if n.Function == nil {
			continue
		}
		for _, g := range r.Matrix.GPUs {
			name := pairName(g.Address.String(), n)
			theirs := a.levels[name]
			if why := left(n); why != "" {
				t.Logf("%s: %s: not compared (%s): %q, NCCL %s", what, name, why, ours[name], theirs)
				continue
			}
			pairs++
			if theirs != ours[name] {
				t.Errorf("%s: %s: %q, NCCL %s", what, name, ours[name], theirs)
			}
		}
	}
	return pairs
}

// bothWays compares a tree as sysfs shows it, and by the topology file that is
// written of it; and lets NCCL start with that file where the only network
// interface has no PCI device.
func bothWays(t *testing.T, root string) (pairs int, answers map[string]string) {
	t.Helper()
	addBuses(t, root)
	r := collect(t, root, nil)
	if len(r.Matrix.GPUs) == 0 {
		return 0, nil
	}
	a := ask(t, &r, question{root: root})
	pairs = compare(t, "sysfs", &r, a)
	text, err := r.Matrix.WriteFile(&r.PCI, r.Platform.CPU)
	if err != nil {
		t.Logf("no nccl-xml: %v", err)
		return pairs, a.levels
	}
	forNCCL := bytes.Replace(text, []byte(`<system version="2">`), []byte(`<system version="1">`), 1) // of RCCL
	if err := os.WriteFile(filepath.Join(root, "topo.xml"), forNCCL, 0o644); err != nil {
		t.Fatal(err)
	}
	file, err := nccl.ParseFile(text)
	if err != nil {
		t.Fatal(err)
	}
	var gpus []*pci.Function
	for _, gpu := range r.Matrix.GPUs {
		gpus = append(gpus, gpu.Function)
	}
	if refused := file.RefusedFor(gpus); refused != nil {
		t.Errorf("nccl-xml: %v", refused)
	}
	again := collect(t, root, file)
	b := ask(t, &again, question{root: root, file: "/topo.xml"})
	pairs += compare(t, "nccl-xml", &again, b)
	if a.fails == "" && fmt.Sprint(a.levels) != fmt.Sprint(b.levels) {
		t.Errorf("with nccl-xml NCCL rates otherwise:\n%v\n%v\n%s", a.levels, b.levels, text)
	}
	if c := ask(t, &r, question{root: root, file: "/topo.xml", socket: true}); c.fails != "" && a.fails == "" {
		t.Errorf("nccl-xml, and a network interface without PCI device: NCCL fails: %s", c.fails)
	}
	return pairs, a.levels
}

// TestMachines compares every machine, and keeps what NCCL says of it.
func TestMachines(t *testing.T) {
	pairs := 0
	for _, m := range machine.All(t, machinesDir) {
		t.Run(m.Name, func(t *testing.T) {
			n, answers := bothWays(t, m.Tree(t, m.Ready()))
			pairs += n
			keep(t, m.Name, lines(answers))
		})
	}
	t.Logf("%d pairs", pairs)
}

// TestFiles compares the machines of testdata/ncclfiles with their topology files, and keeps
// what NCCL says of them.
func TestFiles(t *testing.T) {
	machines, err := filepath.Glob(filesDir + "/*.txt")
	if err != nil || len(machines) == 0 {
		t.Fatalf("%v machines, %v", machines, err)
	}
	for _, name := range machines {
		m, err := machine.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(strings.TrimSuffix(name, ".txt") + ".xml")
		if err != nil {
			t.Fatal(err)
		}
		root := m.Tree(t, m.Ready())
		addBuses(t, root)
		n, answers := compareFile(t, root, string(text))
		keep(t, m.Name, lines(answers))
		t.Logf("%s: %d pairs", m.Name, n)
	}
}

// lines lists answers by their names.
func lines(answers map[string]string) string {
	var list []string
	for name, level := range answers {
		list = append(list, name+" "+level+"\n")
	}
	sort.Strings(list)
	return strings.Join(list, "")
}

func keep(t *testing.T, name, text string) {
	t.Helper()
	kept := filepath.Join("../../testdata/nccl", name+".txt")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(kept, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if was, err := os.ReadFile(kept); err != nil || string(was) != text {
		t.Errorf("%s is not what NCCL says (%v); UPDATE=1 writes it", kept, err)
	}
}

// TestElements: NCCL starts with the largest file that we write, but not with one
// NIC more.
func TestElements(t *testing.T) {
	for _, nvSwitch := range []bool{false, true} {
		started, refused := 0, 0
		for nics := 70; nics < 84; nics++ {
			var text strings.Builder
			for i := range 8 {
				fmt.Fprintf(&text, "pci%04x:00 numa=0\n  %04x:00:00.0 gpu 10de:2330\n", i, i)
			}
			for i := range nics {
				fmt.Fprintf(&text, "pci%04x:00 numa=%d\n  %04x:00:00.0 ib 15b3:1021 rdma=mlx5_%d\n", i+8, i%2, i+8, i)
			}
			if nvSwitch {
				text.WriteString("pcif000:00 numa=0\n  f000:00:00.0 068000 10de:22a3\n")
			}
			m, err := machine.Parse(text.String())
			if err != nil {
				t.Fatal(err)
			}
			root := m.Tree(t, m.Ready())
			addBuses(t, root)
			r := collect(t, root, nil)
			file, err := r.Matrix.WriteFile(&r.PCI, r.Platform.CPU)
			a := ask(t, &r, question{root: root, nvlink: nvSwitch})
			if (err != nil) != (a.fails != "") {
				t.Errorf("%d NICs: file %v, NCCL %q", nics, err, a.fails)
			}
			if err != nil {
				refused++
				continue
			}
			started++
			if err := os.WriteFile(filepath.Join(root, "topo.xml"), file, 0o644); err != nil {
				t.Fatal(err)
			}
			if a := ask(t, &r, question{root: root, file: "/topo.xml", nvlink: nvSwitch}); a.fails != "" {
				t.Errorf("%d NICs, with the file: NCCL fails: %s", nics, a.fails)
			}
		}
		if started == 0 || refused == 0 {
			t.Errorf("%d files written, %d refused", started, refused)
		}
	}
}
