package pci

import (
	"testing"

	"gdr-features/source/family"
)

func TestExclude(t *testing.T) {
	nic := func(bus uint8, device, sub uint16) Function {
		return Function{Address: Address{Bus: bus}, Vendor: 0x15b3, Device: device, SubVendor: 0x15b3, SubDevice: sub, NIC: &family.NIC{}, Eligible: Counts}
	}
	virtual := nic(3, 0x101e, 0)
	virtual.PhysFn = &Address{Bus: 2}
	gpu := Function{Address: Address{Bus: 4}, Vendor: 0x10de, Device: 0x2330, Eligible: Counts}
	for _, tt := range []struct {
		list []string
		want [4]bool
	}{
		{nil, [4]bool{}},
		{[]string{"0000:01:00.0"}, [4]bool{true}},
		{[]string{"02:00.0"}, [4]bool{false, true, true}},
		{[]string{"15b3:1021"}, [4]bool{true, true, true}},
		{[]string{"15b3:1021:15b3:0009"}, [4]bool{false, true, true}},
		{[]string{"15B3:101e"}, [4]bool{false, false, true}},
		{[]string{"10de:2330"}, [4]bool{}},
		{[]string{"mlx5_0"}, [4]bool{}},
	} {
		inv := Inventory{Functions: []Function{nic(1, 0x1021, 1), nic(2, 0x1021, 9), virtual, gpu}}
		e, err := ParseExclusion(tt.list)
		if err != nil {
			t.Fatal(err)
		}
		inv.Exclude(e)
		for i, want := range tt.want {
			if f := inv.Functions[i]; f.Excluded != want || (f.Eligible == Counts) == want {
				t.Errorf("%q: %v is excluded: %v, eligible: %v", tt.list, f.Address, f.Excluded, f.Eligible)
			}
		}
	}
}

func FuzzExclusion(f *testing.F) {
	for _, seed := range []string{"0000:01:00.0", "01:00.0", "15b3:1021", "15b3:1021:15b3:0009", "mlx5_0", "15b3:", ":", ".", "a:b.c", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		e, err := ParseExclusion([]string{entry})
		if n := len(e.Devices) + len(e.addresses) + len(e.ids); (n == 1) != (err == nil) {
			t.Errorf("%q: %d entries, %v", entry, n, err)
		}
		inv := Inventory{Functions: []Function{{NIC: &family.NIC{}, Eligible: Counts}}}
		inv.Exclude(e)
	})
}
