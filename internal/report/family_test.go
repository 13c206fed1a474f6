package report_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/finding"
	"gdr-features/internal/label"
	"gdr-features/internal/render"
	"gdr-features/internal/report"
	"gdr-features/source/family"
	"gdr-features/test/machine"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// mesh is a made-up family of NICs: vendor, driver, symbol and link layer are its
// own. It has no peer memory client.
var mesh = family.NIC{
	Name: "mesh", Vendor: 0xfade, Devices: family.DeviceRanges{{First: 0x0001, Last: 0x00ff}},
	Classes: []uint16{0x0200}, Unsupported: family.DeviceIDs{0x0002}, Virtual: family.DeviceIDs{0x0080},
	Drivers: []string{"mesh_net"}, Module: "mesh_rdma", DMABuf: "mesh_reg_user_mr_dmabuf", LinkLayers: []string{"Unspecified"},
	Help: family.Help{Product: "Mesh 1", DMABufStack: "Linux 7.0 or newer", Operator: "the Mesh operator"},
}

const meshMachine = `
pci0000:15 numa=0
  0000:15:01.0 port 8086:352a
    0000:16:00.0 switch 1000:c030
      0000:17:00.0 port 1000:c030
        0000:18:00.0 gpu 10de:2330
      0000:17:01.0 port 1000:c030
        0000:19:00.0 eth fade:0001 rdma=mesh_0 layer=Unspecified driver=mesh_net
        0000:19:00.1 eth fade:0002
`

// withMesh is the table with one more row.
func withMesh() family.Table {
	t := family.Known()
	t.NICs = append(t.NICs, &mesh)
	return t
}

// TestNewFamily: a row in the table is all that a family of NICs takes. The machine
// has no other NIC. What is missing is named in turn.
func TestNewFamily(t *testing.T) {
	const symbols = "ib_umem_dmabuf_get\t[ib_uverbs]"
	ready := func() machine.State {
		s := state(t, "inbox")
		s.NICDriver, s.Symbols = "", []string{symbols, mesh.DMABuf + "\t[mesh_rdma]"}
		return s
	}
	for _, tc := range []struct {
		name    string
		machine func(text string) string
		state   func(*machine.State)
		ready   tristate.State
		reason  verdict.Reason
		check   string // of the finding that tells
		status  finding.Status
		code    finding.Code
		words   []string // in its texts and evidence
	}{
		{"all in place", nil, nil, tristate.True, "", "dmabuf", finding.StatusOK, "", []string{"mesh"}},
		{"an id that is not supported", replace("fade:0001", "fade:0002"), nil, tristate.False, "NICUnsupported", "hardware", finding.StatusFail, "NICUnsupported", []string{"unsupported model", "fade:0002"}},
		{"an id of nobody", func(text string) string {
			return strings.NewReplacer("fade:0001", "fade:1001", "fade:0002", "fade:1002").Replace(text)
		}, nil, tristate.Unknown, "NICNotJudged", "hardware", finding.StatusUnknown, "NICNotJudged", []string{"other 0000:19:00.0 fade:1001", "gdr-features snapshot"}},
		{"an id of nobody, without an RDMA device", func(text string) string {
			return strings.NewReplacer("fade:0001 rdma=mesh_0", "fade:1001", "fade:0002", "fade:1002").Replace(text)
		}, nil, tristate.False, "NoNIC", "hardware", finding.StatusFail, "NoNIC", nil},
		{"no driver", replace("driver=mesh_net", ""), nil, tristate.False, "NICDriverNotLoaded", "nic-driver", finding.StatusFail, "NICDriverNotLoaded", []string{"modprobe mesh_net", "the Mesh operator", "0000:19:00.0/driver=absent"}},
		{"the driver of another family", replace("driver=mesh_net", "driver=mlx5_core"), nil, tristate.False, "NICDriverNotLoaded", "nic-driver", finding.StatusFail, "NICDriverNotLoaded", []string{"mesh_net", "0000:19:00.0/driver=mlx5_core"}},
		{"no RDMA device", nil, func(s *machine.State) { s.NoRDMA = true }, tristate.False, "NoRDMADevice", "rdma-device", finding.StatusFail, "NoRDMADevice", []string{"modprobe mesh_rdma"}},
		{"no active port", nil, func(s *machine.State) { s.Port = "DOWN" }, tristate.False, "NoActivePort", "port", finding.StatusFail, "NoActivePort", []string{"mesh_0/ports/1/state=DOWN"}},
		{"the link layer of another family", replace("layer=Unspecified", "layer=Ethernet"), nil, tristate.False, "NoActivePort", "port", finding.StatusFail, "NoActivePort", []string{"0 of 1 port"}},
		{"no symbol", nil, func(s *machine.State) { s.Symbols = []string{symbols} }, tristate.False, "NoPeerMemoryPath", "dmabuf", finding.StatusFail, "NoDMABuf", []string{"mesh_rdma", mesh.DMABuf, "Linux 7.0 or newer"}},
		{"the symbol of another family", nil, func(s *machine.State) { s.Symbols[1] = "mlx5_ib_reg_user_mr_dmabuf\t[mlx5_ib]" }, tristate.False, "NoPeerMemoryPath", "dmabuf", finding.StatusFail, "NoDMABuf", []string{mesh.DMABuf}},
		{"no symbol table", nil, func(s *machine.State) { s.Symbols = nil }, tristate.Unknown, "Unreadable", "dmabuf", finding.StatusUnknown, "Unreadable", nil},
		{"the proprietary GPU driver, and the client of another family", nil, func(s *machine.State) {
			s.Open, s.Modules = false, map[string]string{"nvidia_peermem": "live"}
		}, tristate.False, "NoPeerMemoryPath", "dmabuf", finding.StatusFail, "ClosedDriver", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text, s := meshMachine, ready()
			if tc.machine != nil {
				text = tc.machine(text)
			}
			if tc.state != nil {
				tc.state(&s)
			}
			fs, err := host.Open(host.Options{Root: parse(t, text).Tree(t, s)})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = fs.Close() }()
			o := report.ForCheck
			o.Families = withMesh()
			r := report.Collect(t.Context(), fs, o)
			if v := r.Verdict; v.Ready != tc.ready || v.Reason != tc.reason {
				t.Errorf("ready %v, reason %q; want %v, %q", v.Ready, v.Reason, tc.ready, tc.reason)
			}
			i := slices.IndexFunc(r.Findings, func(f finding.Finding) bool { return f.Check == tc.check })
			if i < 0 {
				t.Fatalf("no finding %s among %+v", tc.check, r.Findings)
			}
			f := r.Findings[i]
			if f.Status != tc.status || f.Code != tc.code {
				t.Errorf("%s: %s %s, want %s %s", f.Check, f.Status, f.Code, tc.status, tc.code)
			}
			all := strings.Join(append([]string{f.Detail, f.FixText()}, f.Evidence...), "\n")
			for _, words := range tc.words {
				if !strings.Contains(all, words) {
					t.Errorf("no %q in\n%s", words, all)
				}
			}
			for _, other := range []string{"mlx5", "mlx4", "ConnectX"} {
				if tc.machine == nil && tc.check != "rdma-stack" && strings.Contains(f.Detail+f.FixText(), other) {
					t.Errorf("it speaks of %s:\n%s", other, all)
				}
			}
		})
	}
}

