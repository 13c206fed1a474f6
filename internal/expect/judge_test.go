package expect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/internal/expect"
	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/test/machine"
	"gdr-features/tristate"
)

// rails are two GPUs with a NIC each, and a bond of two functions with one RDMA
// device.
const rails = `
nodes 2
pci0000:15 numa=0
  0000:15:01.0 port 8086:352a acs=0000
    0000:16:00.0 switch 1000:c030
      0000:17:00.0 port 1000:c030 acs=0000
        0000:18:00.0 gpu 10de:2330
      0000:17:01.0 port 1000:c030 acs=0000
        0000:19:00.0 ib 15b3:1021 rdma=mlx5_0
pci0000:97 numa=1
  0000:97:01.0 port 8086:352a acs=0000
    0000:98:00.0 switch 1000:c030
      0000:99:00.0 port 1000:c030 acs=0000
        0000:9a:00.0 gpu 10de:2330
      0000:99:01.0 port 1000:c030 acs=0000
        0000:9b:00.0 ib 15b3:1021 rdma=mlx5_1
  0000:97:02.0 port 8086:352a acs=0000
    0000:a0:00.0 eth 15b3:101d rdma=mlx5_bond_0
    0000:a0:00.1 eth 15b3:101d
`

// everything is what rails are when all is well, every key once at least.
const everything = `
types:
  - name: rails
    match:
      gpu: 10de:2330
      nic: ConnectX-7
      topology: physical
    expect:
      gpus:
        model: H100 SXM5*
        count: 2
        pcie: full
      nics:
        - model: [ConnectX-7, ConnectX-8]
          count: 2
          active-ports: 2
          link: infiniband
          rate: 400
          firmware: ">= 28.42"
          pcie: full
        - model: 15b3:101d
          count: 2
          active-ports: 1
          link: ethernet
          rate: ">= 100"
          firmware: 28.42.1000
      level: PIX
      nearest-rate: ">= 400"
      driver: ">= 570, < 580"
      modules: open
      mofed: "24.10"
      mechanism: both
      iommu: [off, passthrough]
      acs: clear
      ready: true
`

