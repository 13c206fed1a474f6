package pci_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// Configuration space as a file: everybody sees 64 bytes, root all there is.
func TestReadACS(t *testing.T) {
	dir := write(t, `
pci0000:15
  0000:15:01.0 port 8086:352a acs=001d
  0000:15:02.0 port 8086:352a acs=0000
  0000:15:03.0 port 8086:352a
  0000:15:04.0 gpu 10de:2330
  0000:15:05.0 port 8086:352a acs=001d
  0000:15:06.0 port 8086:352a acs=001d
`)
	if err := os.Truncate(filepath.Join(dir, devices+"0000:15:05.0/config"), 64); err != nil {
		t.Fatal(err)
	}
	remove(t, dir, devices+"0000:15:06.0/config")
	want := map[string]*pci.ACS{
		"0000:15:01.0": {Present: true, Control: 0x1d},
		"0000:15:02.0": {Present: true},
		"0000:15:03.0": {},
		"0000:15:04.0": nil,
		"0000:15:05.0": nil,
		"0000:15:06.0": nil,
		"0000:15:07.0": nil,
	}
	tree := open(t, dir)
	for address, acs := range want {
		if diff := cmp.Diff(acs, pci.ReadACS(tree, at(t, address))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", address, diff)
		}
	}
}

// TestReadATS: of what everybody can read, nothing is known.
func TestReadATS(t *testing.T) {
	dir := write(t, `
pci0000:15
  0000:15:01.0 ib 15b3:1021 ats=on
  0000:15:02.0 ib 15b3:1021 ats=off
  0000:15:03.0 ib 15b3:1021 ats=none
  0000:15:04.0 ib 15b3:1021
  0000:15:05.0 ib 15b3:1021 ats=on
  0000:15:06.0 ib 15b3:1021 ats=on
  0000:15:07.0 ib 15b3:1021 ats=on
`)
	for name, size := range map[string]int64{"0000:15:05.0": 64, "0000:15:06.0": 0} {
		if err := os.Truncate(filepath.Join(dir, devices+name+"/config"), size); err != nil {
			t.Fatal(err)
		}
	}
	remove(t, dir, devices+"0000:15:07.0/config")
	tree := open(t, dir)
	for address, want := range map[string]tristate.State{
		"0000:15:01.0": tristate.True, "0000:15:02.0": tristate.False, "0000:15:03.0": tristate.False, "0000:15:04.0": tristate.Unknown,
		"0000:15:05.0": tristate.Unknown, "0000:15:06.0": tristate.Unknown, "0000:15:07.0": tristate.Unknown, "0000:15:08.0": tristate.Unknown,
	} {
		if got := pci.ReadATS(tree, at(t, address)); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
}

func TestReadVPD(t *testing.T) {
	dir := write(t, `
pci0000:15
  0000:15:01.0 ib 15b3:1023 vpd=VU:cx8-0
  0000:15:02.0 ib 15b3:1023 vpd=NVIDIA~ConnectX-8
  0000:15:03.0 ib 15b3:1023
  0000:15:04.0 ib 15b3:1023
  0000:15:05.0 ib 15b3:1023
  0000:15:06.0 gpu 10de:2330 vpd=PN:900
`)
	put(t, dir, devices+"0000:15:04.0/vpd", "")
	put(t, dir, devices+"0000:15:05.0/vpd", "\xff\xff\xff\xff")
	want := map[string]*pci.VPD{
		"0000:15:01.0": {Product: "ConnectX", Fields: map[string]string{"VU": "cx8-0"}},
		"0000:15:02.0": {Product: "NVIDIA ConnectX-8", Fields: map[string]string{}},
		"0000:15:03.0": nil,
		"0000:15:04.0": nil,
		"0000:15:05.0": nil,
		"0000:15:06.0": {Product: "ConnectX", Fields: map[string]string{"PN": "900"}},
	}
	tree := open(t, dir)
	inv := scan(t, dir, everything)
	for address, vpd := range want {
		if diff := cmp.Diff(vpd, pci.ReadVPD(tree, at(t, address))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", address, diff)
		}
		if diff := cmp.Diff(vpd, find(t, &inv, address).VPD); diff != "" {
			t.Errorf("%s, scanned (-want +got):\n%s", address, diff)
		}
	}
	// A GPU's says nothing that labels need.
	inv = scan(t, dir, source.What{})
	if f := find(t, &inv, "0000:15:06.0"); f.VPD != nil {
		t.Errorf("read though it is not needed: %v", f.VPD)
	}
}

func TestScanLinks(t *testing.T) {
	dir := write(t, switched)
	const gpu, vf, port = devices + "0000:18:00.0/", devices + "0000:19:00.1/", devices + "0000:17:00.0/"
	const root, upstream = devices + "0000:15:01.0/", devices + "0000:16:00.0/"
	put(t, dir, gpu+"current_link_speed", "2.5 GT/s PCIe\n")
	put(t, dir, gpu+"current_link_width", "8\n")
	put(t, dir, vf+"current_link_speed", "Unknown\n")
	put(t, dir, vf+"current_link_width", "255\n")
	remove(t, dir, vf+"max_link_speed")
	remove(t, dir, vf+"max_link_width")
	for _, file := range []string{"current_link_speed", "max_link_speed", "current_link_width", "max_link_width"} {
		remove(t, dir, port+file)
	}
	remove(t, dir, upstream+"max_link_speed")
	remove(t, dir, upstream+"current_link_width")
	remove(t, dir, upstream+"max_link_width")
	remove(t, dir, root+"current_link_speed")
	remove(t, dir, root+"max_link_speed")
	remove(t, dir, root+"max_link_width")
	inv := scan(t, dir, everything)
	wantProblems(t, inv.Problems)
	for address, want := range map[string]*pci.Link{
		"0000:15:01.0": {Width: 16},
		"0000:16:00.0": {Speed: 32},
		"0000:18:00.0": {Speed: 2.5, MaxSpeed: 32, Width: 8, MaxWidth: 16},
		"0000:19:00.0": {Speed: 32, MaxSpeed: 32, Width: 16, MaxWidth: 16},
		"0000:19:00.1": {},
		"0000:17:00.0": nil, // as integrated endpoints have none
	} {
		if diff := cmp.Diff(want, find(t, &inv, address).Link); diff != "" {
			t.Errorf("%s (-want +got):\n%s", address, diff)
		}
	}
}

// TestScanCards: the links of GPU and NIC cards are read and of the bridges
// above them, and no others. A NIC with a switch of its own is one card.
func TestScanCards(t *testing.T) {
	dir := write(t, `pci0000:10 numa=0
  0000:10:01.0 port 8086:352a
    0000:11:00.0 switch 10b5:9797
      0000:12:00.0 port 10b5:9797
        0000:13:00.0 gpu 10de:2330
      0000:12:01.0 port 10b5:9797
        0000:14:00.0 switch 15b3:197b
          0000:15:00.0 port 15b3:197b
            0000:16:00.0 eth 15b3:a2dc
            0000:16:00.1 eth 15b3:101e physfn=0000:16:00.0
  0000:10:02.0 port 8086:352a
    0000:17:00.0 010802 144d:a80a
`)
	linked := func(detail source.What) (all []string) {
		inv := scan(t, dir, detail)
		for i := range inv.Functions {
			if f := &inv.Functions[i]; f.Link != nil {
				all = append(all, f.Address.String())
			}
		}
		return all
	}
	want := []string{"0000:10:01.0", "0000:11:00.0", "0000:12:00.0", "0000:12:01.0", "0000:13:00.0", "0000:14:00.0"}
	for _, what := range []source.What{{}, {Advice: true}, {Publish: true}} {
		if diff := cmp.Diff(want, linked(what)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", what, diff)
		}
	}
	inv := scan(t, dir, source.What{})
	for address, want := range map[string][2]string{
		"0000:16:00.0": {"0000:14:00.0", "0000:12:01.0"},
		"0000:13:00.0": {"0000:13:00.0", "0000:12:00.0"},
		"0000:17:00.0": {"0000:17:00.0", "0000:10:02.0"},
	} {
		card, port := inv.Slot(find(t, &inv, address))
		if got := [2]string{card.Address.String(), port.Address.String()}; got != want {
			t.Errorf("card and port of %s: %s, want %s", address, got, want)
		}
	}
}
