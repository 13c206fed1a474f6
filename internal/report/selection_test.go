package report_test

import (
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/source/family"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// e810 is a machine whose only RDMA NIC is an Intel E810.
const e810 = `
pci0000:15 numa=0
  0000:15:01.0 port 8086:352a acs=0000
    0000:16:00.0 gpu 10de:26b9 name=GPU0
pci0000:20 numa=0
  0000:20:01.0 port 8086:352a acs=0000
    0000:21:00.0 eth 8086:1593 rdma=rocep33s0 driver=ice
`

// e810Symbols are those of the RDMA core and of its driver.
var e810Symbols = []string{"ib_umem_dmabuf_get\t[ib_uverbs]", "irdma_reg_user_mr_dmabuf\t[irdma]"}

func selected(t *testing.T, names string) family.Table {
	t.Helper()
	table, err := family.Select(strings.Split(names, ","))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestSelection: a NIC of a family that does not count leaves it open whether the
// hardware can do GPUDirect RDMA. Where its family counts, it is judged as any other.
func TestSelection(t *testing.T) {
	const both = e810 + "    0000:22:00.0 eth 15b3:1021 rdma=mlx5_0\n"
	known := strings.Join(family.Names(family.Known().NICs), ",")
	for _, tt := range []struct {
		name, machine, families string
		change                  func(*machine.State)
		capable, ready          tristate.State
		reason                  verdict.Reason
		labels                  map[string]string // "" is for none
	}{
		{
			name: "E810, not counted", machine: e810, families: known,
			capable: tristate.Unknown, ready: tristate.Unknown, reason: verdict.NICNotJudged,
			labels: map[string]string{label.Capable: "", label.Ready: "", label.Reason: "NICNotJudged", label.NICs: "0", "gdr.nic.irdma": ""},
		},
		{
			name: "E810, counted", machine: e810, families: "mlx5,irdma", capable: tristate.True, ready: tristate.True,
			labels: map[string]string{label.Capable: "true", label.Ready: "true", label.DMABuf: "true", label.NICs: "1", "gdr.nic.irdma": "true", label.ConnectX: "false"},
		},
		{
			name: "E810, counted, port down", machine: e810, families: "irdma", change: func(s *machine.State) { s.Port = "DOWN" },
			capable: tristate.True, ready: tristate.False, reason: verdict.NoActivePort,
		},
		{
			name: "E810, counted, the symbol of another family", machine: e810, families: "irdma,mlx5",
			change:  func(s *machine.State) { s.Symbols = []string{e810Symbols[0], "mlx5_ib_reg_user_mr_dmabuf\t[mlx5_ib]"} },
			capable: tristate.True, ready: tristate.False, reason: verdict.NoPeerMemoryPath,
		},
		{
			name: "E810 beside a ConnectX, only that counted", machine: both, families: known, capable: tristate.True, ready: tristate.False, reason: verdict.NoPeerMemoryPath,
			labels: map[string]string{label.NICs: "1", "gdr.nic.mlx5": "true", "gdr.nic.irdma": ""},
		},
		{
			name: "E810 beside a ConnectX, both counted", machine: both, families: "mlx5,irdma", capable: tristate.True, ready: tristate.True,
			labels: map[string]string{label.NICs: "2", "gdr.nic.mlx5": "true", "gdr.nic.irdma": "true"},
		},
		{
			name: "a ConnectX, not counted", machine: one, families: "irdma",
			capable: tristate.Unknown, ready: tristate.Unknown, reason: verdict.NICNotJudged,
			labels: map[string]string{label.ConnectX: "", "gdr.nic.mlx5": ""},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := state(t, "inbox")
			s.Symbols = e810Symbols
			if tt.change != nil {
				tt.change(&s)
			}
			fs, err := host.Open(host.Options{Root: parse(t, tt.machine).Tree(t, s)})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = fs.Close() }()
			o := report.ForCheck
			o.Families = selected(t, tt.families)
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

// TestSnapshotOfSelections: a snapshot says what the machine says, whichever families
// count, and does not depend on those that counted when it was taken.
func TestSnapshotOfSelections(t *testing.T) {
	t.Parallel()
	names := family.Names(family.Every().NICs)
	selections := append([]string{"mlx5,irdma", "mlx4", "efa,bnxt_re"}, testsize.Few(names)...)
	for name, text := range map[string]string{
		"E810": e810, "ConnectX-7": one,
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
