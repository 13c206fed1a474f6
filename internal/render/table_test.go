package render

import (
	"fmt"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/test/machine"
)

// manyFunctions is a machine whose NIC has a number of virtual functions.
func manyFunctions(t *testing.T, virtual int) report.Report {
	t.Helper()
	var text strings.Builder
	text.WriteString("pci0000:01 numa=0\n  0000:01:00.0 port 8086:352a\n    0000:02:00.0 gpu 10de:2330\n")
	text.WriteString("  0000:01:01.0 port 8086:352a\n    0000:03:00.0 eth 15b3:101d rdma=mlx5_0\n")
	for i := range virtual {
		fmt.Fprintf(&text, "    0000:03:%02x.%d eth 15b3:101e physfn=0000:03:00.0 rdma=mlx5_%d\n", 1+i/8, i%8, i+1)
	}
	m, err := machine.Parse(text.String())
	if err != nil {
		t.Fatal(err)
	}
	fs, err := host.Open(host.Options{Root: m.Tree(t, m.Ready())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	return report.Collect(t.Context(), fs, report.ForTopo)
}

// TestWideMatrix: a matrix stays readable on a NIC with many virtual
// functions, which all have the place of the physical one.
func TestWideMatrix(t *testing.T) {
	const most = 24 // NICs with a column each
	for virtual, folds := range map[int]bool{most - 1: false, most: true, 100: true} {
		r := manyFunctions(t, virtual)
		var out strings.Builder
		if err := Topo(&out, &r); err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(out.String(), "\n")
		if got := len(strings.Fields(head)) == 2; got != folds { // the physical one, and NUMA
			t.Errorf("%d virtual functions: folded %v: %s", virtual, got, head)
		}
		note := fmt.Sprintf("%d virtual functions have the levels of", virtual)
		if strings.Contains(out.String(), note) != folds {
			t.Errorf("%d virtual functions: note %q", virtual, note)
		}
	}
}

// TestWideText: texts from devices cannot act on a terminal or break the table.
func TestWideText(t *testing.T) {
	r := manyFunctions(t, 0)
	r.Matrix.NICs[0].RDMA.Firmware = "28\x1b[2J\t42"
	r.Matrix.NICs[0].RDMA.NetDevs = []string{"ib0", "eth\n1", "b\u009bx"}
	var out strings.Builder
	if err := TopoWide(&out, &r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  28?[2J?42  ", "  ib0,eth?1,b?x  "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