// tree is a machine in a state that may be changed by files: "-" removes one.
func tree(t *testing.T, text, state string, files map[string]string) string {
	t.Helper()
	m, err := machine.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := machine.StateNamed(state)
	if !ok {
		t.Fatalf("no state %q", state)
	}
	dir := m.Tree(t, s)
	for name, text := range files {
		path := filepath.Join(dir, name)
		if text == "-" {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, dir, expected string, o report.Options) report.Report {
	t.Helper()
	file, err := expect.Parse([]byte(expected))
	if err != nil {
		t.Fatal(err)
	}
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	o.Expect = func() (*expect.File, error) { return file, nil }
	return report.Collect(t.Context(), fs, o)
}

// odd lists the checks that are not met: "name: found" of deviations, "name?" of
// what is unknown.
func odd(r *expect.Result) []string {
	var list []string
	for _, c := range r.Checks {
		switch c.State {
		case tristate.False:
			list = append(list, c.Name+": "+c.Found)
		case tristate.Unknown:
			list = append(list, c.Name+"?")
		case tristate.True:
		}
	}
	return list
}

const (
	devices = "sys/bus/pci/devices/"
	gpu0    = devices + "0000:18:00.0/"
	nic0    = devices + "0000:19:00.0/"
	port0   = "sys/class/infiniband/mlx5_0/ports/1/"
	bond    = "sys/class/infiniband/mlx5_bond_0/"
)

// rows are deviations from what is expected, and the checks that change by them: no
// other check may change.
var rows = []struct {
	name, state string
	files       map[string]string
	text        string // of the machine; "" for rails
	want        []string
	label       string // "" for none
}{
	{name: "all is well", label: "true"},
	{name: "the open driver, but closed", state: "closed-peermem", label: "false", want: []string{
		"driver: 550.54.14", "modules: proprietary ones", "mechanism: peermem only",
	}},
	{name: "no peermem", state: "dmabuf-only", label: "false", want: []string{"mechanism: DMA-BUF only"}},
	{name: "neither way", state: "closed-no-peermem", label: "false", want: []string{
		"driver: 550.54.14", "modules: proprietary ones", "mechanism: neither", "ready: not ready (PeermemNotLoaded)",
	}},
	{name: "no drivers", state: "no-drivers", label: "false", want: []string{
		"nics.active-ports: 0", "nics.link: no active port", "nics.rate: no active port", "nics.firmware?",
		"nics.active-ports: 0", "nics.link: no active port", "nics.rate: no active port", "nics.firmware?",
		"nearest-rate: no active port for 0000:18:00.0, no active port for 0000:9a:00.0", "driver: none loaded", "modules: none loaded",
		"mofed: no driver that MOFED provides is loaded", "mechanism: neither", "ready: not ready (GPUDriverNotLoaded)",
	}},
	{name: "ports down", state: "ports-down", label: "false", want: []string{
		"nics.active-ports: 0 (not mlx5_0 port 1, mlx5_1 port 1)", "nics.link: no active port", "nics.rate: no active port",
		"nics.active-ports: 0 (not mlx5_bond_0 port 1)", "nics.link: no active port", "nics.rate: no active port",
		"nearest-rate: no active port for 0000:18:00.0, no active port for 0000:9a:00.0", "ready: not ready (NoActivePort)",
	}},
	{name: "another MOFED", state: "mofed-5.8", label: "false", want: []string{"mofed: 5.8-1.1.2"}},
	{name: "the kernel's own drivers", state: "inbox-ubuntu", label: "false", want: []string{"mofed: the kernel's own drivers"}},
	{name: "translated", state: "iommu-translated", label: "false", want: []string{"iommu: translated"}},
	{name: "no IOMMU", state: "iommu-off", label: "true"},
	{name: "no symbols", state: "kallsyms-missing", label: "false", want: []string{"mechanism: no peermem", "ready?"}},
	{name: "no symbols, with peermem", files: map[string]string{"proc/kallsyms": "-"}, want: []string{"mechanism?"}},
	{
		name: "a GPU less", files: map[string]string{strings.TrimSuffix(gpu0, "/"): "-"}, label: "false",
		want: []string{"gpus.count: 1"},
	},
	{
		name: "a GPU of another kind", files: map[string]string{gpu0 + "modalias": "-", gpu0 + "device": "0x20b0"}, label: "false",
		want: []string{"gpus.count: 1"},
	},
	{
		name: "a GPU that does not tell what it is", files: map[string]string{gpu0 + "modalias": "-", gpu0 + "device": "-"},
		want: []string{
			"gpus.count?", "gpus.pcie?", "nics.count?", "nics.pcie?", "nics.active-ports?", "nics.link?", "nics.rate?", "nics.firmware?", "nics.count?", "nics.active-ports?",
			"nics.link?", "nics.rate?", "nics.firmware?", "level?", "nearest-rate?", "iommu?", "acs?",
		},
	},
	{
		name: "a NIC less", files: map[string]string{strings.TrimSuffix(nic0, "/"): "-", "sys/class/infiniband/mlx5_0": "-"}, label: "false",
		want: []string{"nics.count: 1", "nics.active-ports: 1", "level: SYS for 0000:18:00.0"},
	},
	{
		name: "a NIC that does not tell what it is", files: map[string]string{nic0 + "modalias": "-", nic0 + "device": "-"},
		want: []string{
			"gpus.count?", "gpus.pcie?", "nics.count?", "nics.pcie?", "nics.active-ports?", "nics.link?", "nics.rate?", "nics.firmware?", "nics.count?",
			"nics.active-ports?", "nics.link?", "nics.rate?", "nics.firmware?", "level?", "nearest-rate?", "iommu?", "acs?",
		},
	},
	{
		name: "half of a GPU's lanes", files: map[string]string{gpu0 + "current_link_width": "8"}, label: "false",
		want: []string{"gpus.pcie: 0000:18:00.0 x8 of x16"},
	},
	{name: "a GPU that sleeps", files: map[string]string{gpu0 + "current_link_speed": "2.5 GT/s PCIe"}, label: "true"},
	{
		name: "a slow link of a NIC", files: map[string]string{nic0 + "current_link_speed": "8.0 GT/s PCIe"}, label: "false",
		want: []string{"nics.pcie: 0000:19:00.0 8 of 32 GT/s"},
	},
	{
		name: "a slow slot", label: "true",
		files: map[string]string{nic0 + "current_link_speed": "16.0 GT/s PCIe", devices + "0000:17:01.0/max_link_speed": "16.0 GT/s PCIe"},
	},
	{
		name:  "less than the NIC can do, and the slot does not tell",
		files: map[string]string{nic0 + "current_link_speed": "16.0 GT/s PCIe", devices + "0000:17:01.0/max_link_speed": "Unknown"},
		want:  []string{"nics.pcie?"},
	},
	{name: "no link", files: map[string]string{gpu0 + "current_link_width": "-"}, want: []string{"gpus.pcie?"}},
	{
		name: "a slow port", files: map[string]string{port0 + "rate": "200 Gb/sec (4X HDR)"}, label: "false",
		want: []string{"nics.rate: 200 on mlx5_0 port 1", "nearest-rate: 200 on mlx5_0 port 1 for 0000:18:00.0"},
	},
	{name: "a rate that is none", files: map[string]string{port0 + "rate": "fast"}, want: []string{"nics.rate?", "nearest-rate?"}},
	{
		name: "another link layer", files: map[string]string{port0 + "link_layer": "Ethernet"}, label: "false",
		want: []string{"nics.link: ethernet on mlx5_0 port 1"},
	},
	{
		name: "a port that does not tell", files: map[string]string{port0 + "state": "-"},
		want: []string{"nics.active-ports?", "nics.link?", "nics.rate?", "nearest-rate?"},
	},
	{
		name: "no ports to read", files: map[string]string{"sys/class/infiniband/mlx5_0/ports": "-"},
		want: []string{"nics.active-ports?", "nics.link?", "nics.rate?", "nearest-rate?"},
	},
	{
		name: "old firmware", files: map[string]string{"sys/class/infiniband/mlx5_1/fw_ver": "28.39.1002"}, label: "false",
		want: []string{"nics.firmware: 28.39.1002 on 0000:9b:00.0"},
	},
	{
		name: "old firmware of a bond", files: map[string]string{bond + "fw_ver": "22.1.1"}, label: "false",
		want: []string{"nics.firmware: 22.1.1 on 0000:a0:00.0, 22.1.1 on 0000:a0:00.1"},
	},
	{name: "no firmware", files: map[string]string{bond + "fw_ver": "-"}, want: []string{"nics.firmware?"}},
	{name: "half a version", files: map[string]string{bond + "fw_ver": "28.42"}, want: []string{"nics.firmware?"}},
	{name: "no driver version", files: map[string]string{"proc/driver/nvidia/version": "-"}, want: []string{"driver?", "modules?", "mechanism?"}},
	{name: "MOFED without version", files: map[string]string{"sys/module/mlx5_core/version": "-"}, want: []string{"mofed?"}},
	{
		name: "no modules to read", files: map[string]string{"sys/module": "-"},
		want: []string{"mofed?", "mechanism?"},
	},
	{name: "IOMMU groups without type", files: map[string]string{"sys/kernel/iommu_groups": "-"}, want: []string{"iommu?"}},
	{
		name: "redirection", text: strings.Replace(rails, "acs=0000\n        0000:19", "acs=001d\n        0000:19", 1), label: "false",
		want: []string{"acs: redirect"},
	},
	{name: "no configuration space", files: map[string]string{devices + "0000:17:00.0/config": ""}, want: []string{"acs?"}},
}

func TestJudge(t *testing.T) {
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if row.state == "" {
				row.state = "ready"
			}
			if row.text == "" {
				row.text = rails
			}
			r := read(t, tree(t, row.text, row.state, row.files), everything, report.Options{})
			if r.Expected.Type != "rails" {
				t.Fatalf("type %q of %s", r.Expected.Type, r.Expected.Machine)
			}
			if diff := cmp.Diff(row.want, odd(r.Expected)); diff != "" {
				t.Errorf("not met (-want +got):\n%s", diff)
			}
			want := map[string]tristate.State{"true": tristate.True, "false": tristate.False}[row.label]
			if r.Expected.State != want || r.Labels[label.Expected] != row.label || r.Unknown[label.Expected] != (row.label == "") {
				t.Errorf("state %v, label %q, unknown %v", r.Expected.State, r.Labels[label.Expected], r.Unknown[label.Expected])
			}
			for _, c := range r.Expected.Checks {
				if c.Expected == "" || len(c.Fix) == 0 || len(c.Sources)+len(c.Facts) == 0 || c.State == tristate.False && c.Found == "" {
					t.Errorf("%+v", c)
				}
			}
		})
	}
}

