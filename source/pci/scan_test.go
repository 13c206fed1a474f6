package pci_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/test/machine"
)

const devices = "sys/bus/pci/devices/"

// switched is a machine with a GPU and two NICs below one switch.
const switched = `
nodes 2
pci0000:15 numa=0
  0000:15:01.0 port 8086:352a
    0000:16:00.0 switch 1000:c030 sub=1000:0000
      0000:17:00.0 port 1000:c030 acs=001d
        0000:18:00.0 gpu 10de:2330 sub=10de:16c1
      0000:17:01.0 port 1000:c030 acs=0000
        0000:19:00.0 ib 15b3:1021
        0000:19:00.1 ib 15b3:101e physfn=0000:19:00.0
`

// write lays a machine out with everything in place.
func write(t *testing.T, description string) (dir string) {
	t.Helper()
	m, err := machine.Parse(description)
	if err != nil {
		t.Fatal(err)
	}
	return m.Tree(t, m.Ready())
}

func open(t *testing.T, dir string) *host.FS {
	t.Helper()
	tree, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	return tree
}

var everything = source.What{Details: true}

func scan(t *testing.T, dir string, what source.What) pci.Inventory {
	t.Helper()
	inv, err := pci.Scan(open(t, dir), family.Known(), what)
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// put writes one file of a tree anew; links are followed.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, dir, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
}

// relink makes a link of a tree anew.
func relink(t *testing.T, dir, name, to string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

func at(t *testing.T, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func find(t *testing.T, inv *pci.Inventory, address string) *pci.Function {
	t.Helper()
	f := inv.Find(at(t, address))
	if f == nil {
		t.Fatalf("%s is not in the inventory", address)
	}
	return f
}

// wantProblems checks that there are problems with these beginnings, in this
// order, and no others.
func wantProblems(t *testing.T, problems []error, beginnings ...string) {
	t.Helper()
	for i, err := range problems {
		if i >= len(beginnings) || !strings.HasPrefix(err.Error(), beginnings[i]) {
			t.Errorf("problem %d: %v", i, err)
		}
	}
	if len(problems) < len(beginnings) {
		t.Errorf("no problem tells of %q", beginnings[len(problems):])
	}
}

func TestScan(t *testing.T) {
	dir := write(t, switched)
	bridges := []pci.Address{at(t, "0000:15:01.0"), at(t, "0000:16:00.0"), at(t, "0000:17:00.0")}
	other := []pci.Address{bridges[0], bridges[1], at(t, "0000:17:01.0")}
	pf := at(t, "0000:19:00.0")
	bridge := func(address string, vendor, device uint16, above ...pci.Address) pci.Function {
		return pci.Function{
			Address: at(t, address), Vendor: vendor, Device: device, Class: 0x060400,
			RootBus: "pci0000:15", Top: "pci0000:15", Bridges: above,
			NUMA: pci.None, NearNUMA: pci.None, RootNUMA: pci.None, IOMMUGroup: pci.Unread,
		}
	}
	want := pci.Inventory{NUMANodes: 2, Functions: []pci.Function{
		bridge("0000:15:01.0", 0x8086, 0x352a),
		bridge("0000:16:00.0", 0x1000, 0xc030, bridges[:1]...),
		bridge("0000:17:00.0", 0x1000, 0xc030, bridges[:2]...),
		bridge("0000:17:01.0", 0x1000, 0xc030, bridges[:2]...),
		{
			Address: at(t, "0000:18:00.0"), Vendor: 0x10de, Device: 0x2330, SubVendor: 0x10de, SubDevice: 0x16c1, Class: 0x030200,
			RootBus: "pci0000:15", Top: "pci0000:15", Bridges: bridges, Driver: "nvidia", DriverKnown: true, IOMMUGroup: 3,
		},
		{
			Address: pf, Vendor: 0x15b3, Device: 0x1021, Class: 0x020700,
			RootBus: "pci0000:15", Top: "pci0000:15", Bridges: other, Driver: "mlx5_core", DriverKnown: true, IOMMUGroup: 5,
		},
		{
			Address: at(t, "0000:19:00.1"), Vendor: 0x15b3, Device: 0x101e, Class: 0x020700, PhysFn: &pf,
			RootBus: "pci0000:15", Top: "pci0000:15", Bridges: other, Driver: "mlx5_core", DriverKnown: true, IOMMUGroup: 6,
		},
	}}
	want.Functions[1].SubVendor = 0x1000
	for i := range want.Functions {
		if want.Functions[i].PhysFn == nil {
			want.Functions[i].Link = &pci.Link{Speed: 32, MaxSpeed: 32, Width: 16, MaxWidth: 16}
		}
		want.Functions[i].IDFile = pci.ModaliasFile
		want.Functions[i].Classify(family.Known())
	}
	for _, port := range []int{2, 3} { // of the cards: what their links can do
		want.Functions[port].Link = &pci.Link{MaxSpeed: 32, MaxWidth: 16}
	}
	if diff := cmp.Diff(want, scan(t, dir, source.What{})); diff != "" {
		t.Errorf("needed (-want +got):\n%s", diff)
	}

	// Everything: the rest of every function, and what root alone may read.
	for i := range want.Functions {
		f := &want.Functions[i]
		f.NUMA, f.NearNUMA, f.RootNUMA = 0, 0, 0
		f.DriverKnown = true
		f.Link = &pci.Link{Speed: 32, MaxSpeed: 32, Width: 16, MaxWidth: 16}
		if f.Bridge() {
			f.Driver, f.ACS, f.IOMMUGroup = "pcieport", &pci.ACS{}, pci.None
		}
	}
	want.Functions[2].ACS = &pci.ACS{Present: true, Control: 0x1d}
	want.Functions[3].ACS = &pci.ACS{Present: true}
	if diff := cmp.Diff(want, scan(t, dir, everything)); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
}

func TestScanWithoutBus(t *testing.T) {
	dir := t.TempDir()
	_, err := pci.Scan(open(t, dir), family.Known(), source.What{})
	if want := "PCI bus: open /sys/bus/pci/devices: no such file or directory"; !errors.Is(err, fs.ErrNotExist) || err.Error() != want {
		t.Errorf("no bus: %v, want %s", err, want)
	}
	if err := os.MkdirAll(filepath.Join(dir, "sys/bus/pci"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "sys/bus/pci/devices", "")
	if _, err := pci.Scan(open(t, dir), family.Known(), source.What{}); err == nil {
		t.Error("a file in place of the bus: no error")
	}
	remove(t, dir, "sys/bus/pci/devices")
	if err := os.Mkdir(filepath.Join(dir, "sys/bus/pci/devices"), 0o755); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pci.Inventory{Functions: []pci.Function{}}, scan(t, dir, source.What{})); diff != "" {
		t.Errorf("an empty bus (-want +got):\n%s", diff)
	}
}
