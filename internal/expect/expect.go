// Package expect compares a machine with what its owner expects of machines of its type: eight
// GPUs, eight NICs at PIX, MOFED 24.10 or newer (docs/expect.md). It is pure. What depends on a
// fact that could not be read is unknown.
package expect

import (
	"slices"

	"gdr-features/source/kmod"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// File is what is expected of the machines of a fleet.
type File struct {
	// Types are the types of machines. The first that matches is the machine's.
	Types []Type
}

// Type is what is expected of one type of machine.
type Type struct {
	Name   string
	Match  Match
	Expect Expectations
}

// Match says how to recognise a machine of the type: all of it must hold. A list
// holds alternatives; an empty list matches anything. The zero value matches every
// machine that has an NVIDIA or AMD GPU.
type Match struct {
	// Product, Vendor and Board are names that the firmware gives the machine.
	Product, Vendor, Board []Pattern
	// GPU and NIC are products of which the machine has at least one.
	GPU, NIC []Pattern
	// Topology is the value of the label gdr.topology.
	Topology []topology.Origin
}

func (m *Match) firmware() bool { return len(m.Product)+len(m.Vendor)+len(m.Board) > 0 }

func (m *Match) any() bool {
	return !m.firmware() && len(m.GPU)+len(m.NIC)+len(m.Topology) == 0
}

// Expectations are what is expected. An empty field, or one of the zero value, expects nothing.
type Expectations struct {
	GPUs, NICs []Group
	// Level is the largest that any GPU may have with its nearest NICs (topology.Usable).
	Level topology.Level
	// NearestRate is the rate in Gbit/s of an active port of each GPU's nearest NICs.
	NearestRate Range
	// Driver is the GPU driver's version. Modules is "open" or "closed" (proprietary).
	Driver  Versions
	Modules string
	// MOFED is its version, or Inbox: the kernel's own drivers.
	MOFED Versions
	Inbox bool
	// Mechanism is "peermem", "dmabuf", "either" or "both".
	Mechanism string
	// IOMMU and ACS are the values that the labels may have.
	IOMMU, ACS []string
	// Ready is "true" or "false".
	Ready string
}

// Group is the GPUs, or the NICs, of one product, or all of them.
type Group struct {
	// Model picks the members; empty for all.
	Model []Pattern
	Count Range
	// FullLink: the PCI Express link of each card runs with as many lanes as both
	// ends have and, for NICs, as fast as both ends can; see pci.FullLink.
	FullLink bool

	// What follows is for NICs only.

	// ActivePorts counts ports that carry traffic. LinkLayer and Rate (Gbit/s) hold for each.
	ActivePorts Range
	LinkLayer   string
	Rate        Range
	Firmware    Versions
}

// Result is how a machine compares.
type Result struct {
	// State is true when all is proven to be met, false when something is proven not to be.
	State tristate.State
	// Type is the name of the machine's type, "" when none matches or it is not known.
	Type string
	// NoType: it is proven that no type matches.
	NoType bool
	// Machine describes the machine in the words of match.
	Machine string
	// Checks are the expectations, one by one.
	Checks []Check
}

// Check is one expectation.
type Check struct {
	// Name is the key in the file: "gpus.count", "mofed".
	Name  string
	State tristate.State
	// Expected and Found are words for people: "8 GPUs", "7".
	Expected, Found string
	// Fix is what to do when it is not met, as of a finding.
	Fix []string
	// Sources are the files it was read from, Facts those of whose files there is a record.
	Sources []string
	Facts   []kmod.Fact
}

// Deviations names the violated expectations, each once.
func (r *Result) Deviations() []string {
	var names []string
	for _, c := range r.Checks {
		if c.State == tristate.False && !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}
