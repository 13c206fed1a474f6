package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/report"
	"gdr-features/internal/rooms/explain"
	"gdr-features/source/pci"
	"gdr-features/test/machine"
)

// oneSwitch has a GPU and a NIC below one switch, another NIC beside
// it, and one without an RDMA device.
const oneSwitch = `pci0000:00 numa=0
  0000:00:01.0 port 8086:352a
    0000:01:00.0 switch 1000:c030
      0000:02:00.0 port 1000:c030 acs=001d
        0000:03:00.0 gpu 10de:2330
      0000:02:01.0 port 1000:c030 acs=0020
        0000:04:00.0 ib 15b3:1021 rdma=mlx5_0
  0000:00:02.0 port 8086:352a
    0000:05:00.0 ib 15b3:1021 rdma=mlx5_1
pci0001:00 numa=0
  0001:00:01.0 port 8086:352a
    0001:01:00.0 eth 15b3:1021
`

func readOneSwitch(t *testing.T) *report.Report {
	t.Helper()
	m, err := machine.Parse(oneSwitch)
	if err != nil {
		t.Fatal(err)
	}
	return collect(t, m, m.Ready())
}

func find(t *testing.T, r *report.Report, address string) *pci.Function {
	t.Helper()
	a, err := pci.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	f := r.PCI.Find(a)
	if f == nil {
		t.Fatalf("no %s", address)
	}
	return f
}

