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
		{"another vendor", 0x1fff, 0, false},
		{"another vendor's network controller", 0x1fff, 0x020000, false},
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

// withoutVerbs are the families that can only be listed.
var withoutVerbs = []string{"cxi", "cxi2"}

// No device is of two families, and every row is complete.
func TestKnown(t *testing.T) {
	table := family.Known()
	names := map[string]bool{}
	for _, n := range slices.Concat(table.NICs, table.Others) {
		if n.Name != strings.ToLower(n.Name) || names[n.Name] || n.Vendor == 0 || len(n.Classes) == 0 || len(n.Drivers) == 0 || n.Verbs() == slices.Contains(withoutVerbs, n.Name) {
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

// Select takes families by name, in the order of the table.
func TestSelect(t *testing.T) {
	const all = "mlx5, mlx4, efa, bnxt_re, ionic, irdma, mana_ib, erdma, hns_roce, qedr, hfi1, cxgb4, usnic, ocrdma, vmw_pvrdma, qib"
	if got := strings.Join(family.Names(family.Every().NICs), ", "); got != all {
		t.Fatalf("families %s, want %s", got, all)
	}
	for _, tt := range []struct {
		names []string
		want  string // those that count
		err   string
	}{
		{names: family.Names(family.Known().NICs), want: "mlx5, mlx4, efa, bnxt_re, ionic"},
		{names: family.Names(family.Every().NICs), want: all},
		{names: []string{"irdma", "mlx5", "irdma"}, want: "mlx5, irdma"},
		{names: []string{"mlx5", "idrma"}, err: `no family of NICs is named "idrma"; there are ` + all},
		{names: []string{"mlx5", ""}, err: `no family of NICs is named ""; there are ` + all},
		{names: []string{"MLX5"}, err: `no family of NICs is named "MLX5"; there are ` + all},
		{names: []string{"nvidia"}, err: `no family of NICs is named "nvidia"; there are ` + all},
		{names: []string{"mlx5", "cxi"}, err: `no family of NICs is named "cxi"; there are ` + all},
		{names: []string{"other"}, err: `no family of NICs is named "other"; there are ` + all},
		{err: "no family of NICs is named; there are " + all},
	} {
		table, err := family.Select(tt.names)
		if err != nil {
			if err.Error() != tt.err {
				t.Errorf("%q: %v, want %s", tt.names, err, tt.err)
			}
			continue
		}
		if got := strings.Join(family.Names(table.NICs), ", "); got != tt.want || tt.err != "" {
			t.Errorf("%q: %s count, want %s; error %q", tt.names, got, tt.want, tt.err)
		}
		if len(table.NICs)+len(table.Others) != len(family.Every().NICs)+len(withoutVerbs) || len(table.GPUs) != len(family.Known().GPUs) {
			t.Errorf("%q: families are lost: %+v", tt.names, table)
		}
	}
}

func TestOrKnown(t *testing.T) {
	irdma, err := family.Select([]string{"irdma"})
	if err != nil {
		t.Fatal(err)
	}
	if got := family.Names(irdma.OrDefault().NICs); !slices.Equal(got, []string{"irdma"}) {
		t.Errorf("a table becomes one of %q", got)
	}
	if got, want := family.Names(family.Table{}.OrDefault().NICs), family.Names(family.Known().NICs); !slices.Equal(got, want) {
		t.Errorf("the zero value becomes a table of %q, want %q", got, want)
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
