package report_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gdr-features/host"
	"gdr-features/internal/label"
	"gdr-features/internal/nodelabel"
	"gdr-features/internal/report"
	"gdr-features/source"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/verdict"
)

const machinesDir = "../../testdata/machines"

// one is a machine with one pair at PIX.
const one = `
pci0000:15 numa=0
  0000:15:01.0 port 8086:352a acs=0000
    0000:16:00.0 switch 1000:c030
      0000:17:00.0 port 1000:c030 acs=0000
        0000:18:00.0 gpu 10de:2330 name=GPU0
      0000:17:01.0 port 1000:c030 acs=0000
        0000:19:00.0 ib 15b3:1021 rdma=mlx5_0
`

func parse(t *testing.T, text string) *machine.Machine {
	t.Helper()
	m, err := machine.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func collect(t *testing.T, dir string, what source.What) report.Report {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	return report.Collect(t.Context(), fs, report.Options{What: what})
}

func state(t *testing.T, name string) machine.State {
	t.Helper()
	s, ok := machine.StateNamed(name)
	if !ok {
		t.Fatalf("no state %q", name)
	}
	return s
}

func stateOf(t *testing.T, m *machine.Machine, name string) machine.State {
	t.Helper()
	s, ok := m.StateNamed(name)
	if !ok {
		t.Fatalf("%s has no state %q", m.Name, name)
	}
	return s
}

// stateLabels are those that follow drivers and links; "-" means absent.
var stateLabels = []string{
	label.Ready, label.Reason, label.Peermem, label.DMABuf, label.PeerDirect, label.MOFED, label.Rate, label.Link, label.IOMMU, label.ACS, label.Storage,
}

// TestStates checks the labels of every state of software.
func TestStates(t *testing.T) {
	const absent = "-"
	want := map[string]string{
		// state                ready reason peermem dmabuf peerdirect mofed rate link iommu acs storage
		"ready":             "true - true true current 24.10-1.1.4 400 infiniband passthrough clear false",
		"no-drivers":        "false GPUDriverNotLoaded false false none - 0 - off clear false",
		"vfio":              "false GPUPassthrough false false current 24.10-1.1.4 400 infiniband passthrough clear false",
		"nouveau":           "false GPUDriverNotLoaded false false current 24.10-1.1.4 400 infiniband passthrough clear false",
		"nic-unbound":       "false NICDriverNotLoaded true false - - 0 - passthrough clear false",
		"no-rdma":           "false NoRDMADevice true false current 24.10-1.1.4 0 - passthrough clear false",
		"ports-down":        "false NoActivePort true true current 24.10-1.1.4 0 - passthrough clear false",
		"dmabuf-only":       "true - false true current 24.10-1.1.4 400 infiniband passthrough clear false",
		"closed-peermem":    "true - true false current 24.10-1.1.4 400 infiniband passthrough clear false",
		"closed-no-peermem": "false PeermemNotLoaded false false current 24.10-1.1.4 400 infiniband passthrough clear false",
		"peermem-coming":    "false PeermemNotLoaded false false current 24.10-1.1.4 400 infiniband passthrough clear false",
		"peermem-going":     "false PeermemNotLoaded false false current 24.10-1.1.4 400 infiniband passthrough clear false",
		"nv-peer-mem":       "true - true false current 24.10-1.1.4 400 infiniband passthrough clear false",
		"memory-peers":      "true - true false current 5.8-1.1.2 400 infiniband passthrough clear false",
		"mofed-4.9":         "true - true false legacy 4.9-4.0.8 400 infiniband passthrough clear false",
		"mofed-5.8":         "true - true true current 5.8-1.1.2 400 infiniband passthrough clear false",
		"inbox":             "true - false true none inbox 400 infiniband passthrough clear false",
		"inbox-old":         "false NoPeerMemoryPath false false none inbox 400 infiniband passthrough clear false",
		"inbox-ubuntu":      "true - true true inbox inbox 400 infiniband passthrough clear false",
		"kallsyms-missing":  "- Unreadable false - - 24.10-1.1.4 400 infiniband passthrough clear false",
		"kallsyms-empty":    "- Unreadable false - - 24.10-1.1.4 400 infiniband passthrough clear false",
		"kallsyms-garbage":  "- Unreadable false - - 24.10-1.1.4 400 infiniband passthrough clear false",
		"storage":           "true - true true current 24.10-1.1.4 400 infiniband passthrough clear true",
		"iommu-translated":  "true - true true current 24.10-1.1.4 400 infiniband translated clear false",
		"iommu-off":         "true - true true current 24.10-1.1.4 400 infiniband off clear false",
	}
	m := parse(t, one)
	for s, dir := range m.Trees(t, m.States()) {
		t.Run(s.Name, func(t *testing.T) {
			r := collect(t, dir, source.What{})
			var got []string
			for _, name := range stateLabels {
				value, ok := r.Labels[name]
				if !ok {
					value = absent
				}
				got = append(got, value)
			}
			if diff := cmp.Diff(strings.Fields(want[s.Name]), got); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHardwareLabelsStable compares the hardware labels of every machine over all
// states of software: no driver, link or module changes them.
func TestHardwareLabelsStable(t *testing.T) {
	t.Parallel()
	for i, m := range testsize.Share(machine.All(t, machinesDir)) {
		t.Run(m.Name, func(t *testing.T) {
			var first label.Set
			for s, dir := range m.Trees(t, testsize.FewInTurn(i, m.States())) {
				r := collect(t, dir, source.What{})
				hardware := maps.Clone(r.Labels)
				maps.DeleteFunc(hardware, func(name, _ string) bool { return !nodelabel.Hardware(name) })
				if s.NoRDMA && shownByDevice(m) { // one reading cannot know; the agent remembers (nodelabel.Filter)
					delete(hardware, label.Capable)
				}
				if first == nil {
					first = hardware
				}
				if diff := cmp.Diff(first, hardware); diff != "" {
					t.Errorf("in state %s (-first +got):\n%s", s.Name, diff)
				}
			}
		})
	}
}

// shownByDevice reports whether nothing but an RDMA device shows that a NIC, which no table has, is one.
func shownByDevice(m *machine.Machine) bool {
	return slices.ContainsFunc(m.Functions, func(f machine.Function) bool {
		return f.Attrs["rdma"] != "" && !f.IsNIC() && strings.HasPrefix(f.Class, "0200")
	})
}

// TestFactsDoNotMatter: labels and verdict need only what is always read; only
// advice needs more, and ForTopo reads all that ForCheck does.
func TestFactsDoNotMatter(t *testing.T) {
	t.Parallel()
	labels := cmpopts.IgnoreFields(verdict.Verdict{}, "Judged", "Degradation") // what is judged for findings rests on more
	for _, m := range testsize.Share(machine.All(t, machinesDir)) {
		t.Run(m.Name, func(t *testing.T) {
			dir := m.Tree(t, m.Ready())
			if r := collect(t, dir, source.What{}); r.Kmod.Advice != nil {
				t.Error("labels read Kmod.Advice, which only advice needs")
			}
			needed, advised, everything := collect(t, dir, source.What{}), collect(t, dir, report.ForCheck.What), collect(t, dir, report.ForTopo.What)
			if diff := cmp.Diff(advised.Verdict, everything.Verdict, labels); diff != "" && len(needed.Matrix.GPUs) > 0 {
				t.Errorf("verdict (-advised +everything):\n%s", diff)
			}
			if diff := cmp.Diff(advised.Findings, everything.Findings); diff != "" && len(needed.Matrix.GPUs) > 0 {
				t.Errorf("findings (-advised +everything):\n%s", diff)
			}
			for command, r := range map[string]report.Report{"advised": advised, "everything": everything} {
				if diff := cmp.Diff(needed.Labels, r.Labels); diff != "" {
					t.Errorf("labels (-needed +%s):\n%s", command, diff)
				}
				if diff := cmp.Diff(needed.Verdict, r.Verdict, labels); diff != "" && len(needed.Matrix.GPUs) > 0 {
					t.Errorf("verdict (-needed +%s):\n%s", command, diff)
				}
			}
		})
	}
}

// TestMachines checks what is special about some machines.
func TestMachines(t *testing.T) {
	for _, tc := range []struct {
		machine, state string
		want           label.Set
		absent         []string
	}{
		{"dgx-1v", "ready", label.Set{label.DMABuf: "false", label.Ready: "true"}, nil}, // Volta
		{"dgx-1v", "dmabuf-only", label.Set{label.Ready: "false", label.Reason: "PeermemNotLoaded"}, nil},
		{"geforce-4x4090", "ready", label.Set{label.Capable: "false", label.Reason: "GPUUnsupported", label.GPUs: "0", label.NICs: "1"}, []string{label.Level}},
		{"dgx-spark-gb10", "ready", label.Set{label.Capable: "false", label.Reason: "GPUUnsupported"}, nil},
		{"bridges-only", "ready", label.Set{label.Capable: "false", label.Reason: "NoNIC", label.NICs: "0"}, []string{label.Level, label.ACS}},
		{"nvlink-management-only", "ready", label.Set{label.Capable: "false", label.Reason: "NICUnsupported"}, nil},
		{"b200-nvlink-management", "ready", label.Set{label.NICs: "4", label.Level: "PIX", label.Ready: "true"}, nil},
		{"bluefield3-l40s", "ready", label.Set{label.Level: "PXB", label.NICs: "2", label.Link: "ethernet", label.ACS: "redirect"}, nil},
		{"vfs-with-pf", "ready", label.Set{label.NICs: "2", label.Level: "PIX", label.Topology: "physical"}, nil},
		{"gke-a3ultra-h200", "ready", label.Set{label.NICs: "8", label.Topology: "virtual"}, nil},
		{"azure-ndv5-h100", "ready", label.Set{label.Level: "NODE", label.Topology: "virtual", label.NCCLDefault: "false"}, nil},
		{"numa-unknown", "ready", label.Set{label.Level: "PHB", label.BestLevel: "PHB"}, nil},
		{"kvm-h200-flat-passthrough", "ready", label.Set{label.Level: "PHB", label.Topology: "virtual"}, nil},
		{"dgx-a100-nps4", "ready", label.Set{label.Level: "PXB", label.NCCLDefault: "true", label.NICs: "11"}, nil},
		{"broadcom-nested", "ready", label.Set{label.Level: "PXB", label.NCCLDefault: "true"}, nil},
		{"vera-rubin-nvl", "ready", label.Set{label.Capable: "true", label.NCCLDefault: "true", label.Level: "NODE"}, nil}, // P2C
		{"rhel-gb200-cdmm-off-and-on", "ready", label.Set{label.Capable: "true", label.NCCLDefault: "true"}, nil},          // P2C
		{"gb300-datadirect", "ready", label.Set{label.DataDirect: "true", label.NCCLDefault: "true"}, nil},
		{"ampere-altra-a100", "ready", label.Set{label.Capable: "false", label.Reason: "PlatformForbidsP2P"}, nil},
		{"aws-p4d-a100", "ready", label.Set{label.NICs: "4", label.Level: "PHB", label.Link: "unspecified", label.ConnectX: "false"}, []string{label.MOFED}},
		{"aws-p5-h100", "ready", label.Set{label.NICs: "32", label.Level: "PIX", label.NCCLDefault: "true", label.Topology: "virtual"}, nil},
		{"aws-p6-b200-mixed", "ready", label.Set{label.NICs: "8", label.Level: "PIX", "gdr.nic.efa": "true"}, []string{"gdr.nic.mlx5"}},
		{"supermicro-mi300x-thor2", "ready", label.Set{label.Level: "PXB", "gdr.gpu.amd": "true", "gdr.nic.bnxt_re": "true", "gdr.nic.mlx5": "true"}, []string{label.ConnectX}},
		{"dgx-h100-e810-mixed", "ready", label.Set{label.Level: "PXB", label.ConnectX: "true"}, nil},
		{"connectx3", "ready", label.Set{label.NICs: "1", label.DMABuf: "false", label.Ready: "true"}, nil},
	} {
		t.Run(tc.machine+" "+tc.state, func(t *testing.T) {
			m, err := machine.Load(filepath.Join(machinesDir, tc.machine+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			r := collect(t, m.Tree(t, stateOf(t, m, tc.state)), source.What{})
			for name, want := range tc.want {
				if got := r.Labels[name]; got != want {
					t.Errorf("%s = %q, want %q", name, got, want)
				}
			}
			for _, name := range tc.absent {
				if got, ok := r.Labels[name]; ok {
					t.Errorf("%s = %q, want none", name, got)
				}
			}
		})
	}
}

func TestNoGPUNoLabels(t *testing.T) {
	m, err := machine.Load(filepath.Join(machinesDir, "nic-only.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if r := collect(t, m.Tree(t, state(t, "ready")), source.What{}); len(r.Labels) != 0 {
		t.Errorf("labels: %v", r.Labels)
	}
}
