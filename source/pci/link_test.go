package pci_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"gdr-features/source"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

func TestFullLink(t *testing.T) {
	link := func(speed, maxSpeed float64, width, maxWidth int) *pci.Link {
		return &pci.Link{Speed: speed, MaxSpeed: maxSpeed, Width: width, MaxWidth: maxWidth}
	}
	gen5 := link(32, 32, 16, 16)
	type ends struct{ Lower, Upper *pci.Link }
	for _, tt := range []struct {
		name     string
		ends     ends
		nic, gpu tristate.State
		lacks    string // of the NIC
		speed    float64
		width    int
	}{
		{"full", ends{Lower: gen5, Upper: gen5}, tristate.True, tristate.True, "[]", 32, 16},
		{"half the lanes", ends{Lower: link(32, 32, 8, 16), Upper: gen5}, tristate.False, tristate.False, "[x8 of x16]", 32, 16},
		{"half the speed", ends{Lower: link(16, 32, 16, 16), Upper: gen5}, tristate.False, tristate.True, "[16 of 32 GT/s]", 32, 16},
		{"half of both", ends{Lower: link(2.5, 32, 1, 16), Upper: gen5}, tristate.False, tristate.False, "[x1 of x16 2.5 of 32 GT/s]", 32, 16},
		{"a slot of fewer lanes", ends{Lower: link(32, 32, 8, 16), Upper: link(32, 32, 8, 8)}, tristate.True, tristate.True, "[]", 32, 8},
		{"a slower slot", ends{Lower: link(16, 32, 16, 16), Upper: link(16, 16, 16, 16)}, tristate.True, tristate.True, "[]", 16, 16},
		{"a slower slot that lost lanes", ends{Lower: link(16, 32, 4, 16), Upper: link(16, 16, 4, 8)}, tristate.False, tristate.False, "[x4 of x8]", 16, 8},
		{"a faster slot", ends{Lower: link(16, 16, 8, 8), Upper: gen5}, tristate.True, tristate.True, "[]", 16, 8},
		{"full, and nothing known of the slot", ends{Lower: gen5}, tristate.True, tristate.True, "[]", 32, 16},
		{"less lanes, and nothing known of the slot", ends{Lower: link(32, 32, 8, 16)}, tristate.Unknown, tristate.Unknown, "[x8 of x16]", 32, 16},
		{"less speed, and the slot's not known", ends{Lower: link(16, 32, 16, 16), Upper: link(0, 0, 16, 16)}, tristate.Unknown, tristate.True, "[16 of 32 GT/s]", 32, 16},
		{"less lanes, and the speed not known", ends{Lower: link(0, 32, 8, 16), Upper: gen5}, tristate.False, tristate.False, "[x8 of x16]", 32, 16},
		{"the state not known", ends{Lower: link(0, 32, 0, 16), Upper: gen5}, tristate.Unknown, tristate.Unknown, "[]", 32, 16},
		{"the function's own most not known", ends{Lower: link(16, 0, 8, 0), Upper: gen5}, tristate.Unknown, tristate.Unknown, "[]", 32, 16},
		{"only the slot known", ends{Upper: gen5}, tristate.Unknown, tristate.Unknown, "[]", 32, 16},
		{"nothing known", ends{}, tristate.Unknown, tristate.Unknown, "[]", 0, 0},
	} {
		lower, upper := &pci.Function{Link: tt.ends.Lower}, &pci.Function{Link: tt.ends.Upper}
		if tt.ends.Upper == nil {
			upper = nil
		}
		full, lacks := pci.FullLink(lower, upper, true)
		if full != tt.nic || fmt.Sprint(lacks) != tt.lacks {
			t.Errorf("%s: NIC %v %v, want %v %s", tt.name, full, lacks, tt.nic, tt.lacks)
		}
		if full, _ := pci.FullLink(lower, upper, false); full != tt.gpu {
			t.Errorf("%s: GPU %v, want %v", tt.name, full, tt.gpu)
		}
		if speed, width := pci.MostOf(lower, upper); speed != tt.speed || width != tt.width {
			t.Errorf("%s: %v GT/s and x%d at the most, want %v and x%d", tt.name, speed, width, tt.speed, tt.width)
		}
	}
}

