package report_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/internal/label"
	"gdr-features/internal/nodelabel"
	"gdr-features/internal/report"
	"gdr-features/source"
	"gdr-features/test/machine"
	"gdr-features/topology"
	"gdr-features/topology/nccl"
)

// TestFileLabelsStable: hardware labels from a topology file do not change with
// drivers either, although NCCL would also find a NIC by its RDMA device.
func TestFileLabelsStable(t *testing.T) {
	file, err := nccl.ParseFile([]byte(`<system version="1"><cpu numaid="0">
  <pci busid="ffff:ff:01.0" class="0x060400">
    <pci busid="0000:18:00.0" class="0x030200"/>
    <pci busid="00aa:00:00.0" class="0x020700"><nic><net name="mlx5_0"/></nic></pci>
  </pci></cpu></system>`))
	if err != nil {
		t.Fatal(err)
	}
	var first label.Set
	for s, dir := range parse(t, one).Trees(t, machine.States()) {
		fs, err := host.Open(host.Options{Root: dir})
		if err != nil {
			t.Fatal(err)
		}
		hardware := report.Collect(t.Context(), fs, report.Options{TopologyFile: file}).Labels
		_ = fs.Close()
		maps.DeleteFunc(hardware, func(name, _ string) bool { return !nodelabel.Hardware(name) })
		if first == nil {
			first = hardware
		}
		if diff := cmp.Diff(first, hardware); diff != "" {
			t.Errorf("in state %s (-first +got):\n%s", s.Name, diff)
		}
	}
}

// TestUnreadableNUMA: an unreadable NUMA node is neither a node nor -1.
func TestUnreadableNUMA(t *testing.T) {
	m := parse(t, `
nodes 2
pci0000:01
  0000:01:00.0 port 10de:22b1
    0000:02:00.0 gpu 10de:2342 name=GPU0
pci0000:03
  0000:03:00.0 port 10de:22b1
    0000:04:00.0 ib 15b3:1021 rdma=mlx5_0
`)
	for name, spoil := range map[string]func(string) error{
		"garbage": func(path string) error { return os.WriteFile(path, []byte("many\n"), 0o644) },
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"missing": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			dir := m.Tree(t, state(t, "ready"))
			for _, f := range []string{"0000:02:00.0", "0000:04:00.0"} {
				if err := spoil(filepath.Join(dir, "sys/bus/pci/devices", f, "numa_node")); err != nil {
					t.Fatal(err)
				}
			}
			r := collect(t, dir, source.What{})
			for _, name := range []string{label.Level, label.BestLevel, label.NCCLDefault} {
				if value, ok := r.Labels[name]; ok {
					t.Errorf("%s = %q", name, value)
				}
			}
			if p := r.Matrix.Pairs[0]; p.Level != topology.Unknown || p.NCCL != topology.Unknown {
				t.Errorf("level %q, nccl %q", p.Level, p.NCCL)
			}
		})
	}
}

// TestPhysicalByItsPorts: if neither CPU nor firmware say it, a GPU below a CPU's
// root port proves that the PCI tree is physical.
func TestPhysicalByItsPorts(t *testing.T) {
	for port, want := range map[string]string{"8086:352a": "physical", "1022:1483": "physical", "8086:3420": "", "10de:22b1": "", "1af4:0001": "", "1b36:000c": "virtual"} {
		m := parse(t, "pci0000:01 numa=0\n  0000:01:00.0 port "+port+"\n    0000:02:00.0 gpu 10de:2330\n")
		dir := m.Tree(t, state(t, "ready"))
		for _, file := range []string{"proc/cpuinfo", "sys/class/dmi"} {
			if err := os.RemoveAll(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
		}
		r := collect(t, dir, source.What{})
		if got := r.Labels[label.Topology]; got != want {
			t.Errorf("below %s: %q, want %q", port, got, want)
		}
		if (want == "") != (len(r.Problems) > 0) {
			t.Errorf("below %s: problems %q", port, r.Problems)
		}
	}
}

// TestNICOverC2C: the place of a NIC that is attached over NVLink-C2C (linux-rdma/rdma-core commit
// 0e0b5574f) proves nothing. Another NIC beside it is judged all the same.
func TestNICOverC2C(t *testing.T) {
	const text = `arm
pci0000:00 numa=0
  0000:00:00.0 port 10de:2f95
    0000:01:00.0 switch 15b3:197b
      0000:02:00.0 port 15b3:197b
        0000:03:00.0 gpu 10de:3041
      0000:02:01.0 port 15b3:197b
        0000:04:00.0 ib 15b3:%s rdma=mlx5_0
`
	const beside = "      0000:02:02.0 port 15b3:197b\n        0000:05:00.0 ib 15b3:1027 rdma=mlx5_1\n"
	for _, tc := range []struct{ name, text, level, ready string }{
		{"ConnectX-10", fmt.Sprintf(text, "1027"), "PIX", "true"},
		{"over C2C", fmt.Sprintf(text, "2101"), "", ""},
		{"over C2C, and a ConnectX-10", fmt.Sprintf(text, "2101") + beside, "PIX", "true"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := collect(t, parse(t, tc.text).Tree(t, state(t, "ready")), source.What{})
			for name, want := range map[string]string{label.Level: tc.level, label.Ready: tc.ready, label.Capable: tc.ready, label.NCCLDefault: tc.ready} {
				if got := r.Labels[name]; got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if nic := r.Matrix.NICs[0].Function.Name(); !strings.HasPrefix(nic, "ConnectX-10") {
				t.Errorf("the NIC is named %q", nic)
			}
		})
	}
}