// Each kind of check is met, violated and unknown somewhere above.
func TestRowsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range rows {
		for _, check := range row.want {
			name, _, found := strings.Cut(check, ":")
			seen[fmt.Sprint(strings.TrimSuffix(name, "?"), " ", map[bool]string{true: "violated", false: "unknown"}[found])] = true
		}
	}
	all := read(t, tree(t, rails, "ready", nil), everything, report.Options{})
	for _, c := range all.Expected.Checks {
		for _, how := range []string{"violated", "unknown"} {
			if !seen[c.Name+" "+how] {
				t.Errorf("no row shows %s %s", c.Name, how)
			}
		}
	}
}

// Without a PCI bus nothing is known of the machine.
func TestNoBus(t *testing.T) {
	r := read(t, t.TempDir(), everything, report.Options{})
	if r.Expected.State != tristate.Unknown || r.Expected.Type != "" || r.Expected.NoType || !r.Unknown[label.Expected] {
		t.Errorf("%+v, unknown %v", r.Expected, r.Unknown)
	}
	named := "types:\n- name: all\n  match:\n    product: x\n  expect:\n    gpus: 1\n    level: PIX\n    nics:\n      count: 1\n      link: ethernet\n"
	dir := t.TempDir()
	dmi := filepath.Join(dir, "sys/class/dmi/id")
	if err := os.MkdirAll(dmi, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dmi, "product_name"), []byte("X\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r = read(t, dir, named, report.Options{})
	if diff := cmp.Diff([]string{"gpus.count?", "nics.count?", "nics.link?", "level?"}, odd(r.Expected)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