// TestCarries: what the encoding of each generation leaves.
func TestCarries(t *testing.T) {
	for _, test := range []struct {
		link *pci.Link
		want float64
	}{
		{nil, 0},
		{&pci.Link{Speed: 32}, 0},
		{&pci.Link{Width: 16}, 0},
		{&pci.Link{Speed: 2.5, Width: 16}, 32},
		{&pci.Link{Speed: 5, Width: 16}, 64},
		{&pci.Link{Speed: 8, Width: 16}, 126},
		{&pci.Link{Speed: 16, Width: 16}, 252.1},
		{&pci.Link{Speed: 32, Width: 16}, 504.1},
		{&pci.Link{Speed: 64, Width: 16}, 968},
	} {
		if got := test.link.Carries(); math.Abs(got-test.want) > 0.05 {
			t.Errorf("%+v carries %v, want %v", test.link, got, test.want)
		}
	}
}

// TestLinkParts: of the port that a card is plugged into, what its link can do is read; of a card's
// own switch all is read, also where a GPU shares memory with its CPU and the switch is one bridge.
// With details all is read of every function.
func TestLinkParts(t *testing.T) {
	const text = `nodes 2
arm
pci0008:00 numa=0
  0008:00:00.0 port 10de:22b1
    0008:01:00.0 gpu 10de:%s
pci0006:00 numa=0
  0006:00:00.0 port 10de:22b1
    0006:01:00.0 port 15b3:197b
      0006:02:00.0 eth 15b3:a2dc rdma=mlx5_2
`
	for _, gpu := range []string{"2941", "2330"} {
		dir := write(t, fmt.Sprintf(text, gpu))
		for _, what := range []source.What{{}, {Details: true}} {
			inv := scan(t, dir, what)
			for at, whole := range map[string]bool{"0008:00:00.0": what.Details, "0008:01:00.0": true, "0006:00:00.0": what.Details || gpu == "2941", "0006:01:00.0": true} {
				l := find(t, &inv, at).Link
				if l == nil || l.MaxSpeed == 0 || l.MaxWidth == 0 || (l.Speed > 0 && l.Width > 0) != whole {
					t.Errorf("GPU %s, %+v: link of %s is %+v, whole %v", gpu, what, at, l, whole)
				}
			}
		}
	}
}

// TestLinkUnread: a link's file that cannot be read counts if it is judged, with details and without:
// of a card all four, of the port above it those of what the link can do.
func TestLinkUnread(t *testing.T) {
	for _, tt := range []struct {
		at, file string
		want     bool
	}{
		{"0000:18:00.0", pci.LinkWidthFile, true},
		{"0000:18:00.0", pci.MaxLinkWidthFile, true},
		{"0000:17:00.0", pci.LinkWidthFile, false},
		{"0000:17:00.0", pci.MaxLinkWidthFile, true},
		{"0000:16:00.0", pci.LinkSpeedFile, true},
	} {
		dir := write(t, switched)
		file := filepath.Join(dir, "sys/bus/pci/devices", tt.at, tt.file)
		if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o755)); err != nil {
			t.Fatal(err)
		}
		for _, what := range []source.What{{}, {Details: true}} {
			if inv := scan(t, dir, what); inv.AnyLinkUnread != tt.want || len(inv.Problems) > 0 != tt.want {
				t.Errorf("%s of %s, details %v: unread %v, problems %v", tt.file, tt.at, what.Details, inv.AnyLinkUnread, inv.Problems)
			}
		}
	}
}

// TestNameOfEntry: a copied tree may write addresses in upper case.
func TestNameOfEntry(t *testing.T) {
	dir := write(t, "pci0000:15\n  0000:15:01.0 port 8086:352a\n    0000:1a:00.0 gpu 10de:2330\n")
	devices := filepath.Join(dir, "sys/bus/pci/devices")
	const name, upper = "0000:1a:00.0", "0000:1A:00.0"
	to, err := os.Readlink(filepath.Join(devices, name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(to), upper)
	for _, err := range []error{
		os.Rename(filepath.Join(devices, to), filepath.Join(devices, path)),
		os.Remove(filepath.Join(devices, name)),
		os.Symlink(path, filepath.Join(devices, upper)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	inv := scan(t, dir, source.What{})
	if f := find(t, &inv, name); f.Driver == "" || !f.DriverKnown || f.Link == nil || f.Link.Speed == 0 {
		t.Errorf("%+v", f)
	}
}
