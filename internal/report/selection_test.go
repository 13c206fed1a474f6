package report_test

import (
	"slices"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/source/family"
	"gdr-features/test/machine"
	"gdr-features/test/sample"
	"gdr-features/test/testsize"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// listed is a machine whose only RDMA NIC is of a family that is not judged.
const listed = `
pci0000:15 numa=0
  0000:15:01.0 port 8086:352a acs=0000
    0000:16:00.0 gpu 10de:26b9 name=GPU0
pci0000:20 numa=0
  0000:20:01.0 port 8086:352a acs=0000
    0000:21:00.0 eth 1fff:0001 rdma=rocep33s0 driver=example
`

// listedSymbols are those of the RDMA core and of its driver.
var listedSymbols = []string{"ib_umem_dmabuf_get\t[ib_uverbs]", "example_reg_user_mr_dmabuf\t[example_rdma]"}

// counting is the table in which only some families of NICs count.
func counting(t *testing.T, names string) family.Table {
	t.Helper()
	all, selected := sample.Families(), strings.Split(names, ",")
	table := family.Table{GPUs: all.GPUs}
	for _, n := range slices.Concat(all.NICs, all.Others) {
		if slices.Contains(selected, n.Name) {
			table.NICs = append(table.NICs, n)
		} else {
			table.Others = append(table.Others, n)
		}
	}
	if len(table.NICs) != len(selected) {
		t.Fatalf("families %s: there are %s", names, family.Names(table.NICs))
	}
	return table
}

// TestSelection: a NIC of a family that does not count leaves it open whether the
// hardware can do GPUDirect RDMA. Where its family counts, it is judged as any other.
func TestSelection(t *testing.T) {
	const both = listed + "    0000:22:00.0 eth 15b3:1021 rdma=mlx5_0\n"
	known := strings.Join(family.Names(family.Known().NICs), ",")
	for _, tt := range []struct {
		name, machine, families string
		change                  func(*machine.State)
		capable, ready          tristate.State
		reason                  verdict.Reason
		labels                  map[string]string // "" is for none
	}{
		{
			name: "listed NIC, not counted", machine: listed, families: known,
			capable: tristate.Unknown, ready: tristate.Unknown, reason: verdict.NICNotJudged,
			labels: map[string]string{label.Capable: "", label.Ready: "", label.Reason: "NICNotJudged", label.NICs: "0", "gdr.nic.example": ""},
		},
		{
			name: "listed NIC, counted", machine: listed, families: "mlx5,example", capable: tristate.True, ready: tristate.True,
			labels: map[string]string{label.Capable: "true", label.Ready: "true", label.DMABuf: "true", label.NICs: "1", "gdr.nic.example": "true", label.ConnectX: "false"},
		},
		{
			name: "listed NIC, counted, port down", machine: listed, families: "example", change: func(s *machine.State) { s.Port = "DOWN" },
			capable: tristate.True, ready: tristate.False, reason: verdict.NoActivePort,
		},
		{
			name: "listed NIC, counted, the symbol of another family", machine: listed, families: "example,mlx5",
			change: func(s *machine.State) {
				s.Symbols = []string{listedSymbols[0], "mlx5_ib_reg_user_mr_dmabuf\t[mlx5_ib]"}
			},
			capable: tristate.True, ready: tristate.False, reason: verdict.NoPeerMemoryPath,
		},
		{
			name: "listed NIC beside a ConnectX, only that counted", machine: both, families: known, capable: tristate.True, ready: tristate.False, reason: verdict.NoPeerMemoryPath,
			labels: map[string]string{label.NICs: "1", "gdr.nic.mlx5": "true", "gdr.nic.example": ""},
		},
		{
			name: "listed NIC beside a ConnectX, both counted", machine: both, families: "mlx5,example", capable: tristate.True, ready: tristate.True,
			labels: map[string]string{label.NICs: "2", "gdr.nic.mlx5": "true", "gdr.nic.example": "true"},
		},
		{
			name: "a ConnectX, not counted", machine: one, families: "example",
			capable: tristate.Unknown, ready: tristate.Unknown, reason: verdict.NICNotJudged,
			labels: map[string]string{label.ConnectX: "", "gdr.nic.mlx5": ""},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := state(t, "inbox")
			s.Symbols = listedSymbols
			if tt.change != nil {
				tt.change(&s)
			}
			fs, err := host.Open(host.Options{Root: parse(t, tt.machine).Tree(t, s)})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = fs.Close() }()
			o := report.ForCheck
			o.Families = counting(t, tt.families)
			r := report.Collect(t.Context(), fs, o)
			if v := r.Verdict; v.Capable != tt.capable || v.Ready != tt.ready || v.Reason != tt.reason {
				t.Errorf("capable %v, ready %v, reason %q; want %v, %v, %q", v.Capable, v.Ready, v.Reason, tt.capable, tt.ready, tt.reason)
			}
			for name, want := range tt.labels {
				if got := r.Labels[name]; got != want {
					t.Errorf("%s=%q, want %q", name, got, want)
				}
			}
		})
	}
}

func selected(t *testing.T, names string) family.Table {
	t.Helper()
	table, err := family.Select(strings.Split(names, ","))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestSnapshotOfSelections: a snapshot says what the machine says, whichever families
// count, and does not depend on those that counted when it was taken.
func TestSnapshotOfSelections(t *testing.T) {
	t.Parallel()
	names := family.Names(family.Every().NICs)
	selections := append([]string{"mlx5,irdma", "mlx4", "efa,bnxt_re"}, testsize.Few(names)...)
	for name, text := range map[string]string{
		"E810": strings.ReplaceAll(listed, "eth 1fff:0001 rdma=rocep33s0 driver=example", "eth 8086:1593 rdma=rocep33s0 driver=ice"), "ConnectX-7": one,
		"many": one + `
pci0000:20 numa=0
  0000:20:01.0 port 8086:352a acs=0000
    0000:21:00.0 eth 8086:1593 rdma=rocep33s0 driver=ice
    0000:22:00.0 eth 1d0f:efa1 rdma=rdmap34s0 driver=efa layer=Unspecified
    0000:23:00.0 eth 14e4:1760 rdma=bnxt_re0 driver=bnxt_en
    0000:24:00.0 eth 15b3:1003 rdma=mlx4_0 driver=mlx4_core
    0000:25:00.0 ib 15b3:1021 rdma=mlx5_1 width=2
    0000:26:00.0 eth 14e4:1751
    0000:27:00.0 vga 1002:74a1
`,
	} {
		for _, s := range testsize.Few(machine.States()) {
			s.Files = map[string]string{
				"sys/bus/pci/devices/0000:22:00.0/p2p": "NVIDIA\n",
				"sys/module/mlx4_core/version":         "4.9-7.1.0\n", "sys/module/ib_peer_mem/holders/bnxt_re/refcnt": "1\n",
			}
			if name != "many" {
				s.Files = nil
			}
			if s.Symbols != nil {
				s.Symbols = append([]string{"erdma_reg_user_mr_dmabuf\t[erdma]"}, s.Symbols...)
			}
			var commands []report.Options
			for _, families := range selections {
				o := report.ForTopo
				o.Families = selected(t, families)
				commands = append(commands, o)
			}
			if diff := commandsFromSnapshot(t, parse(t, text).Tree(t, s), commands); diff != "" {
				t.Errorf("%s, %s: %.3000s", name, s.Name, diff)
			}
		}
	}
}
