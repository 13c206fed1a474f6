package family_test

import (
	"slices"
	"strings"
	"testing"

	"gdr-features/source/family"
)

// MayHold judges functions of which some ids are not known.
func TestMayHold(t *testing.T) {
	tests := []struct {
		name   string
		vendor uint16
		class  uint32
		want   bool
	}{
		{"nothing known", 0, 0, true},
		{"NVIDIA, class unknown", 0x10de, 0, true},
		{"Mellanox, class unknown", 0x15b3, 0, true},
		{"another vendor", 0x8086, 0, false},
		{"another vendor's network controller", 0x8086, 0x020000, false},
		{"a network controller", 0, 0x020700, true},
		{"a display controller", 0, 0x030200, true},
		{"a system peripheral, as data-direct functions are", 0, 0x080100, true},
		{"a network controller of a vendor of GPUs alone", 0x10de, 0x020000, false},
		{"a bridge", 0, 0x060400, false},
		{"a bridge of NVIDIA", 0x10de, 0x060400, false},
		{"storage", 0, 0x010802, false},
		{"a GPU's audio", 0x10de, 0x040300, false},
	}
	for _, tt := range tests {
		if got := family.Known().MayHold(family.IDs{Vendor: tt.vendor, Class: tt.class}); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// No device is of two families, and every row is complete.
func TestKnown(t *testing.T) {
	table := family.Known()
	names := map[string]bool{}
	for _, n := range slices.Concat(table.NICs, table.Others) {
		if n.Name != strings.ToLower(n.Name) || names[n.Name] || n.Vendor == 0 || len(n.Classes) == 0 || len(n.Drivers) == 0 || n.Module == "" {
			t.Errorf("row %+v", n)
		}
		names[n.Name] = true
		for device := range 1 << 16 {
			for _, class := range n.Classes {
				id := family.IDs{Vendor: n.Vendor, Device: uint16(device), Class: uint32(class) << 8}
				if !n.Devices.Has(id.Device) {
					continue
				}
				of := slices.DeleteFunc(slices.Concat(table.NICs, table.Others), func(o *family.NIC) bool { return !o.Of(id) })
				if found := table.NIC(id); len(of) != 1 || found != n && (found != nil || table.Other(id) != n) {
					t.Fatalf("%04x:%04x is of %d families", id.Vendor, id.Device, len(of))
				}
			}
		}
	}
	for _, g := range table.GPUs {
		if g.Name != strings.ToLower(g.Name) || names[g.Name] || g.Vendor == 0 || len(g.Classes) == 0 || g.Driver == "" || g.VersionFile == "" {
			t.Errorf("row %+v", g)
		}
		names[g.Name] = true
	}
}

func TestDeviceRanges(t *testing.T) {
	ids := family.DeviceRanges{{0x1003, 0x1010}, {0x2000, 0x2000}, {0, 1}}
	for id, want := range map[uint16]bool{
		0: true, 1: true, 2: false, 0x1002: false, 0x1003: true, 0x1008: true, 0x1010: true, 0x1011: false, 0x1fff: false, 0x2000: true, 0x2001: false,
	} {
		if got := ids.Has(id); got != want {
			t.Errorf("%04x: %v, want %v", id, got, want)
		}
	}
}
