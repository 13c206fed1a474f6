package pci

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// at reads an address that the test wrote itself.
func at(t *testing.T, s string) Address {
	t.Helper()
	a, err := ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestParseAddress(t *testing.T) {
	tests := []struct {
		in   string
		want Address
		text string // as sysfs spells it
	}{
		{"0000:00:00.0", Address{}, "0000:00:00.0"},
		{"0000:1a:0b.7", Address{0, 0x1a, 0x0b, 7}, "0000:1a:0b.7"},
		{"0009:01:1f.3", Address{9, 1, 0x1f, 3}, "0009:01:1f.3"},
		{"ABCD:EF:1D.0", Address{0xabcd, 0xef, 0x1d, 0}, "abcd:ef:1d.0"},
		{"10000:e1:00.0", Address{0x10000, 0xe1, 0, 0}, "10000:e1:00.0"},
		{"00010000:e1:00.0", Address{0x10000, 0xe1, 0, 0}, "10000:e1:00.0"},
		{"00000000:3B:00.0", Address{0, 0x3b, 0, 0}, "0000:3b:00.0"},
		{"ffffffff:ff:1f.7", Address{0xffffffff, 0xff, 0x1f, 7}, "ffffffff:ff:1f.7"},
		{"ffff:ff:01.0", Address{0xffff, 0xff, 1, 0}, "ffff:ff:01.0"},
	}
	for _, tt := range tests {
		got, err := ParseAddress(tt.in)
		if err != nil || got != tt.want {
			t.Errorf("ParseAddress(%q) = %v, %v; want %v", tt.in, got, err, tt.want)
		}
		if got.String() != tt.text {
			t.Errorf("ParseAddress(%q).String() = %q, want %q", tt.in, got, tt.text)
		}
		if again, err := ParseAddress(got.String()); err != nil || again != got {
			t.Errorf("ParseAddress(%q) = %v, %v; want what it was written from", got, again, err)
		}
	}
}

func TestParseAddressRefuses(t *testing.T) {
	for _, in := range []string{
		"", "0", "mlx5_0", "pci0000:00", "ports",
		"00:00.0", "000:00:00.0", "123456789:00:00.0", // domain too short, too long
		"0000:00:00", "0000:00:00.", "0000:00:00.00", "0000:00:0.0", "0000:0:00.0",
		"0000.00:00.0", "0000:00.00.0", "0000:00:00:0", "0000-00-00.0",
		"0000:00:20.0", "0000:00:00.8", "0000:00:ff.0", // 32 devices, 8 functions
		"000/:00:00.0", "000::00:00.0", "000@:00:00.0", "000G:00:00.0", "000`:00:00.0",
		"g000:00:00.0", "0000:0g:00.0", "0000:00:g0.0", "0000:00:00.g",
		" 0000:00:00.0", "0000:00:00.0 ", "0000:00:00.0\n", "000 :00:00.0", "0000: 0:00.0", "+000:00:00.0", "-000:00:00.0",
		"0x00:00:00.0", "0_00:00:00.0", "0000:00:00.0/", "../0000:00:00.0", "٠٠٠٠:00:00.0",
	} {
		if got, err := ParseAddress(in); err == nil || got != (Address{}) {
			t.Errorf("ParseAddress(%q) = %v, %v; want an error", in, got, err)
		}
	}
}

func TestAddressCompare(t *testing.T) {
	sorted := []Address{
		{0, 0, 0, 0},
		{0, 0, 0, 7},
		{0, 0, 1, 0},
		{0, 0, 0x1f, 7},
		{0, 1, 0, 0},
		{0, 0xff, 0x1f, 7},
		{1, 0, 0, 0},
		{0xffff, 0, 0, 0},
		{0x10000, 0, 0, 0},
		{0xffffffff, 0xff, 0x1f, 7},
	}
	for i, a := range sorted {
		for j, b := range sorted {
			if got, want := a.Compare(b), min(max(i-j, -1), 1); got != want {
				t.Errorf("%v.Compare(%v) = %d, want %d", a, b, got, want)
			}
		}
	}
	shuffled := slices.Clone(sorted)
	slices.Reverse(shuffled)
	slices.SortFunc(shuffled, Address.Compare)
	if diff := cmp.Diff(sorted, shuffled); diff != "" {
		t.Errorf("sorted (-want +got):\n%s", diff)
	}
}

func TestAddressJSON(t *testing.T) {
	got, err := json.Marshal([]Address{{0x10000, 0xe1, 0, 1}})
	if want := `["10000:e1:00.1"]`; string(got) != want || err != nil {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestParseRootBus(t *testing.T) {
	tests := map[string]bool{
		"pci0000:00":     true,
		"pci0000:ff":     true,
		"pci10000:e0":    true,
		"pciffffffff:00": true,
		"pciABCD:EF":     true,

		"":                false,
		"pci":             false,
		"pci000:00":       false,
		"pci123456789:00": false,
		"pci0000:0":       false,
		"pci0000:000":     false,
		"pci0000.00":      false,
		"pcixxxx:00":      false,
		"pci0000:xx":      false,
		"PCI0000:00":      false,
		"0000:00:00.0":    false,
		"pci0000:00\n":    false,
		"pci_bus":         false,
	}
	for in, want := range tests {
		if got := parseRootBus(in); got != want {
			t.Errorf("parseRootBus(%q) = %v, want %v", in, got, want)
		}
	}
}

func TestSplitPath(t *testing.T) {
	tests := []struct {
		name    string
		dir     string
		root    string
		bridges []string
		bad     bool
	}{
		{
			name: "behind a switch",
			dir:  "../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0",
			root: "pci0000:15", bridges: []string{"0000:15:01.0", "0000:16:00.0", "0000:17:01.0"},
		},
		{
			name: "on the root bus",
			dir:  "../../../devices/pci0000:00",
			root: "pci0000:00",
		},
		{
			name: "absolute",
			dir:  "/sys/devices/pci0009:00/0009:00:00.0",
			root: "pci0009:00", bridges: []string{"0009:00:00.0"},
		},
		{
			name: "VMD: the root bus nearest to the function counts, and what is below it",
			dir:  "../../../devices/pci0000:d7/0000:d7:05.5/pci10000:e0/10000:e0:02.0/10000:e1:00.0",
			root: "pci10000:e0", bridges: []string{"10000:e0:02.0", "10000:e1:00.0"},
		},
		{
			name: "Hyper-V",
			dir:  "../../../devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505500-0001-0000-3130-444532334544/pci0001:00",
			root: "pci0001:00",
		},
		{
			name: "a platform device above the root bus",
			dir:  "../../../devices/platform/soc/fd0e0000.pcie/pci0000:00/0000:00:00.0",
			root: "pci0000:00", bridges: []string{"0000:00:00.0"},
		},
		{
			name: "directories in between are no bridges",
			dir:  "devices/pci0000:15/0000:15:01.0/mlx5_core.sf.2",
			root: "pci0000:15", bridges: []string{"0000:15:01.0"},
		},
		{
			name: "addresses above the root bus are no bridges",
			dir:  "0000:01:00.0/pci0000:15/0000:15:01.0",
			root: "pci0000:15", bridges: []string{"0000:15:01.0"},
		},
		{name: "no root bus", dir: "../../../devices/0000:15:01.0", bad: true},
		{name: "virtual", dir: "../../devices/virtual/net", bad: true},
		{name: "empty", dir: "", bad: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var want []Address
			for _, s := range tt.bridges {
				want = append(want, at(t, s))
			}
			root, bridges, ok := splitPath(tt.dir)
			if root != tt.root || ok == tt.bad {
				t.Errorf("root bus %q, %v; want %q, %v", root, ok, tt.root, !tt.bad)
			}
			if diff := cmp.Diff(want, bridges); diff != "" {
				t.Errorf("bridges (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddressString(t *testing.T) {
	for _, domain := range []uint32{0, 1, 0xf, 0x10, 0xabc, 0xffff, 0x10000, 0xfedcba, 0x1000000, 0xffffffff} {
		for n := range 256 {
			a := Address{Domain: domain, Bus: uint8(n), Device: uint8(n % 32), Function: uint8(n % 8)}
			if want := fmt.Sprintf("%04x:%02x:%02x.%x", a.Domain, a.Bus, a.Device, a.Function); a.String() != want {
				t.Fatalf("%q, want %q", a.String(), want)
			}
		}
	}
}
