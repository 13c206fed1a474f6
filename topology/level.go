// Package topology says how near each GPU of a machine is to each RDMA NIC, as nvidia-smi and as
// NCCL rate them, and which are nearest. It is pure: facts in, levels out.
package topology

import (
	"fmt"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/topology/nccl"
)

// Level is the distance between a GPU and a NIC; nearer is smaller.
type Level uint8

// Levels, as `nvidia-smi topo -m` names them. NCCL has P2C and no NODE (src/graph/topo.h).
const (
	Unknown Level = iota
	PIX           // at most one PCIe switch between them
	PXB           // several PCIe switches, no host bridge
	P2C           // over the GPU's NVLink-C2C to its CPU, then PCIe (Grace)
	PHB           // a PCIe host bridge, usually the CPU
	NODE          // several host bridges of one NUMA node
	SYS           // the interconnect between NUMA nodes
)

var levelOf = [...]Level{nccl.PIX: PIX, nccl.PXB: PXB, nccl.P2C: P2C, nccl.PHB: PHB, nccl.SYS: SYS}

var levelNames = [...]string{"", "PIX", "PXB", "P2C", "PHB", "NODE", "SYS"}

// String is the level's name, "" for Unknown.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return ""
}

// Rank orders levels, the nearest first: an unknown one comes last.
func (l Level) Rank() Level {
	if l == Unknown {
		return SYS + 1
	}
	return l
}

// MarshalText implements encoding.TextMarshaler with the text of String.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// ParseLevel reads one of the levels that nvidia-smi has, in upper or lower case.
func ParseLevel(s string) (Level, error) {
	for l, name := range levelNames {
		if l != int(Unknown) && l != int(P2C) && strings.EqualFold(name, s) {
			return Level(l), nil
		}
	}
	return Unknown, fmt.Errorf("%q is not a level; levels are PIX, PXB, PHB, NODE and SYS", s)
}

// bound is what is known of a level: itself, or Unknown and the smallest that it may be.
type bound struct {
	level Level
	floor Level
}

func exactly(l Level) bound { return bound{l, l} }

func atLeast(l Level) bound { return bound{Unknown, l} }

// nearest returns the smallest level of those that count, nil for all, and which have it: those of
// unknown level where all are. open: one of unknown level may be nearer.
func nearest(levels []bound, counts func(int) bool) (level Level, at []int, open bool) {
	floor := SYS + 1
	for i, l := range levels {
		if counts != nil && !counts(i) {
			continue
		}
		if l.level == Unknown {
			floor = min(floor, l.floor)
		}
		switch {
		case len(at) == 0 || l.level.Rank() < level.Rank():
			level, at = l.level, []int{i}
		case l.level == level:
			at = append(at, i)
		}
	}
	return level, at, floor < level.Rank()
}

// sysfsLevel rates two functions by their places in the kernel's device tree:
// their root buses, the bridges above them, their NUMA nodes.
func sysfsLevel(gpu, nic *pci.Function, oneNode bool) bound {
	if gpu.RootBus == "" || nic.RootBus == "" || nic.OverC2C() {
		return atLeast(PIX)
	}
	if common := gpu.CommonBridges(nic); common > 0 {
		if len(gpu.Bridges)-common <= 1 && len(nic.Bridges)-common <= 1 {
			return exactly(PIX)
		}
		return exactly(PXB)
	}
	switch a, b := gpu.NearNUMA, nic.NearNUMA; {
	case gpu.RootBus == nic.RootBus:
		return exactly(PHB)
	case a >= 0 && a == b:
		return exactly(NODE)
	case a >= 0 && b >= 0:
		return exactly(SYS)
	case oneNode:
		return exactly(NODE)
	}
	return atLeast(NODE)
}