func replace(from, to string) func(string) string {
	return func(text string) string { return strings.Replace(text, from, to, 1) }
}

// TestNewFamilyShown: levels, labels and the matrix are those of any NIC. A program
// without the family in its table does not see the NIC.
func TestNewFamilyShown(t *testing.T) {
	s := state(t, "inbox")
	s.NICDriver, s.Symbols = "", []string{"ib_umem_dmabuf_get\t[ib_uverbs]", mesh.DMABuf + "\t[mesh_rdma]"}
	fs, err := host.Open(host.Options{Root: parse(t, meshMachine).Tree(t, s)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	o := report.ForTopo
	o.Families = withMesh()
	r := report.Collect(t.Context(), fs, o)
	for name, want := range map[string]string{
		label.Capable: "true", label.ConnectX: "false", "gdr.gpu.nvidia": "true", "gdr.nic.mesh": "true", label.Level: "PIX", label.BestLevel: "PIX", label.NCCLDefault: "true", label.GPUs: "1", label.NICs: "1",
		label.Topology: "physical", label.Ready: "true", label.Peermem: "false", label.DMABuf: "true", label.PeerDirect: "none",
		label.Rate: "400", label.Link: "unspecified", label.IOMMU: "passthrough", label.ACS: "clear", label.Storage: "false",
	} {
		if got := r.Labels[name]; got != want {
			t.Errorf("%s=%q, want %q", name, got, want)
		}
	}
	if _, ok := r.Labels[label.Reason]; ok || len(r.Problems) > 0 {
		t.Errorf("reason %q, problems %v", r.Labels[label.Reason], r.Problems)
	}
	if len(r.Matrix.Pairs) != 1 || r.Matrix.Pairs[0].Level != topology.PIX || r.Matrix.NICs[0].Name() != "mesh_0" {
		t.Errorf("NICs %+v, pairs %+v", r.Matrix.NICs, r.Matrix.Pairs)
	}
	var out bytes.Buffer
	if err := render.Topo(&out, &r); err != nil || !strings.Contains(out.String(), "mesh_0") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if r := report.Collect(t.Context(), fs, report.ForTopo); r.Labels[label.Capable] != "" || r.Labels[label.Reason] != "NICNotJudged" || r.Labels[label.NICs] != "0" {
		t.Errorf("without the row: %v", r.Labels)
	}
}
