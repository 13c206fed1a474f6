package picture

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
)

// collect reads a machine in a state from a tree on disk, as a command would.
func collect(t testing.TB, m *machine.Machine, s machine.State) *report.Report {
	t.Helper()
	return read(t, m.Tree(t, s))
}

func read(t testing.TB, dir string) *report.Report {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	r := report.Collect(t.Context(), fs, report.ForTopo)
	return &r
}

// described is a machine from a text, with everything in place.
func described(t testing.TB, text string) *report.Report {
	t.Helper()
	m, err := machine.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return collect(t, m, m.Ready())
}

func named(t testing.TB, name, software string) *report.Report {
	t.Helper()
	m, err := machine.Load(filepath.Join("../../../testdata/machines", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return collect(t, m, state(t, m, software))
}

func state(t testing.TB, m *machine.Machine, name string) machine.State {
	t.Helper()
	s, ok := m.StateNamed(name)
	if !ok {
		t.Fatalf("no state %s", name)
	}
	return s
}

// TestEverywhere shows every machine in several states, and made-up ones.
func TestEverywhere(t *testing.T) {
	for _, m := range testsize.Share(machine.All(t, "../../../testdata/machines")) {
		var states []machine.State
		for _, name := range []string{"ready", "no-drivers", "no-rdma", "ports-down"} {
			states = append(states, state(t, m, name))
		}
		for s, dir := range m.Trees(t, states) {
			t.Run(m.Name+"/"+s.Name, func(t *testing.T) { checkAll(t, read(t, dir)) })
		}
	}
	shapes := madeUp()
	for _, name := range testsize.Share(slices.Sorted(maps.Keys(shapes))) {
		t.Run(name, func(t *testing.T) { checkAll(t, described(t, shapes[name])) })
	}
}

func checkAll(t *testing.T, r *report.Report) {
	t.Helper()
	checkForms(t, r)
	checkNear(t, r)
}

// madeUp are machines of extreme shapes.
func madeUp() map[string]string {
	return map[string]string{
		"one of each":      "pci0000:00 numa=0\n  0000:00:01.0 port 8086:1\n    0000:01:00.0 gpu 10de:2330\n    0000:01:00.1 ib 15b3:1021 rdma=mlx5_0\n",
		"sixteen of each":  many(16, 16),
		"more than fit":    many(70, 70),
		"seventy GPUs":     many(70, 1),
		"no NIC":           many(3, 0),
		"no bridges":       "pci0000:00\n  0000:00:02.0 gpu 10de:2330\n  0000:00:03.0 ib 15b3:1021 rdma=mlx5_0\n",
		"many functions":   crowded(),
		"long names":       "pci0000:00 numa=0\n  0000:00:01.0 port 8086:1\n    0000:01:00.0 gpu 10de:2bb4\n    0000:01:00.1 ib 15b3:6732 rdma=a_name_that_udev_may_give_to_a_device_and_longer,b\n",
		"two names a port": "pci0000:00 numa=0\n  0000:00:01.0 port 8086:1\n    0000:01:00.0 gpu 10de:2330\n  0000:00:02.0 port 8086:1\n    0000:02:00.0 switch 1:2\n      0000:03:00.0 ib 15b3:1003 rdma=a,b,c,d\n",
		"many NUMA nodes":  manyNodes(),
		"thirty deep":      deep(30),
	}
}

// many puts GPUs and NICs below one switch each.
func many(gpus, nics int) string {
	var text strings.Builder
	text.WriteString("nodes 2\n")
	add := func(i int, what string) {
		fmt.Fprintf(&text, "pci%04x:00 numa=%d\n  %04x:00:01.0 port 8086:1\n    %04x:01:00.0 switch 1000:c030\n      %04x:02:00.0 port 1000:c030\n        %04x:03:00.0 %s\n",
			i, i%2, i, i, i, i, what)
	}
	for i := range gpus {
		add(i, "gpu 10de:2330")
	}
	for i := range nics {
		add(gpus+i, fmt.Sprintf("ib 15b3:1021 rdma=mlx5_%d", i))
	}
	return text.String()
}

// manyNodes is a root bus on which every function claims a node of its own.
func manyNodes() string {
	var text strings.Builder
	text.WriteString("nodes 2\npci0000:00\n")
	for i := range 30 {
		fmt.Fprintf(&text, "  0000:%02x:00.0 gpu 10de:2330 numa=%d\n", i, 100+i)
	}
	return text.String()
}

// deep nests bridges.
func deep(n int) string {
	var text strings.Builder
	text.WriteString("pci0000:00 numa=0\n")
	for i := range n {
		fmt.Fprintf(&text, "%*s0000:%02x:00.0 port 8086:1\n", 2+2*i, "", i)
	}
	fmt.Fprintf(&text, "%*s0000:f0:00.0 gpu 10de:2330\n%*s0000:f1:00.0 ib 15b3:1021 rdma=mlx5_0\n", 2+2*n, "", 2+2*n-6, "")
	return text.String()
}

// crowded is a NIC with 700 virtual functions and as many others around.
func crowded() string {
	var text strings.Builder
	text.WriteString("pci0000:00 numa=0\n  0000:00:01.0 port 8086:1\n    0000:01:00.0 gpu 10de:2330\n  0000:00:02.0 port 8086:1\n    0000:02:00.0 eth 15b3:101d rdma=mlx5_0\n")
	for i := range 700 {
		fmt.Fprintf(&text, "    0000:%02x:%02x.%d eth 15b3:101e physfn=0000:02:00.0 rdma=mlx5_%d\n", 3+i/256, i/8%32, i%8, i+1)
	}
	for i := range 700 {
		fmt.Fprintf(&text, "  0001:%02x:%02x.%d 010802 144d:a80a\n", i/256, i/8%32, i%8)
	}
	return text.String()
}
