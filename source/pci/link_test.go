package pci_test

import (
	"fmt"
	"math"
	"testing"

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