// TestNarrowest: the links that carry least on the path are marked at both ends, but
// not that of an idle GPU or of the port where the path turns.
func TestNarrowest(t *testing.T) {
	gen5 := pci.Link{Speed: 32, MaxSpeed: 32, Width: 16, MaxWidth: 16}
	slow := func(speed float64, width int) *pci.Link {
		return &pci.Link{Speed: speed, MaxSpeed: 32, Width: width, MaxWidth: 16}
	}
	for _, tt := range []struct {
		name  string
		links map[string]*pci.Link
		want  string
	}{
		{"all the same", nil, ""},
		{"the NIC's link has half the lanes", map[string]*pci.Link{"0000:04:00.0": slow(32, 8), "0000:02:01.0": slow(32, 8)}, "0000:02:01.0 0000:04:00.0"},
		{"the NIC's link runs slower", map[string]*pci.Link{"0000:04:00.0": slow(16, 16), "0000:02:01.0": slow(16, 16)}, "0000:02:01.0 0000:04:00.0"},
		{"5 GT/s cost a fifth for coding", map[string]*pci.Link{"0000:04:00.0": slow(5, 16), "0000:02:01.0": slow(8, 9)}, "0000:04:00.0"},
		{"an idle GPU", map[string]*pci.Link{"0000:03:00.0": slow(2.5, 16), "0000:02:00.0": slow(2.5, 16)}, ""},
		{"a GPU that lost lanes", map[string]*pci.Link{"0000:03:00.0": slow(2.5, 8), "0000:02:00.0": slow(2.5, 8)}, "0000:03:00.0 0000:02:00.0"},
		{"a GPU of an older generation", map[string]*pci.Link{"0000:03:00.0": {Speed: 16, MaxSpeed: 16, Width: 16, MaxWidth: 16}}, "0000:03:00.0 0000:02:00.0"},
		{"the switch's own link", map[string]*pci.Link{"0000:01:00.0": slow(8, 4)}, ""},
		{"nothing known of one", map[string]*pci.Link{"0000:04:00.0": nil, "0000:02:01.0": {}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := readOneSwitch(t)
			for i := range r.PCI.Functions {
				own := gen5
				r.PCI.Functions[i].Link = &own
			}
			for address, l := range tt.links {
				find(t, r, address).Link = l
			}
			var got []string
			for _, h := range explain.PathOf(&r.Node, 0, 0).Hops {
				if h.Narrowest {
					got = append(got, h.Name)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestNotes: a path has the notes that apply to it, and no others.
func TestNotes(t *testing.T) {
	r := readOneSwitch(t)
	acs := "ACS redirects peer-to-peer traffic to the root complex at 0000:02:00.0 0000:02:01.0"
	for nic, want := range map[int][]string{0: {acs}, 1: nil} { // over the host bridge it goes up anyway
		if diff := cmp.Diff(want, explain.PathOf(&r.Node, 0, nic).Notes); diff != "" {
			t.Errorf("NIC %d (-want +got):\n%s", nic, diff)
		}
	}
	find(t, r, "0000:03:00.0").Link.Speed = 2.5
	if notes := explain.PathOf(&r.Node, 0, 1).Notes; len(notes) != 1 || !strings.HasPrefix(notes[0], "an idle GPU") {
		t.Errorf("%v", notes)
	}
}

// TestUnreadablePlace: a path of a function without a known place has hops, and says
// why it has no level.
func TestUnreadablePlace(t *testing.T) {
	r := readOneSwitch(t)
	nic := find(t, r, "0000:04:00.0")
	nic.RootBus, nic.Bridges = "", nil
	for i := range r.Matrix.Pairs {
		r.Matrix.Pairs[i].Level = 0
	}
	p := explain.PathOf(&r.Node, 0, 0)
	var names []string
	for _, h := range p.Hops {
		names = append(names, h.Name)
	}
	want := []string{"0000:03:00.0", "0000:02:00.0", "0000:01:00.0", "0000:00:01.0", "pci0000:00", "NUMA node 0", "not readable", "0000:04:00.0"}
	if !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
	if p.Why != "the place of 0000:04:00.0 in the device tree cannot be read" {
		t.Errorf("%s", p.Why)
	}
}

func TestFind(t *testing.T) {
	r := readOneSwitch(t)
	r.Matrix.NICs[1].RDMA.NetDevs = []string{"ib1", "eth1"}
	for name, want := range map[string]string{
		"GPU0": "0", "gpu0": "0", "0": "0", "0000:03:00.0": "0", "03:00.0": "0",
		"GPU1": `no GPU "GPU1"; there are GPU0 (0000:03:00.0)`,
		"":     `no GPU ""; there are GPU0 (0000:03:00.0)`,
		"00":   `no GPU "00"; there are GPU0 (0000:03:00.0)`,
	} {
		i, err := explain.FindGPU(&r.Node, name)
		if got := answer(i, err); got != want {
			t.Errorf("GPU %q: %s, want %s", name, got, want)
		}
	}
	all := "; there are mlx5_0 (0000:04:00.0), mlx5_1 (0000:05:00.0), 0001:01:00.0"
	for name, want := range map[string]string{
		"mlx5_0": "0", "mlx5_1": "1", "ib1": "1", "eth1": "1", "05:00.0": "1", "0000:05:00.0": "1", "0001:01:00.0": "2",
		"01:00.0": `no NIC "01:00.0"` + all,
		"MLX5_1":  "1", "Mlx5_0": "0", "ETH1": `no NIC "ETH1"` + all,
		"": `no NIC ""` + all,
	} {
		i, err := explain.FindNIC(&r.Node, name)
		if got := answer(i, err); got != want {
			t.Errorf("NIC %q: %s, want %s", name, got, want)
		}
	}
	r.Matrix.NICs[1].RDMA.Name = "MLX5_0" // names that differ in nothing but case
	for name, want := range map[string]string{
		"mlx5_0": "0", "MLX5_0": "1",
		"Mlx5_0": `no NIC "Mlx5_0"; there are mlx5_0 (0000:04:00.0), MLX5_0 (0000:05:00.0), 0001:01:00.0`,
	} {
		i, err := explain.FindNIC(&r.Node, name)
		if got := answer(i, err); got != want {
			t.Errorf("NIC %q beside one in another case: %s, want %s", name, got, want)
		}
	}
	r.Matrix.GPUs = nil
	if _, err := explain.FindGPU(&r.Node, "GPU0"); err == nil || err.Error() != `no GPU "GPU0": this machine has none` {
		t.Errorf("%v", err)
	}
	r.PCIRead = false
	if _, err := explain.FindGPU(&r.Node, "GPU0"); err == nil || err.Error() != `no GPU "GPU0": the PCI bus cannot be read` {
		t.Errorf("%v", err)
	}
}

func answer(i int, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(i)
}
