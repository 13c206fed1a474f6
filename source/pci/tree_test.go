package pci

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source/family"
	"gdr-features/tristate"
)

// below makes a function below a root bus and some bridges.
func below(t *testing.T, path string) *Function {
	t.Helper()
	words := strings.Fields(path)
	f := &Function{RootBus: words[0], Address: at(t, words[len(words)-1])}
	for _, bridge := range words[1 : len(words)-1] {
		f.Bridges = append(f.Bridges, at(t, bridge))
	}
	return f
}

func TestSwitches(t *testing.T) {
	tests := []struct {
		name string
		path string
		want []string
	}{
		{"on the root bus", "pci0000:00 0000:00:02.0", nil},
		{"below a root port", "pci0000:00 0000:00:01.0 0000:01:00.0", nil},
		{
			"below a switch: its upstream port",
			"pci0000:15 0000:15:01.0 0000:16:00.0 0000:17:01.0 0000:18:00.0",
			[]string{"0000:16:00.0"},
		},
		{
			"below two switches: the nearest first",
			"pci0000:15 0000:15:01.0 0000:16:00.0 0000:17:01.0 0000:18:00.0 0000:19:04.0 0000:1a:00.0",
			[]string{"0000:18:00.0", "0000:16:00.0"},
		},
		{
			"two bridges: NCCL takes the root port for the upstream port",
			"pci0000:15 0000:15:01.0 0000:16:00.0 0000:18:00.0",
			[]string{"0000:15:01.0"},
		},
		{
			"four bridges: the pairs shift",
			"pci0000:15 0000:15:01.0 0000:16:00.0 0000:17:01.0 0000:18:00.0 0000:19:00.0",
			[]string{"0000:17:01.0", "0000:15:01.0"},
		},
		{
			"a domain of 17 bits is the root complex",
			"pci10000:e0 10000:e0:02.0 10000:e1:00.0 10000:e2:00.0 10000:e3:00.0",
			nil,
		},
		{
			"a domain of 17 bits above a switch",
			"pci10000:e0 10000:e0:02.0 10000:e1:00.0 0000:e2:00.0 0000:e3:00.0 0000:e4:00.0 0000:e5:00.0",
			[]string{"0000:e3:00.0"},
		},
		{
			"a domain of 17 bits as downstream port alone",
			"pci0000:00 0000:00:01.0 0000:01:00.0 10000:02:00.0 0000:03:00.0",
			nil,
		},
		{
			"the largest domain of 16 bits",
			"pciffff:00 ffff:00:01.0 ffff:01:00.0 ffff:02:00.0 ffff:03:00.0",
			[]string{"ffff:01:00.0"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var want []Address
			for _, s := range tt.want {
				want = append(want, at(t, s))
			}
			if diff := cmp.Diff(want, below(t, tt.path).Switches()); diff != "" {
				t.Errorf("switches (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCommonBridges(t *testing.T) {
	const gpu = "pci0000:15 0000:15:01.0 0000:16:00.0 0000:17:00.0 0000:18:00.0"
	tests := []struct {
		name, other string
		want        int
	}{
		{"the same switch", "pci0000:15 0000:15:01.0 0000:16:00.0 0000:17:01.0 0000:19:00.0", 2},
		{"the same downstream port", "pci0000:15 0000:15:01.0 0000:16:00.0 0000:17:00.0 0000:18:00.1", 3},
		{"deeper below the same port", "pci0000:15 0000:15:01.0 0000:16:00.0 0000:17:00.0 0000:18:01.0 0000:19:00.0", 3},
		{"the root port itself", "pci0000:15 0000:15:01.0", 0},
		{"below the same root port", "pci0000:15 0000:15:01.0 0000:16:01.0", 1},
		{"another root port", "pci0000:15 0000:15:02.0 0000:20:00.0", 0},
		{"the same bridges below another", "pci0000:15 0000:15:02.0 0000:16:00.0 0000:17:00.0 0000:18:00.0", 0},
		{"another root bus", "pci0000:37 0000:15:01.0 0000:16:00.0 0000:17:00.0 0000:18:00.1", 0},
	}
	for _, tt := range tests {
		f, g := below(t, gpu), below(t, tt.other)
		if a, b := f.CommonBridges(g), g.CommonBridges(f); a != tt.want || b != tt.want {
			t.Errorf("%s: %d and %d the other way round, want %d", tt.name, a, b, tt.want)
		}
	}
	lost := &Function{Bridges: below(t, gpu).Bridges}
	if n := lost.CommonBridges(lost); n != 0 {
		t.Errorf("without root buses: %d, want 0", n)
	}
}

// inventory sorts functions as Scan does.
func inventory(functions ...Function) *Inventory {
	return &Inventory{Functions: functions}
}

func TestFindPhysicalAndPlace(t *testing.T) {
	pf, lost := at(t, "0000:44:00.0"), at(t, "0000:46:00.0")
	gone := at(t, "0000:50:00.0")
	inv := inventory(
		Function{Address: at(t, "0000:43:00.0"), RootBus: "pci0000:40"},
		Function{Address: pf, RootBus: "pci0000:40"},
		Function{Address: at(t, "0000:44:00.1"), RootBus: "pci0000:40", PhysFn: &pf},
		Function{Address: lost},
		Function{Address: at(t, "0000:46:00.1"), RootBus: "pci0000:40", PhysFn: &lost},
		Function{Address: at(t, "0000:50:00.1"), RootBus: "pci0000:40", PhysFn: &gone},
	)
	for i := range inv.Functions {
		f := &inv.Functions[i]
		if got := inv.Find(f.Address); got != f {
			t.Errorf("Find(%v) = %v", f.Address, got)
		}
	}
	for _, missing := range []string{"0000:00:00.0", "0000:44:00.2", "0000:45:00.0", "ffff:ff:1f.7"} {
		if got := inv.Find(at(t, missing)); got != nil {
			t.Errorf("Find(%s) = %v, want nil", missing, got.Address)
		}
	}
	for function, want := range map[string]string{
		"0000:43:00.0": "0000:43:00.0",
		"0000:44:00.0": "0000:44:00.0",
		"0000:44:00.1": "0000:44:00.0",
		"0000:46:00.1": "0000:46:00.1", // the physical one has no place
		"0000:50:00.1": "0000:50:00.1", // the physical one is not listed
	} {
		if got := inv.Place(inv.Find(at(t, function))); got != inv.Find(at(t, want)) {
			t.Errorf("Place(%s) = %v, want %s", function, got.Address, want)
		}
	}
	for function, want := range map[string]*Function{
		"0000:43:00.0": nil,
		"0000:44:00.1": inv.Find(pf),
		"0000:46:00.1": inv.Find(lost),
		"0000:50:00.1": nil,
	} {
		if got := inv.Physical(inv.Find(at(t, function))); got != want {
			t.Errorf("Physical(%s) = %v, want %v", function, got, want)
		}
	}
}

func TestUnidentified(t *testing.T) {
	known, unknown := Function{Vendor: 0x10de}, Function{Eligible: IDsUnread}
	tests := []struct {
		name string
		inv  *Inventory
		want bool
	}{
		{"empty", inventory(), false},
		{"all known", inventory(known, known), false},
		{"the last unknown", inventory(known, unknown), true},
	}
	for _, tt := range tests {
		if got := tt.inv.Unidentified(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestNeedsCommonBridge(t *testing.T) {
	hostBridge := Function{Vendor: 0x8086, Device: 0x09a2, Class: 0x060000}
	for vendor, ids := range map[uint16][]uint16{
		// Ampere Altra, AmpereOne
		0x1def: {0xe000, 0xe00d, 0xe00e, 0xe010, 0xe100, 0xe110, 0xe200, 0xe201, 0xe202, 0xe203, 0xe204, 0xe205, 0xe206, 0xe207},
		// Grace
		0x10de: {0x22b1, 0x22b2, 0x22b3, 0x22b4, 0x22b8, 0x22b9},
	} {
		for _, device := range ids {
			for class, want := range map[uint32]bool{0x060000: true, 0x060400: true, 0x060100: false, 0x030200: false, 0x020000: false} {
				inv := inventory(hostBridge, Function{Vendor: vendor, Device: device, Class: class})
				if got := inv.NeedsCommonBridge(family.Known().GPUs[0]); got != tristate.Of(want) {
					t.Errorf("%04x:%04x, class %06x: %v, want %v", vendor, device, class, got, want)
				}
			}
		}
	}
	for name, f := range map[string]Function{
		"root port of Intel":              {Vendor: 0x8086, Device: 0x352a, Class: 0x060400},
		"these ids of another vendor":     {Vendor: 0x8086, Device: 0x22b1, Class: 0x060400},
		"the ids of both vendors mixed":   {Vendor: 0x10de, Device: 0xe100, Class: 0x060400},
		"another bridge of Ampere":        {Vendor: 0x1def, Device: 0xe111, Class: 0x060400},
		"a switch in a baseboard":         {Vendor: 0x10de, Device: 0x1af1, Class: 0x060400},
		"root port of Vera":               {Vendor: 0x10de, Device: 0x2f95, Class: 0x060400},
		"a function of vendor 0, for all": {Device: 0x22b1, Class: 0x060400},
	} {
		if got := inventory(hostBridge, f).NeedsCommonBridge(family.Known().GPUs[0]); got != tristate.False {
			t.Errorf("%s: needs a common bridge: %v", name, got)
		}
	}
}

func TestHypervisor(t *testing.T) {
	pf := at(t, "0000:44:00.0")
	tests := []struct {
		name string
		fn   Function
		want bool
	}{
		{"QEMU's root port", Function{Vendor: 0x1b36, Device: 0x000c, Class: 0x060400}, true},
		{"VMware's bridge", Function{Vendor: 0x15ad, Device: 0x07a0, Class: 0x060400}, true},
		{"VirtualBox's device", Function{Vendor: 0x80ee, Device: 0xcafe, Class: 0x088000}, true},
		{"virtio, which BlueField emulates too", Function{Vendor: 0x1af4, Device: 0x1041, Class: 0x020000}, false},
		{"virtual function alone", Function{Vendor: 0x15b3, Device: 0x101e, Class: 0x020700}, true},
		{"virtual function of ConnectX-3 alone", Function{Vendor: 0x15b3, Device: 0x1004, Class: 0x020000}, true},
		{"virtual function below its physical one", Function{Vendor: 0x15b3, Device: 0x101e, Class: 0x020700, PhysFn: &pf}, false},
		{"virtual function of which it is not known whether it is alone", Function{Vendor: 0x15b3, Device: 0x101e, Class: 0x020700, Eligible: IDsUnread}, false},
		{"a virtual function's id that is no NIC", Function{Vendor: 0x15b3, Device: 0x101e, Class: 0x010802}, false},
		{"ConnectX-7", Function{Vendor: 0x15b3, Device: 0x1021, Class: 0x020700}, false},
		{"a NIC nobody knows", Function{Vendor: 0x15b3, Device: 0xfffe, Class: 0x020700}, false},
		{"GPU", Function{Vendor: 0x10de, Device: 0x2330, Class: 0x030200}, false},
	}
	for _, tt := range tests {
		inv := inventory(Function{Vendor: 0x8086, Device: 0x09a2, Class: 0x060000}, tt.fn)
		inv.Functions[1].Classify(family.Known())
		got := inv.Hypervisor()
		if tt.want && got != &inv.Functions[1] || !tt.want && got != nil {
			t.Errorf("%s: %v, want it to show a hypervisor: %v", tt.name, got, tt.want)
		}
	}
}
