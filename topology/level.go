// Package topology tells how far each GPU is from each NIC, in the
// words of nvidia-smi and in those of NCCL. It is pure: facts in, levels out.
package topology

import (
	"fmt"
	"strings"
)

// Level is the distance between a GPU and a NIC, the nearer the smaller.
type Level uint8

// Levels, as `nvidia-smi topo -m` names them. P2C is a word of NCCL's alone,
// and NODE one that NCCL does not have.
const (
	Unknown Level = iota
	PIX           // at most one PCIe switch between them
	PXB           // several PCIe switches, no host bridge
	P2C           // over the GPU's NVLink-C2C to its CPU, then PCIe (Grace)
	PHB           // a PCIe host bridge, as a rule the CPU
	NODE          // several host bridges of one NUMA node
	SYS           // the interconnect between NUMA nodes
)

var levelNames = [...]string{"", "PIX", "PXB", "P2C", "PHB", "NODE", "SYS"}

// String is the level's name, "" for Unknown.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return ""
}

// MarshalText implements encoding.TextMarshaler with the text of String.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// ParseLevel reads one of the levels that `gdr.level` can have.
func ParseLevel(s string) (Level, error) {
	for l, name := range levelNames {
		if l != int(Unknown) && l != int(P2C) && strings.EqualFold(name, s) {
			return Level(l), nil
		}
	}
	return Unknown, fmt.Errorf("%q is not a level; levels are PIX, PXB, PHB, NODE and SYS", s)
}

// bound is what is known of a level: the level itself, or how near it may be at
// the most when it is not known.
type bound struct {
	level Level
	floor Level
}

func exactly(l Level) bound { return bound{l, l} }

func atLeast(l Level) bound { return bound{Unknown, l} }

// nearest is the smallest of some levels, Unknown when one that is not known
// could be smaller, or when there are none.
func nearest(bounds []bound) Level {
	best, floor := SYS+1, SYS+1
	for _, s := range bounds {
		if s.level == Unknown {
			floor = min(floor, s.floor)
		} else {
			best = min(best, s.level)
		}
	}
	if best > SYS || floor < best {
		return Unknown
	}
	return best
}
