package pci

import (
	"fmt"
	"strconv"

	"gdr-features/tristate"
)

// Slot returns the functions at both ends of the link that leads out of f's card:
// the card's own end, which is f itself or, of a NIC with a switch of its own, the
// switch's upstream port; and the port right above, nil where there is none.
func (inv *Inventory) Slot(f *Function) (card, port *Function) {
	card = f
	for i := len(f.Bridges) - 1; i >= 0 && f.NIC != nil && f.NIC.OwnSwitch; i-- {
		above := inv.Find(f.Bridges[i])
		if above == nil || above.Vendor != f.Vendor {
			break
		}
		card = above
	}
	return card, inv.Port(card)
}

// Port returns the port that a function is plugged into, the bridge right above
// it; nil where there is none.
func (inv *Inventory) Port(f *Function) *Function {
	if len(f.Bridges) == 0 {
		return nil
	}
	return inv.Find(f.Bridges[len(f.Bridges)-1])
}

// link is what a function shows of its link; the zero value for nothing, and for no function.
func (f *Function) link() Link {
	if f == nil || f.Link == nil {
		return Link{}
	}
	return *f.Link
}

// MostOf is the most that the link between two functions can do, in GT/s and lanes: the
// lesser of its two ends, or that of the one that is known; 0 for unknown. upper may be nil.
func MostOf(lower, upper *Function) (speed float64, width int) {
	a, b := lower.link(), upper.link()
	return least(a.MaxSpeed, b.MaxSpeed), least(a.MaxWidth, b.MaxWidth)
}

// least is the smaller of two limits, of which 0 is not known.
func least[T int | float64](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// LinkLack is a property of which a link has less than its ends can do. Now is what
// it has, Own what its lower end can do, and Most what both can as far as that is
// known: lanes, or GT/s. The first two are from the files of these names.
type LinkLack struct {
	Now, Own, Most   float64
	NowFile, OwnFile string
	unit             string // after a number in these files, " GT/s"
}

// String is "x4 of x16" or "16 of 32 GT/s".
func (l LinkLack) String() string {
	if l.unit == "" {
		return fmt.Sprintf("x%g of x%g", l.Now, l.Most)
	}
	return fmt.Sprintf("%g of %g%s", l.Now, l.Most, l.unit)
}

// Bandwidth is what the link between two functions carries in each direction with what it lacks,
// and what it could, in Gbit/s before the headers of packets; 0 for unknown. upper may be nil.
func Bandwidth(lower, upper *Function, lacks []LinkLack) (left, most float64) {
	speed, width := MostOf(lower, upper)
	most = carries(speed, float64(width))
	lanes := float64(width)
	for _, l := range lacks {
		if l.unit == "" {
			lanes = l.Now
		} else {
			speed = l.Now
		}
	}
	return carries(speed, lanes), most
}

// Carries is what the link carries now in each direction, in Gbit/s before the headers of packets;
// 0 for unknown.
func (l *Link) Carries() float64 {
	if l == nil {
		return 0
	}
	return carries(l.Speed, float64(l.Width))
}

// carries: of the bits 8b/10b leaves up to 5 GT/s, then 128b/130b, and from 64 GT/s on flits of 256
// bytes, of which 242 are not for the link.
func carries(speed, lanes float64) float64 {
	share := 242.0 / 256
	switch {
	case speed <= 5:
		share = 8.0 / 10
	case speed < 64:
		share = 128.0 / 130
	}
	return speed * lanes * share
}

// Value writes a number of the property as its file does.
func (l LinkLack) Value(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) + l.unit }

// FullLink judges a link, as of a GPU's or NIC's card, whose ends Slot gives: whether it
// runs with all the lanes and, where speed is to be judged, at the speed that both
// ends can do, and what it lacks. Less than the lower end can do is a proven fault
// only where the upper end is known to do more; where that is not known, full is
// unknown and lacks still names it. An idle GPU slows its link down to save power,
// so that its speed says nothing.
func FullLink(lower, port *Function, speed bool) (full tristate.State, lacks []LinkLack) {
	own, upper := lower.link(), port.link()
	judge := func(l LinkLack, upper float64) tristate.State {
		l.Most = least(l.Own, upper)
		if l.Now == 0 || l.Own == 0 {
			return tristate.Unknown
		}
		if l.Now >= l.Most {
			return tristate.True
		}
		lacks = append(lacks, l)
		if upper == 0 {
			return tristate.Unknown
		}
		return tristate.False
	}
	full = judge(LinkLack{
		Now: float64(own.Width), NowFile: LinkWidthFile,
		Own: float64(own.MaxWidth), OwnFile: MaxLinkWidthFile,
	}, float64(upper.MaxWidth))
	if speed {
		full = tristate.And(full, judge(LinkLack{
			Now: own.Speed, NowFile: LinkSpeedFile,
			Own: own.MaxSpeed, OwnFile: MaxLinkSpeedFile, unit: " GT/s",
		}, upper.MaxSpeed))
	}
	return full, lacks
}
