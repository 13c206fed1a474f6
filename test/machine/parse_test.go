package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A description with a mistake is refused, with the line.
func TestParseMistakes(t *testing.T) {
	const tree = "nodes 2\npci0000:15 numa=0\n  0000:15:01.0 port 8086:352a acs=001d name=GPU0\n    0000:16:00.0 ib 15b3:1021 rdma=mlx5_0\n"
	const right = tree + "matrix mlx5_0\n  GPU0 PIX\n"
	read := func(text string) error { _, err := parse(text, "line %d: %w", true); return err }
	if err := read(right); err != nil {
		t.Fatal(err)
	}
	for _, test := range [][2]string{ // what stands instead, and the error
		{"pci0000:15 numa=0", `pci0000:15 nmua=0|line 2: "nmua=0": no attribute has the name "nmua"`},
		{"pci0000:15 numa=0", `pci0000:15 numa=7|line 2: numa=7, and the machine has 2 NUMA nodes`},
		{"pci0000:15 numa=0", `pci0000:15 numa=x|line 2: "numa=x": "x" is no value of numa`},
		{"pci0000:15 ", `pcie0:15 |line 2: "pcie0:15" is no root bus`},
		{"acs=001d", `acs=xyz|line 3: "acs=xyz": "xyz" is no value of acs`},
		{"rdma=mlx5_0", `rdma=mlx5_0 nam=GPU0|line 4: "nam=GPU0": no attribute has the name "nam"`},
		{"rdma=mlx5_0", `rdma=|line 4: "rdma=": "" is no value of rdma`},
		{"rdma=mlx5_0", `rdma|line 4: "rdma" is not key=value`},
		{"15b3:1021", `15b3:10211|line 4: "0000:16:00.0": "15b3:10211" is no vendor:device`},
		{" ib ", ` ibx |line 4: "0000:16:00.0": "ibx" is no class`},
		{"0000:16:00.0", `0000:15:01.0|line 4: "0000:15:01.0" is there twice`},
		{"0000:16:00.0", `16:00.0|line 4: "16:00.0" is no address`},
		{"rdma=mlx5_0", `rdma=mlx5_1|line 5: matrix: no NIC is called mlx5_0 (rdma=)`},
		{"GPU0 PIX", `GPU1 PIX|line 6: matrix: no GPU is called GPU1 (name=)`},
		{"GPU0 PIX", `GPU0|line 6: 0 cells below 1 columns`},
		{"nodes 2", `nodes two|line 1: nodes two: must be a number of NUMA nodes`},
	} {
		instead, want, _ := strings.Cut(test[1], "|")
		err := read(strings.Replace(right, test[0], instead, 1))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", instead, err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "odd.txt")
	if err := os.WriteFile(file, []byte(tree+"  0000:17:00.0 gpu 10de:2330 acs=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.HasPrefix(err.Error(), file+":5: ") {
		t.Errorf("error %v", err)
	}
}

// A comment begins a line, or follows a blank.
func TestComments(t *testing.T) {
	m, err := Parse("# of all\n#\nsource github issue NVIDIA/nccl#1343 (2024-07) # says who\ntitle one #two\n\t# three\nkernel 6.8\t#four")
	if err != nil {
		t.Fatal(err)
	}
	if got := []string{m.Source, m.Title, m.Kernel}; !slices.Equal(got, []string{"github issue NVIDIA/nccl#1343 (2024-07)", "one", "6.8"}) {
		t.Errorf("source, title and kernel: %q", got)
	}
}

// Every description that is there is right.
func TestParseAll(t *testing.T) { _ = All(t, "../../testdata/machines") }
