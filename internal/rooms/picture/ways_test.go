package picture

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/test/testsize"
	"gdr-features/topology"
)

// TestWays looks at one tree: a GPU meets its nearest NIC in the switch above both, and
// the lines to it have their level, others none.
func TestWays(t *testing.T) {
	m := newModel(named(t, "broadcom-nested", "ready"))
	var got []string
	var walk func(n *node, path string)
	walk = func(n *node, path string) {
		path += "/" + n.Name + n.Address
		if n.Device != nil {
			path += n.Device.Name
		}
		got = append(got, fmt.Sprintf("%s way=%v meets=%v", path, n.Way, n.Meets))
		for _, child := range n.Below {
			walk(child, path)
		}
	}
	walk(m.Panels[0].Below[2], "")
	want := []string{
		"/pci0000:30 way= meets=",
		"/pci0000:30/root port30:01.0 way= meets=",
		"/pci0000:30/root port30:01.0/switch31:00.0 way= meets=PXB",
		"/pci0000:30/root port30:01.0/switch31:00.0/switch33:00.0 way=PXB meets=",
		"/pci0000:30/root port30:01.0/switch31:00.0/switch33:00.0/GPU2 way=PXB meets=",
		"/pci0000:30/root port30:01.0/switch31:00.0/mlx5_2 way=PXB meets=",
	}
	if !slices.Equal(got, want) {
		t.Errorf("ways:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestMeets: two devices without a common root bus meet in their NUMA node, and
// without a common NUMA node nowhere.
func TestMeets(t *testing.T) {
	for _, tc := range []struct {
		numa  int
		level topology.Level
		meets topology.Level
	}{{0, topology.NODE, topology.NODE}, {1, topology.SYS, topology.Unknown}} {
		m := newModel(described(t, fmt.Sprintf("nodes 2\npci0000:00 numa=0\n  0000:00:01.0 gpu 10de:2330\npci0000:10 numa=%d\n  0000:10:01.0 ib 15b3:1021 rdma=x\n", tc.numa)))
		if m.GPUs[0].Level != tc.level || m.Panels[0].Meets != tc.meets {
			t.Errorf("%v, meets at %v: %+v", m.GPUs[0].Level, m.Panels[0].Meets, tc)
		}
	}
}

// TestBounded: of many functions only those that lead to GPUs and NICs are shown,
// and a note says how many are left out.
func TestBounded(t *testing.T) {
	type bound struct {
		machine, note string
		bytes         int // at most
	}
	for _, b := range testsize.Share([]bound{
		{many(70, 70), "12 devices left out", 500000},
		{crowded(), "700 virtual functions left out", 30000},
	}) {
		r := described(t, b.machine)
		for name, form := range forms {
			if text := written(t, form, r); !strings.Contains(text, b.note) || len(text) > b.bytes {
				t.Errorf("%s: %d bytes, of %d; they must have %q", name, len(text), b.bytes, b.note)
			}
		}
	}
}

// TestNUMANames: a panel says what is known of its NUMA node.
func TestNUMANames(t *testing.T) {
	two := "nodes 2\npci0000:00%s\n  0000:00:01.0 port 8086:1\n    0000:01:00.0 gpu 10de:2330%s\n    0000:02:00.0 ib 15b3:1021 rdma=x%s\n"
	for _, tc := range []struct{ text, want string }{
		{fmt.Sprintf(two, " numa=1", "", ""), "NUMA node 1"},
		{fmt.Sprintf(two, "", "", ""), "NUMA node unknown"},
		{fmt.Sprintf(two, "", " numa=0", " numa=1"), "NUMA nodes 0 1"},
		{strings.Replace(fmt.Sprintf(two, "", "", ""), "nodes 2", "nodes 1", 1), "One NUMA node"},
		{strings.Replace(fmt.Sprintf(two, "", "", ""), "nodes 2", "nodes 0", 1), "No NUMA nodes"},
	} {
		m := newModel(described(t, tc.text))
		if len(m.Panels) != 1 || m.Panels[0].Name != tc.want {
			t.Errorf("%v, want %s", m.Panels, tc.want)
		}
	}
}

// TestElsewhere: devices that are not in the PCI tree are shown, too.
func TestElsewhere(t *testing.T) {
	r := described(t, many(1, 1))
	r.Matrix.NICs = append(r.Matrix.NICs, topology.NIC{RDMA: &rdma.Device{Name: "rxe0"}})
	r.Matrix.Pairs = append(r.Matrix.Pairs, topology.Pair{GPU: 0, NIC: 1})
	r.Matrix.GPUs[0].Function = &pci.Function{Vendor: 0x10de}
	m := newModel(r)
	if last := m.Panels[len(m.Panels)-1]; last.Name != "Elsewhere" || len(last.Below[0].Below) != 2 {
		t.Errorf("%+v", last)
	}
	checkForms(t, r)
}
