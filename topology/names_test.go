package topology

import (
	"strings"
	"testing"

	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/topology/nccl"
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

// levels are those of nvidia-smi and of NCCL.
type levels struct{ Level, NCCL Level }

// TestNames: NCCL finds a NIC by the name of its RDMA device, wherever its function is
// (src/graph/xml.cc, ncclTopoFillNet).
func TestNames(t *testing.T) {
	file, err := nccl.ParseFile([]byte(namedFile))
	if err != nil {
		t.Fatal(err)
	}
	at81, none := "0000:81:00.0", "0000:99:00.0" // in the file and not
	for _, tt := range []struct {
		name, function string
		auxiliary, efa bool
		want           levels
		fromFile       bool
	}{
		{name: "near", function: none, want: levels{PIX, PIX}, fromFile: true},
		{name: "bridge", function: none, want: levels{PHB, PHB}, fromFile: true},
		{name: "on_cpu", function: none, want: levels{PHB, PHB}, fromFile: true},
		{name: "far", function: none, want: levels{SYS, SYS}, fromFile: true},
		{name: "twice", function: none, want: levels{PIX, PIX}, fromFile: true},  // the first counts
		{name: "second", function: none, want: levels{PHB, PHB}, fromFile: true}, // of two elements nic of one pci
		{name: "plain", function: none, want: levels{NODE, PHB}},
		{name: "near", function: at81, want: levels{SYS, PIX}, fromFile: true}, // the function stays where it is
		{name: "near", function: none, auxiliary: true, want: levels{PIX, PIX}, fromFile: true},
		{name: "plain", function: none, auxiliary: true, want: levels{NODE, Unknown}},
		{name: "near", function: none, efa: true, want: levels{NODE, Unknown}}, // a plugin may have other names
		{name: "far", function: at81, efa: true, want: levels{SYS, SYS}, fromFile: true},
		{name: "", function: none, want: levels{NODE, PHB}},
	} {
		g, n := on("0000:01:00.0", 0x10de, 0x2330, 0x030200), on(tt.function, 0x15b3, 0x101e, 0x020700)
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
			PCI:  &pci.Inventory{Functions: []pci.Function{g, n}},
			RDMA: &rdma.Inventory{Devices: devices},
			File: file,
		})
		p := m.Pairs[0]
		if got := (levels{p.Level, p.NCCL}); got != tt.want || p.FromFile != tt.fromFile {
			t.Errorf("%+v: %v %v, from the file: %v", tt, got.Level, got.NCCL, p.FromFile)
		}
		bare := Build(Inputs{PCI: &pci.Inventory{Functions: []pci.Function{g, n}}, RDMA: &rdma.Inventory{}, File: file})
		if m.Hardware.Level != bare.Hardware.Level || m.Best != bare.Best || m.Hardware.NCCLDefault != bare.Hardware.NCCLDefault || m.Origin != bare.Origin {
			t.Errorf("%+v: %v %v %v %v, and without driver %v %v %v %v", tt, m.Hardware.Level, m.Best, m.Hardware.NCCLDefault, m.Origin,
				bare.Hardware.Level, bare.Best, bare.Hardware.NCCLDefault, bare.Origin)
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
		{`"f0" arch="x86_64"`, `the cpu element "1" without arch`},
		{`"f0" arch="x86_64" vendor="AuthenticAMD"`, `the cpu element "1" without vendor`},
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
		g, n := on("0000:01:00.0", 0x10de, 0x2330, 0x030200), on("0000:99:00.0", 0x15b3, 0x101e, 0x020700)
		file, err := nccl.ParseFile([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		m := Build(Inputs{
			PCI:  &pci.Inventory{Functions: []pci.Function{g, n}},
			RDMA: &rdma.Inventory{Devices: []rdma.Device{{Name: "far", PCI: &n.Address}}},
			File: file,
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
