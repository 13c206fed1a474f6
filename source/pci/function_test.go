package pci

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source/family"
	"gdr-features/test/testsize"
)

func TestParseModalias(t *testing.T) {
	h100 := Function{Vendor: 0x10de, Device: 0x2330, SubVendor: 0x10de, SubDevice: 0x16c1, Class: 0x030200}
	const text = "pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00"
	tests := []struct {
		name, in string
		want     *Function // nil for one that is refused
	}{
		{"as the kernel writes it", text, &h100},
		{"lower case", "pci:" + strings.ToLower(text[4:]), &h100},
		{"every field at its end", "pci:v0000FFFFd0000FFFFsv0000FFFFsd0000FFFFbcFFscFFiFF", &Function{
			Vendor: 0xffff, Device: 0xffff, SubVendor: 0xffff, SubDevice: 0xffff, Class: 0xffffff,
		}},
		{"class in three parts", "pci:v00000001d00000002sv00000003sd00000004bc05sc06i07", &Function{
			Vendor: 1, Device: 2, SubVendor: 3, SubDevice: 4, Class: 0x050607,
		}},
		{"empty", "", nil},
		{"another bus", "usb:v1D6Bp0002d0515dc09dsc00dp00ic09isc00ip00in00", nil},
		{"vendor of more than 16 bits", "pci:v00010000d00002330sv000010DEsd000016C1bc03sc02i00", nil},
		{"device of more than 16 bits", "pci:v000010DEd00010000sv000010DEsd000016C1bc03sc02i00", nil},
		{"subsystem vendor of more than 16 bits", "pci:v000010DEd00002330sv00010000sd000016C1bc03sc02i00", nil},
		{"subsystem device of more than 16 bits", "pci:v000010DEd00002330sv000010DEsd00010000bc03sc02i00", nil},
		{"PCI_ANY_ID", "pci:v000010DEdFFFFFFFFsv000010DEsd000016C1bc03sc02i00", nil},
		{"wild card", "pci:v000010DEd*sv*sd*bc03sc02i00*", nil},
		{"not hexadecimal", "pci:v000010DGd00002330sv000010DEsd000016C1bc03sc02i00", nil},
		{"cut off", text[:len(text)-1], nil},
		{"cut off before a field", text[:len(text)-3], nil},
		{"more behind it", text + "0", nil},
		{"a new line", text + "\n", nil},
		{"fields in another order", "pci:d00002330v000010DEsv000010DEsd000016C1bc03sc02i00", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got Function
			ok := parseModalias(tt.in, &got)
			if ok != (tt.want != nil) {
				t.Fatalf("accepted: %v", ok)
			}
			want := Function{} // what is refused leaves the function as it was
			if tt.want != nil {
				want = *tt.want
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseSpeed(t *testing.T) {
	tests := map[string]float64{
		"2.5 GT/s PCIe":  2.5,
		"32.0 GT/s PCIe": 32,
		"64.0 GT/s PCIe": 64,
		"16 GT/s":        16,
		"8 GT/s":         8,
		"0 GT/s":         0,
		"0.5 GT/s":       0.5,
		"1024 GT/s":      1024,

		"":                0,
		"Unknown":         0,
		"Unknown speed":   0,
		"16":              0,
		"16GT/s":          0,
		"NaN GT/s":        0,
		"16 MB/s":         0,
		"-5 GT/s":         0,
		"1025 GT/s":       0,
		"Inf GT/s":        0,
		"1e99999 GT/s":    0,
		"fast GT/s":       0,
		" 16 GT/s":        0,
		"32.0 PCIe GT/s ": 0,
	}
	for in, want := range tests {
		if got := parseSpeed(in); got != want {
			t.Errorf("parseSpeed(%q) = %v, want %v", in, got, want)
		}
	}
}

func TestParseWidth(t *testing.T) {
	tests := map[string]int{
		"0": 0, "1": 1, "2": 2, "16": 16, "32": 32,
		"": 0, "33": 0, "255": 0, "-1": 0, "x16": 0, "16x": 0, "16.0": 0, "0x10": 0, "99999999999999999999": 0,
	}
	for in, want := range tests {
		if got := parseWidth(in); got != want {
			t.Errorf("parseWidth(%q) = %v, want %v", in, got, want)
		}
	}
}

func TestClassify(t *testing.T) {
	tests := []struct {
		name           string
		vendor, device uint16
		class          uint32
		want           string
	}{
		{"3D controller of NVIDIA", 0x10de, 0x2330, 0x030200, "GPU nvidia"},
		{"VGA controller of NVIDIA", 0x10de, 0x2684, 0x030000, "GPU nvidia"},
		{"VGA with another interface", 0x10de, 0x2684, 0x030001, "GPU nvidia"},
		{"audio of a GPU", 0x10de, 0x22ba, 0x040300, ""},
		{"USB of a GPU", 0x10de, 0x1ad6, 0x0c0330, ""},
		{"XGA controller of NVIDIA", 0x10de, 0x2330, 0x030100, ""},
		{"NVSwitch", 0x10de, 0x22a3, 0x068000, ""},
		{"root port of Grace", 0x10de, 0x22b1, 0x060400, "bridge"},
		{"VGA of a BMC", 0x1a03, 0x2000, 0x030000, ""},
		{"3D controller of AMD", 0x1002, 0x74a1, 0x030200, ""},
		{"Ethernet", 0x15b3, 0x101d, 0x020000, "NIC mlx5"},
		{"ConnectX-3", 0x15b3, 0x1003, 0x020000, "NIC mlx4"},
		{"InfiniBand", 0x15b3, 0x1021, 0x020700, "NIC mlx5"},
		{"other network controller", 0x15b3, 0x1021, 0x028000, "NIC mlx5"},
		{"network controller of another vendor", 0x14e4, 0x165f, 0x020000, ""},
		{"data-direct function", 0x15b3, 0x2100, 0x080100, "data-direct mlx5"},
		{"data-direct id in another class", 0x15b3, 0x2100, 0x020000, "NIC mlx5"},
		{"DMA controller of Mellanox", 0x15b3, 0xc2d5, 0x080100, ""},
		{"DMA controller of another vendor", 0x8086, 0x2100, 0x080100, ""},
		{"switch in a NIC", 0x15b3, 0x197b, 0x060400, "bridge"},
		{"host bridge", 0x8086, 0x09a2, 0x060000, ""},
		{"subtractive bridge", 0x8086, 0x244e, 0x060401, "bridge"},
		{"nothing known", 0, 0, 0, ""},
	}
	for _, tt := range tests {
		f := Function{Vendor: tt.vendor, Device: tt.device, Class: tt.class}
		f.Classify(family.Known())
		got := ""
		switch {
		case f.GPU != nil:
			got = "GPU " + f.GPU.Name
		case f.NIC != nil:
			got = "NIC " + f.NIC.Name
		case f.DataDirectOf != nil:
			got = "data-direct " + f.DataDirectOf.Name
		case f.Bridge():
			got = "bridge"
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestGPUEligible(t *testing.T) {
	tests := []struct {
		device uint16
		class  uint32
		name   string // in the table
		want   bool
	}{
		{0x2330, 0x030200, "H100 SXM5 80GB", true},
		{0x20b2, 0x030200, "A100 SXM4 80GB", true},
		{0x2342, 0x030200, "GH200 480GB", true},
		{0x31c2, 0x030200, "GB300", true},
		{0x26b9, 0x030000, "L40S", true},
		{0x1db1, 0x030200, "Tesla V100 SXM2 16GB", true},
		{0x2684, 0x030000, "GeForce RTX 4090", false},
		{0x1001, 0x030000, "GeForce GTX TITAN Z", false},
		{0x1003, 0x030000, "GeForce GTX Titan LE", false},
		{0x1e02, 0x030000, "TITAN RTX", false},
		{0x2681, 0x030000, "RTX TITAN Ada", false},
		{0x2e12, 0x030200, "GB10", false},
		{0x2e2a, 0x030200, "GB10", false},
		{0xffff, 0x030200, "", true},
		{0x2330, 0x040300, "H100 SXM5 80GB", false}, // no display controller
	}
	for _, tt := range tests {
		f := Function{Vendor: 0x10de, Device: tt.device, Class: tt.class}
		f.Classify(family.Known())
		if f.Name() != tt.name {
			t.Errorf("%04x: name %q, want %q", tt.device, f.Name(), tt.name)
		}
		if got := f.GPUEligible(); got != tt.want {
			t.Errorf("%04x %s, class %06x: eligible %v, want %v", tt.device, tt.name, tt.class, got, tt.want)
		}
	}
	amd := Function{Vendor: 0x1002, Device: 0x2330, Class: 0x030200}
	amd.Classify(family.Known())
	if amd.GPUEligible() {
		t.Error("a GPU of another vendor is eligible")
	}
}

func TestOpenModulesAndCoherent(t *testing.T) {
	tests := []struct {
		device         uint16
		class          uint32
		open, coherent bool
	}{
		{0x1db1, 0x030200, false, false}, // V100
		{0x1df6, 0x030200, false, false}, // V100S, the highest id before Turing
		{0x1e02, 0x030000, true, false},  // TITAN RTX, the lowest of Turing
		{0x2330, 0x030200, true, false},  // H100
		{0x2342, 0x030200, true, true},   // GH200
		{0x2345, 0x030200, true, true},
		{0x2348, 0x030200, true, true},
		{0x2901, 0x030200, true, false}, // B200
		{0x2941, 0x030200, true, true},  // GB200
		{0x31c2, 0x030200, true, true},  // GB300
		{0x2e12, 0x030200, true, false}, // GB10
		{0x3041, 0x030200, true, true},  // Vera Rubin
		{0x307f, 0x030200, true, true},
		{0x2342, 0x040300, false, false},
	}
	for _, of := range []struct{ first, last uint16 }{ // of the driver's detect-self-hosted.h
		{0x2340, 0x237f}, {0x2940, 0x297f}, {0x31a1, 0x31a1}, {0x31c0, 0x31ff}, {0x3040, 0x307f}, {0x30c0, 0x30ff},
	} {
		for device, coherent := range map[uint16]bool{of.first - 1: false, of.first: true, of.last: true, of.last + 1: false} {
			tests = append(tests, struct {
				device         uint16
				class          uint32
				open, coherent bool
			}{device, 0x030200, true, coherent})
		}
	}
	for _, tt := range tests {
		f := Function{Vendor: 0x10de, Device: tt.device, Class: tt.class}
		f.Classify(family.Known())
		if f.OpenModules() != tt.open || f.Coherent() != tt.coherent {
			t.Errorf("%04x, class %06x: open modules %v, Coherent %v; want %v, %v",
				tt.device, tt.class, f.OpenModules(), f.Coherent(), tt.open, tt.coherent)
		}
	}
}

func TestNICEligible(t *testing.T) {
	eligible := map[uint16]string{
		0x1003: "ConnectX-3", 0x1004: "its virtual function", 0x1007: "ConnectX-3 Pro",
		0x1011: "Connect-IB", 0x1012: "its virtual function",
		0x1013: "ConnectX-4", 0x1014: "its virtual function",
		0x1015: "ConnectX-4 Lx", 0x1016: "its virtual function",
		0x1017: "ConnectX-5", 0x1018: "its virtual function",
		0x1019: "ConnectX-5 Ex", 0x101a: "its virtual function",
		0x101b: "ConnectX-6", 0x101c: "its virtual function",
		0x101d: "ConnectX-6 Dx", 0x101e: "every later virtual function", 0x101f: "ConnectX-6 Lx",
		0x1021: "ConnectX-7", 0x1023: "ConnectX-8", 0x1025: "ConnectX-9", 0x1027: "ConnectX-10",
		0x2101: "ConnectX-10 over NVLink-C2C",
		0xa2d2: "BlueField", 0xa2d3: "its virtual function", 0xa2d6: "BlueField-2",
		0xa2d9: "BlueField-3 Lx", 0xa2dc: "BlueField-3", 0xa2df: "BlueField-4",
		0xfffe: "one that nobody knows",
	}
	for device, name := range eligible {
		for class, want := range map[uint32]bool{
			0x020000: true, 0x020700: true,
			0x028000: false, 0x020100: false, 0x060400: false, 0x010802: false, 0x080100: false, 0: false,
		} {
			f := Function{Vendor: 0x15b3, Device: device, Class: class}
			f.Classify(family.Known())
			if got := f.NICEligible(); got != want {
				t.Errorf("%04x (%s), class %06x: eligible %v, want %v", device, name, class, got, want)
			}
			f.NVLinkManagement = true
			f.Classify(family.Known())
			if f.NICEligible() {
				t.Errorf("%04x (%s), class %06x: eligible as manager of NVLink switches", device, name, class)
			}
		}
	}
	for name, ids := range map[string][]uint16{
		"InfiniHost": {0x5274, 0x5a44, 0x5a45, 0x5a46, 0x5e8c, 0x5e8d, 0x6274, 0x6278, 0x6279, 0x6282},
		"ConnectX, ConnectX-2": {
			0x1002, 0x6340, 0x634a, 0x6354, 0x6368, 0x6372, 0x6732, 0x673c, 0x6746, 0x6750, 0x675a, 0x6764, 0x676e, 0x6778,
		},
		"network processor": {0x7101, 0x7102, 0x7103, 0x7121, 0x7122, 0x7123, 0x8200},
		"switch": {
			0xc738, 0xc739, 0xc838, 0xc839, 0xcb84, 0xcf08, 0xcf6c, 0xcf70, 0xcf80, 0xcf82, 0xcf84, 0xcf86,
			0xd2f0, 0xd2f2, 0xd2f4, 0xd2f6, 0xd2f8, 0xd2fa, 0xd2fc,
		},
	} {
		for _, device := range ids {
			for _, class := range []uint32{0x020000, 0x020700} {
				f := Function{Vendor: 0x15b3, Device: device, Class: class}
				f.Classify(family.Known())
				if f.NICEligible() {
					t.Errorf("%04x (%s), class %06x: eligible", device, name, class)
				}
			}
		}
	}
	other := Function{Vendor: 0x14e4, Device: 0x1021, Class: 0x020000}
	other.Classify(family.Known())
	if other.NICEligible() {
		t.Error("a NIC of another vendor is eligible")
	}
}

func TestProductNames(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(idTable, "\n"), "\n")
	known := map[[2]uint16]bool{}
	for i, line := range lines {
		if i > 0 && lines[i-1] >= line {
			t.Errorf("line %d: %q is not sorted behind %q", i+1, line, lines[i-1])
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		var vendor, device uint16
		if n, err := fmt.Sscanf(line[:9], "%04x:%04x", &vendor, &device); n != 2 || line[9] != ' ' {
			t.Errorf("line %d: %q: %v", i+1, line, err)
			continue
		}
		known[[2]uint16{vendor, device}] = true
		if got := productName(vendor, device); got != line[10:] || got == "" {
			t.Errorf("productName(%04x, %04x) = %q, want %q", vendor, device, got, line[10:])
		}
	}
	if len(known) < 1000 {
		t.Errorf("only %d products", len(known))
	}
	for _, tt := range []struct {
		vendor, device uint16
		want           string
	}{
		{0x10de, 0x2330, "H100 SXM5 80GB"},
		{0x1002, 0x74a1, "Instinct MI300X"},
		{0x1002, 0x74b6, "Instinct MI308X VF"},
		{0x1002, 0x744c, "Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M"},
		{0x15b3, 0x1021, "ConnectX-7"},
		{0x1d0f, 0xefa1, "Elastic Fabric Adapter (EFA)"},
		{0x14e4, 0x1750, "BCM57508 NetXtreme-E"},
		{0x14e4, 0x1760, "BCM57608"},
		{0x8086, 0x1593, "E810-C for SFP"},
		{0x8086, 0x24f0, "Omni-Path HFI 100 Series"},
		{0x1414, 0x00ba, "MANA VF"},
		{0x8086, 0x1572, ""}, // X710, of no family
		{0x14e4, 0x1657, ""}, // BCM5719, of no family
	} {
		if got := productName(tt.vendor, tt.device); got != tt.want {
			t.Errorf("productName(%04x, %04x) = %q, want %q", tt.vendor, tt.device, got, tt.want)
		}
	}
	// Every family that pci.ids knows has names.
	for _, n := range family.Every().NICs {
		named := func(id [2]uint16) bool { return id[0] == n.Vendor && n.Devices.Has(id[1]) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(known)), named) {
			t.Errorf("no NIC of family %s has a name; run genids (CONTRIBUTING.md)", n.Name)
		}
	}
	// No other id has a name: those next to a line, before all and behind all.
	for _, vendor := range testsize.Share([]uint16{0x10de, 0x15b3, 0, 0x1002, 0x10dd, 0x15b2, 0x15b4, 0x8086, 0xffff}) {
		for n := range 1 << 16 {
			device := uint16(n)
			if known[[2]uint16{vendor, device}] {
				continue
			}
			if got := productName(vendor, device); got != "" {
				t.Errorf("productName(%04x, %04x) = %q, want none", vendor, device, got)
			}
		}
	}
}
