package topology_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/topology"
	"gdr-features/topology/nccl"
	"gdr-features/verdict"
)

// ncclLevels returns NCCL's levels by the names that the description uses.
func ncclLevels(m *machine.Machine, tm *topology.Matrix) map[string]string {
	names := map[string]string{}
	for _, f := range m.Functions {
		names[f.Address] = f.Attrs["name"]
	}
	out := map[string]string{}
	for _, p := range tm.Pairs {
		out[names[tm.GPUs[p.GPU].Address.String()]+" "+tm.NICs[p.NIC].Name()] = p.NCCL.String()
	}
	return out
}

// TestNCCLLevels checks NCCL's levels on machines where they differ from
// nvidia-smi's.
func TestNCCLLevels(t *testing.T) {
	for _, tc := range []struct {
		machine string
		want    map[string]string
	}{
		{"broadcom-nested", map[string]string{ // two levels of one chip are one switch
			"GPU0 mlx5_0": "PIX", "GPU0 mlx5_1": "PHB", "GPU0 mlx5_2": "PHB",
			"GPU1 mlx5_0": "PHB", "GPU1 mlx5_1": "PIX", "GPU1 mlx5_2": "PHB",
			"GPU2 mlx5_0": "PHB", "GPU2 mlx5_1": "PHB", "GPU2 mlx5_2": "PXB",
		}},
		{"bluefield3-l40s", map[string]string{"GPU0 rocep27s0f0": "PXB", "GPU0 rocep27s0f1": "PXB"}},
		{"epyc-3gpu-phb-nccltests320", map[string]string{ // no NODE in NCCL
			"GPU0 mlx5_0": "PHB", "GPU0 mlx5_1": "PHB", "GPU1 mlx5_0": "PHB",
			"GPU1 mlx5_1": "PHB", "GPU2 mlx5_0": "PHB", "GPU2 mlx5_1": "PHB",
		}},
		{"vmd-domain", map[string]string{ // NCCL cuts an address with a domain of 17 bits and finds nothing
			"GPU0 mlx5_0": "PHB", "GPU0 mlx5_1": "SYS",
		}},
		{"numa-unknown", map[string]string{"GPU0 mlx5_0": "PHB", "GPU0 mlx5_1": "PHB"}},
		{"gb300-datadirect", map[string]string{ // the data-direct function's place counts
			"GPU0 mlx5_0": "PIX", "GPU0 mlx5_1": "SYS",
			"GPU1 mlx5_0": "SYS", "GPU1 mlx5_1": "PIX",
		}},
		{"vfs-with-pf", map[string]string{
			"GPU0 rdma_rail0": "PIX", "GPU0 mlx5_2": "PIX", "GPU0 mlx5_3": "PIX", "GPU0 mlx5_4": "PHB", "GPU0 mlx5_9": "",
		}},
	} {
		t.Run(tc.machine, func(t *testing.T) {
			m := load(t, tc.machine)
			r := ready(t, m)
			if diff := cmp.Diff(tc.want, ncclLevels(m, &r.Matrix)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNCCLWithoutVPD: NCCL goes by the place of a NIC's data-direct function, which only the VPD
// tells. One NIC whose VPD was read, and names none, is where it is.
func TestNCCLWithoutVPD(t *testing.T) {
	r := withFile(t, load(t, "gb300-datadirect"), nil)
	for f := range r.PCI.All() {
		f.DataDirect = nil
		if f.Address != at(t, "0010:01:00.0") {
			f.VPD = nil
		}
	}
	m := topology.Build(topology.Inputs{PCI: &r.PCI, RDMA: &r.RDMA, Platform: r.Platform})
	var got []string
	for _, p := range m.Pairs {
		got = append(got, fmt.Sprintf("GPU%d %s %q", p.GPU, m.NICs[p.NIC].Name(), p.NCCL))
	}
	want := []string{`GPU0 mlx5_0 ""`, `GPU0 mlx5_1 "SYS"`, `GPU1 mlx5_0 ""`, `GPU1 mlx5_1 "P2C"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNCCLAnswers compares our ratings with those of NCCL's own code for every
// machine ("make nccl" recorded them), from sysfs and from the topology file.
func TestNCCLAnswers(t *testing.T) {
	pairs := 0
	for _, m := range testsize.Share(machine.All(t, machinesDir)) {
		t.Run(m.Name, func(t *testing.T) {
			kept, err := os.ReadFile(filepath.Join("../testdata/nccl", m.Name+".txt"))
			if errors.Is(err, fs.ErrNotExist) {
				t.Skipf("%s has no recorded answers; UPDATE=1 make nccl writes them (test/nccl/README.md)", m.Name)
			}
			if err != nil {
				t.Fatal(err)
			}
			said := answers(string(kept))
			r := ready(t, m)
			matrix := r.Matrix
			if platform := r.Platform; platform.BIOS != "" { // by which RCCL differs
				platform.BIOS = "not of Azure"
				matrix = topology.Build(topology.Inputs{PCI: &r.PCI, RDMA: &r.RDMA, Platform: platform})
			}
			for i := range matrix.Pairs {
				p := &matrix.Pairs[i]
				n := &matrix.NICs[p.NIC]
				if n.Function == nil || n.RDMA != nil && n.RDMA.Auxiliary {
					continue // NCCL's place for these is not told by theirs
				}
				pairs++
				name := strings.TrimSpace(matrix.GPUs[p.GPU].Address.String() + " " + n.Address() + " " + n.Name())
				if got := fmt.Sprint(p.NCCL, " ", p.Default); got != said[name] {
					t.Errorf("%s: %s, NCCL says %q", name, got, said[name])
				}
			}
		})
	}
	if pairs == 0 {
		t.Error("no pair was compared")
	}
}

// TestNCCLNear: the NICs near a GPU are those that NCCL's own code rates best for it, of those
// that have no role. It does not tell NODE from PHB. "make nccl" asks it which it uses.
func TestNCCLNear(t *testing.T) {
	elsewhere := []string{ // NCCL goes by other places: a Broadcom chip, data-direct functions, a domain of five digits
		"broadcom-nested", "oke-gb200-v3", "vmd-domain",
	}
	order := map[string]int{"P2C": 0, "PIX": 0, "PXB": 1, "PHB": 2, "SYS": 3}
	gpus := 0
	for _, m := range testsize.Share(machine.All(t, machinesDir)) {
		t.Run(m.Name, func(t *testing.T) {
			kept, err := os.ReadFile(filepath.Join("../testdata/nccl", m.Name+".txt"))
			if errors.Is(err, fs.ErrNotExist) || slices.Contains(elsewhere, m.Name) {
				t.SkipNow()
			}
			if err != nil {
				t.Fatal(err)
			}
			said := answers(string(kept))
			matrix := &ready(t, m).Matrix
			counts := func(i int) bool {
				n := &matrix.NICs[i]
				return n.Counts() && n.Role == "" && n.Function.PhysFn == nil && (n.RDMA == nil || !n.RDMA.Auxiliary)
			}
			for i, gpu := range matrix.GPUs {
				best := map[int]int{} // NCCL's rating by the NICs that it rates best
				for j := range matrix.NICs {
					n := &matrix.NICs[j]
					words := strings.Fields(said[strings.TrimSpace(gpu.Address.String()+" "+n.Address()+" "+n.Name())])
					if !counts(j) || len(words) == 0 {
						continue
					}
					for other, rating := range best {
						if order[words[0]] < rating {
							delete(best, other)
						}
					}
					if !slices.ContainsFunc(slices.Collect(maps.Values(best)), func(rating int) bool { return rating < order[words[0]] }) {
						best[j] = order[words[0]]
					}
				}
				near := slices.DeleteFunc(slices.Clone(gpu.Near(topology.Usable).NICs), func(j int) bool { return !counts(j) })
				if len(best) == 0 || len(near) == 0 {
					continue
				}
				gpus++
				farther := slices.ContainsFunc(near, func(j int) bool { _, ok := best[j]; return !ok })
				level := matrix.PairsOf(i)[near[0]].Level
				if farther || len(near) < len(best) && level != topology.PHB {
					t.Errorf("%v at %v: %v, NCCL rates best %v", gpu.Address, level, near, slices.Sorted(maps.Keys(best)))
				}
			}
		})
	}
	if gpus == 0 {
		t.Error("no GPU was compared")
	}
}

// answers reads a file of testdata/nccl.
func answers(text string) map[string]string {
	said := map[string]string{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		said[strings.Join(words[:len(words)-2], " ")] = strings.Join(words[len(words)-2:], " ")
	}
	return said
}

// TestNICsByName: a published file (modal-labs/gvisor, nccl_topo.xml) has NICs only as names
// on the host bridge beside the GPUs, and NCCL's own code takes their places from there. So do
// the ratings of pairs; what rests on hardware is the same as with a file without names.
func TestNICsByName(t *testing.T) {
	for _, tt := range []struct {
		name string
		want map[topology.Level]int // of the file, by pair
	}{
		{"nics-by-name", map[topology.Level]int{topology.PHB: 36, topology.SYS: 36}},
		{"datadirect-by-name", map[topology.Level]int{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := machine.Load(filepath.Join("../testdata/ncclfiles", tt.name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			kept, err := os.ReadFile(filepath.Join("../testdata/nccl", tt.name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join("../testdata/ncclfiles", tt.name+".xml"))
			if err != nil {
				t.Fatal(err)
			}
			said, fromFile := answers(string(kept)), map[topology.Level]int{}
			r := withFile(t, m, parseFile(t, string(text)))
			for i := range r.Matrix.Pairs {
				p := &r.Matrix.Pairs[i]
				n := &r.Matrix.NICs[p.NIC]
				pair := r.Matrix.GPUs[p.GPU].Address.String() + " " + n.Address() + " " + n.Name()
				if got := fmt.Sprint(p.NCCL, " ", p.Default); got != said[pair] {
					t.Errorf("%s: %s, NCCL says %q", pair, got, said[pair])
				}
				if p.FromFile {
					fromFile[p.Level]++
				}
			}
			if !maps.Equal(fromFile, tt.want) {
				t.Errorf("%v, want %v", fromFile, tt.want)
			}
			without := withFile(t, m, parseFile(t, strings.ReplaceAll(string(text), "mlx5_", "other_")))
			if diff := cmp.Diff(hardware(without), hardware(r)); diff != "" {
				t.Errorf("hardware (-without names +with):\n%s", diff)
			}
		})
	}
}

// hardware is what labels about hardware rest on.
func hardware(n *verdict.Node) []string {
	m := &n.Matrix
	said := []string{fmt.Sprint(m.Origin, m.Hardware, m.Best, m.Reachable, m.Align(&n.PCI, nil), m.Complete, m.EligibleGPUs, m.EligibleNICs)}
	for i := range m.GPUs {
		near := m.GPUs[i].Near(topology.Hardware)
		said = append(said, fmt.Sprint(m.GPUs[i].Address, near.Level, addresses(near.Functions)))
	}
	return said
}

func parseFile(t *testing.T, text string) *nccl.File {
	t.Helper()
	file, err := nccl.ParseFile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestGrace: over C2C a GPU reaches the NICs of its own CPU, no others.
func TestGrace(t *testing.T) {
	r := ready(t, load(t, "rhel-gb200-cdmm-off-and-on"))
	seen := map[string]int{}
	for _, p := range r.Matrix.Pairs {
		want := "P2C"
		if r.Matrix.GPUs[p.GPU].NUMA != r.Matrix.NICs[p.NIC].Function.NUMA {
			want = "SYS"
		}
		seen[want]++
		if p.NCCL.String() != want {
			t.Errorf("%v %s: %v, want %s", r.Matrix.GPUs[p.GPU].Address, r.Matrix.NICs[p.NIC].Name(), p.NCCL, want)
		}
	}
	if seen["P2C"] == 0 || seen["SYS"] == 0 {
		t.Errorf("pairs: %v", seen)
	}
}

// TestTopologyFile: where a machine has an NCCL topology file, its structure
// decides both levels, and pairs it does not know stay with sysfs.
func TestTopologyFile(t *testing.T) {
	const text = `<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">
    <pci busid="ffff:ff:01.0" link_speed="" link_width="" class="0x060400">
      <pci busid="0001:00:00.0" link_speed="" link_width="" class="0x030200"/>
      <pci busid="ffff:ff:02.0" link_speed="" link_width="" class="0x060400">
        <pci busid="0102:00:00.0" link_speed="" link_width="" class="0x020700"><nic><net name="mlx5_1"/></nic></pci>
      </pci>
      <pci busid="0101:00:00.0" link_speed="" link_width="" class="0x020700"><nic><net name="mlx5_0"/></nic></pci>
    </pci>
    <pci busid="0103:00:00.0" link_speed="" link_width="" class="0x020700"/>
  </cpu>
  <cpu numaid="1" arch="x86_64" vendor="AuthenticAMD"><pci busid="0104:00:00.0" link_speed="" link_width="" class="0x020700"/></cpu>
</system>`
	file := parseFile(t, text)
	m := load(t, "azure-ndv5-h100")
	r := withFile(t, m, file)
	got := levels(m, &r.Matrix)
	nccl := ncclLevels(m, &r.Matrix)
	for pair, want := range map[string]string{
		"GPU0 mlx5_0": "PIX PIX",
		"GPU0 mlx5_1": "PXB PXB",
		"GPU0 mlx5_2": "PHB PHB",
		"GPU0 mlx5_3": "SYS SYS",
		"GPU0 mlx5_4": "SYS SYS",  // not in the file
		"GPU1 mlx5_0": "NODE PHB", // not in the file
	} {
		if level := got[pair] + " " + nccl[pair]; level != want {
			t.Errorf("%s: %s, want %s", pair, level, want)
		}
	}
	if r.Matrix.Origin != topology.FromFile {
		t.Errorf("source %q", r.Matrix.Origin)
	}
}

// TestUnrelatedFunctionChangesNothing adds what is neither GPU, NIC nor between
// them.
func TestUnrelatedFunctionChangesNothing(t *testing.T) {
	for _, name := range []string{"epyc-3gpu-phb-nccltests320", "bluefield3-l40s", "vfs-with-pf", "gb300-datadirect"} {
		text, err := os.ReadFile(filepath.Join(machinesDir, name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		description, _, _ := strings.Cut(string(text), "\nmatrix")
		before, err := machine.Parse(description)
		if err != nil {
			t.Fatal(err)
		}
		after, err := machine.Parse(description + "\npci0000:fe numa=0\n  0000:fe:00.0 port 8086:09a2\n    0000:ff:00.0 010802 144d:a80a\n")
		if err != nil {
			t.Fatal(err)
		}
		a, b := withFile(t, before, nil), withFile(t, after, nil)
		if diff := cmp.Diff(levels(before, &a.Matrix), levels(before, &b.Matrix)); diff != "" {
			t.Errorf("%s: levels (-before +after):\n%s", name, diff)
		}
		if diff := cmp.Diff(rated(a), rated(b)); diff != "" {
			t.Errorf("%s: NCCL levels (-before +after):\n%s", name, diff)
		}
		if diff := cmp.Diff(hardware(a), hardware(b)); diff != "" {
			t.Errorf("%s: hardware (-before +after):\n%s", name, diff)
		}
	}
}
