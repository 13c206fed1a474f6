package resourceslice

import (
	"cmp"
	"slices"

	"gdr-features/internal/dradriver"
	"gdr-features/internal/nodes"
)

// The ways in which a claim can match a GPU with a NIC: by the standard attribute of this
// name, which both must have in common, or by address, where the claim names both.
const (
	byRoot    = "pcieRoot"
	byNUMA    = "numaNode"
	byAddress = "address"
)

var ways = [...]string{byRoot, byNUMA, byAddress}

// Match tells what claims of a GPU and a NIC can get in one of the ways.
type Match struct {
	// GPUs is how many have a NIC with the same attribute; by address, their nearest NIC.
	GPUs int `json:"gpus"`
	// Pairs is how many of them can have such a NIC of their own at the same time.
	Pairs int `json:"pairs"`
	// Level is the farthest that such a pair can have; "" for no pair, or if one is not known.
	Level string `json:"level"`
}

// levels, the nearest first.
var levels = []string{"PIX", "PXB", "PHB", "NODE", "SYS"}

func (c *comparison) match() {
	for _, way := range ways {
		can := c.nearest
		if attribute := dradriver.Standard + way; way != byAddress {
			can = func(gpu, nic *Device) bool { return share(gpu.Attributes[attribute], nic.Attributes[attribute]) }
		}
		m, alone := c.matchBy(can)
		c.Matches[way] = m
		if way == byRoot {
			c.alone = alone
		}
	}
}

// share reports whether two devices have a value of an attribute in common, as matchAttribute
// demands (KEP-5491; with one value each, the same value). A driver may publish "" for a value
// that it does not know.
func share(a, b []string) bool {
	return slices.ContainsFunc(a, func(value string) bool { return value != "" && slices.Contains(b, value) })
}

// level returns the rank of the level of a pair, the nearest 0; -1 if it is not known.
func (c *comparison) level(gpu, nic *Device) int {
	if c.Agent.Hardware == nil {
		return -1
	}
	return slices.Index(levels, c.Agent.Hardware.Levels[nodes.Pair{GPU: gpu.address, NIC: nic.address}])
}

// nearest reports whether no NIC that is published is nearer to the GPU.
func (c *comparison) nearest(gpu, nic *Device) bool {
	level := c.level(gpu, nic)
	return level >= 0 && !slices.ContainsFunc(c.nics, func(other *Device) bool {
		l := c.level(gpu, other)
		return l >= 0 && l < level
	})
}

// matchBy also returns the GPUs without a NIC.
func (c *comparison) matchBy(can func(gpu, nic *Device) bool) (m Match, alone []string) {
	nicsOf := make([][]int, len(c.gpus))
	farthest, known := -1, true
	for g, gpu := range c.gpus {
		for n, nic := range c.nics {
			if !can(gpu, nic) {
				continue
			}
			nicsOf[g] = append(nicsOf[g], n)
			level := c.level(gpu, nic)
			farthest, known = max(farthest, level), known && level >= 0
		}
		if len(nicsOf[g]) == 0 {
			alone = append(alone, cmp.Or(gpu.address, gpu.Name))
		}
	}
	m.GPUs = len(c.gpus) - len(alone)
	if known && farthest >= 0 {
		m.Level = levels[farthest]
	}
	m.Pairs = mostPairs(nicsOf, len(c.nics))
	return m, alone
}

// mostPairs returns how many GPUs can have a NIC of their own at the same time: the size of
// a maximum matching, by augmenting paths. nicsOf are the NICs that each GPU can have.
func mostPairs(nicsOf [][]int, nics int) (pairs int) {
	owner := make([]int, nics) // the GPU that has the NIC, + 1
	var tried []bool
	var give func(gpu int) bool
	give = func(gpu int) bool {
		for _, nic := range nicsOf[gpu] {
			if tried[nic] {
				continue
			}
			tried[nic] = true
			if owner[nic] == 0 || give(owner[nic]-1) {
				owner[nic] = gpu + 1
				return true
			}
		}
		return false
	}
	for gpu := range nicsOf {
		tried = make([]bool, nics)
		if give(gpu) {
			pairs++
		}
	}
	return pairs
}
