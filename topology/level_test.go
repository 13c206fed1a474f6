package topology

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestLevelNames(t *testing.T) {
	names := map[Level]string{
		Unknown: "", PIX: "PIX", PXB: "PXB", P2C: "P2C", PHB: "PHB", NODE: "NODE", SYS: "SYS", SYS + 1: "", 255: "",
	}
	for level, name := range names {
		if got := level.String(); got != name {
			t.Errorf("Level(%d) is %q, want %q", level, got, name)
		}
		if got, err := json.Marshal(level); string(got) != `"`+name+`"` || err != nil {
			t.Errorf("Level(%d) is %s in JSON, %v; want %q", level, got, err, name)
		}
	}
	// The nearer the smaller: everything that compares levels relies on it.
	order := []Level{Unknown, PIX, PXB, P2C, PHB, NODE, SYS}
	for i, level := range order {
		if int(level) != i {
			t.Errorf("%v is %d, want %d", level, level, i)
		}
	}
}

func TestParseLevel(t *testing.T) {
	for _, level := range []Level{PIX, PXB, PHB, NODE, SYS} {
		name := level.String()
		for _, text := range []string{name, strings.ToLower(name), name[:1] + strings.ToLower(name[1:])} {
			if got, err := ParseLevel(text); got != level || err != nil {
				t.Errorf("ParseLevel(%q) = %v, %v; want %v", text, got, err, level)
			}
		}
	}
	for _, text := range []string{"", "P2C", "p2c", "X", "NV18", "PIXX", "PI", " PIX", "PIX\n", "1", "SYSTEM"} {
		got, err := ParseLevel(text)
		if got != Unknown || err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("ParseLevel(%q) = %v, %v; want an error with the text", text, got, err)
		}
	}
}

func TestNearest(t *testing.T) {
	tests := []struct {
		name   string
		levels []bound
		want   Level
	}{
		{"none", nil, Unknown},
		{"one", []bound{exactly(NODE)}, NODE},
		{"the farthest", []bound{exactly(SYS)}, SYS},
		{"the nearest of several", []bound{exactly(SYS), exactly(PXB), exactly(PHB)}, PXB},
		{"the nearest first", []bound{exactly(PIX), exactly(SYS)}, PIX},
		{"none is known", []bound{atLeast(PIX), atLeast(NODE)}, Unknown},
		{"one that is not known may be nearer", []bound{exactly(NODE), atLeast(PIX)}, Unknown},
		{"one that is not known may be as near at the most", []bound{exactly(NODE), atLeast(NODE)}, NODE},
		{"one that is not known is farther", []bound{exactly(PIX), atLeast(NODE)}, PIX},
		{"nothing is nearer than PIX", []bound{atLeast(PIX), exactly(PIX)}, PIX},
		{"the nearest of those not known counts", []bound{exactly(PHB), atLeast(NODE), atLeast(PXB)}, Unknown},
	}
	for _, tt := range tests {
		if got := surely(tt.levels); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// nearest knows the answer exactly when all possible values of the unknown levels
// give the same one.
func TestNearestIsProven(t *testing.T) {
	var choices []bound
	for level := PIX; level <= SYS; level++ {
		choices = append(choices, exactly(level))
		if level < SYS { // a level that is SYS at the least is known
			choices = append(choices, atLeast(level))
		}
	}
	for _, a := range choices {
		for _, b := range choices {
			for _, c := range choices {
				if got, want := surely([]bound{a, b, c}), proven(a, b, c); got != want {
					t.Errorf("%+v, %+v, %+v: %v, want %v", a, b, c, got, want)
				}
			}
		}
	}
}

// surely is the smallest level, Unknown where one of unknown level may be nearer.
func surely(levels []bound) Level {
	level, _, open := nearest(levels, nil)
	if open {
		return Unknown
	}
	return level
}

// proven tries all possible values of three levels.
func proven(a, b, c bound) Level {
	last := func(s bound) Level {
		if s.level == Unknown {
			return SYS
		}
		return s.level
	}
	answer := Unknown
	for x := a.floor; x <= last(a); x++ {
		for y := b.floor; y <= last(b); y++ {
			for z := c.floor; z <= last(c); z++ {
				switch nearest := min(x, y, z); answer {
				case Unknown, nearest:
					answer = nearest
				default:
					return Unknown
				}
			}
		}
	}
	return answer
}
