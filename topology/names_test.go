package topology

import (
	"strings"
	"testing"

	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
)

// namedFile has a NIC's name on a bridge beside the GPU, on a CPU, below a switch, and in ways that
// need care.
const namedFile = `<system version="1">
<cpu numaid="0" affinity="f" arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1">
<nic><net name="on_cpu"/><net/></nic>
<pci busid="ffff:ff:01.0" class="0x060400" link_speed="" link_width="">
<pci busid="0000:01:00.0" class="0x030200" link_speed="" link_width=""/>
<pci busid="0000:02:00.0" class="0x020700" link_speed="" link_width=""><nic><net name="near"/><net name="twice"/></nic></pci>
</pci>
<pci busid="ffff:ff:02.0" class="0x060000" link_speed="" link_width=""><nic><net name="bridge"/></nic><nic><net name="second"/></nic></pci>
</cpu>
<cpu numaid="1" affinity="f0" arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1">
<pci busid="0000:81:00.0" class="0x020700" link_speed="" link_width=""><nic><net name="far"/><net name="twice"/><net name="plain_dma"/></nic></pci>
</cpu>
</system>`

// TestNames: NCCL finds a NIC by the name of its RDMA device, wherever its function is
// (src/graph/xml.cc, ncclTopoFillNet).
func TestNames(t *testing.T) {
	at81, none := "0000:81:00.0", "0000:99:00.0" // in the file and not
	for _, tt := range []struct {
		name, function string
		auxiliary, efa bool
		want           inBoth
		fromFile       bool
	}{
		{name: "near", function: none, want: inBoth{PIX, PIX}, fromFile: true},
		{name: "bridge", function: none, want: inBoth{PHB, PHB}, fromFile: true},
		{name: "on_cpu", function: none, want: inBoth{PHB, PHB}, fromFile: true},
		{name: "far", function: none, want: inBoth{SYS, SYS}, fromFile: true},
		{name: "twice", function: none, want: inBoth{PIX, PIX}, fromFile: true}, // the first counts
		{name: "second", function: none, want: inBoth{NODE, Unknown}},           // of two elements nic of one pci
		{name: "plain", function: none, want: inBoth{NODE, PHB}},
		{name: "near", function: at81, want: inBoth{SYS, PIX}, fromFile: true}, // the function stays where it is
		{name: "near", function: none, auxiliary: true, want: inBoth{PIX, PIX}, fromFile: true},
		{name: "plain", function: none, auxiliary: true, want: inBoth{NODE, Unknown}},
		{name: "near", function: none, efa: true, want: inBoth{NODE, Unknown}}, // a plugin may have other names
		{name: "far", function: at81, efa: true, want: inBoth{SYS, SYS}, fromFile: true},
		{name: "", function: none, want: inBoth{NODE, PHB}},
	} {
		g, n := placed(gpu(t, "0000:01:00.0"), 0), placed(nic(t, tt.function), 0)
		n.RootBus = "pci0000:80"
		if tt.efa {
			n.Vendor, n.Device, n.Class = 0x1d0f, 0xefa0, 0x020000
			n.Classify(family.Known())
		}
		devices := []rdma.Device{{Name: tt.name, PCI: &n.Address, Auxiliary: tt.auxiliary}}
		if tt.name == "" {
			devices = nil
		}
		m := Build(Inputs{
			PCI:  &pci.Inventory{Functions: []pci.Function{*g, *n}},
			RDMA: &rdma.Inventory{Devices: devices},
			File: parse(t, namedFile),
		})
		p := m.Pairs[0]
		if got := (inBoth{p.Level, p.NCCL}); got != tt.want || p.FromFile != tt.fromFile {
			t.Errorf("%+v: %v %v, from the file: %v", tt, got.Level, got.NCCL, p.FromFile)
		}
		bare := Build(Inputs{PCI: &pci.Inventory{Functions: []pci.Function{*g, *n}}, RDMA: &rdma.Inventory{}, File: parse(t, namedFile)})
		if m.Level != bare.Level || m.Best != bare.Best || m.NCCLDefault != bare.NCCLDefault || m.Origin != bare.Origin {
			t.Errorf("%+v: %v %v %v %v, and without driver %v %v %v %v", tt, m.Level, m.Best, m.NCCLDefault, m.Origin,
				bare.Level, bare.Best, bare.NCCLDefault, bare.Origin)
		}
	}
}

// TestNamesNeedAttributes: NCCL does not fill in what the file lacks where it finds NICs by name
// alone, and fails.
func TestNamesNeedAttributes(t *testing.T) {
	for _, tt := range []struct{ attribute, why string }{
		{`numaid="1" affinity="f0"`, ""},
		{` link_width=""><nic><net name="far"`, `the pci element "0000:81:00.0" without link_width`},
		{` class="0x020700" link_speed="" link_width=""><nic><net name="far"`, `the pci element "0000:81:00.0" without class`},
		{`"f0" arch="x86_64"`, "the cpu element of NUMA node 1 without arch"},
		{`"f0" arch="x86_64" vendor="AuthenticAMD"`, "the cpu element of NUMA node 1 without vendor"},
		{`"f0" arch="x86_64" vendor="AuthenticAMD" familyid="25"`, ""}, // not needed for AMD
	} {
		without := tt.attribute[:strings.LastIndex(strings.TrimSuffix(tt.attribute, `><nic><net name="far"`), " ")]
		switch {
		case strings.Contains(tt.why, "class"):
			without = ` link_speed="" link_width=""><nic><net name="far"`
		case strings.Contains(tt.attribute, "<nic>"):
			without = `><nic><net name="far"`
		}
		text := strings.Replace(namedFile, tt.attribute, without, 1)
		if text == namedFile {
			t.Fatalf("%s is not in the file", tt.attribute)
		}
		g, n := placed(gpu(t, "0000:01:00.0"), 0), placed(nic(t, "0000:99:00.0"), 0)
		m := Build(Inputs{
			PCI:  &pci.Inventory{Functions: []pci.Function{*g, *n}},
			RDMA: &rdma.Inventory{Devices: []rdma.Device{{Name: "far", PCI: &n.Address}}},
			File: parse(t, text),
		})
		got := ""
		if m.FileRefused != nil {
			got = m.FileRefused.Error()
		}
		if got != tt.why || (m.Pairs[0].NCCL == Unknown) != (tt.why != "") {
			t.Errorf("without %s: %q, %v; want %q", tt.attribute, got, m.Pairs[0].NCCL, tt.why)
		}
	}
}
