package topology

import (
	"slices"
	"strconv"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// Attribute is a standard attribute of DRA devices by which a claim can match a GPU and a NIC,
// without its domain.
type Attribute string

// Attributes, the narrowest first. NoAttribute stands for a machine that neither of them serves.
const (
	PCIeRoot    Attribute = "pcieRoot"
	NUMANode    Attribute = "numaNode"
	NoAttribute Attribute = "none"
)

// Of returns the value of an attribute that DRA drivers publish for a function, as they read
// it from sysfs: "pci0000:15", "1"; "" for none. known is false if what it follows from could
// not be read.
//
// Source: k8s.io/dynamic-resource-allocation v0.37.2, deviceattribute, pci_linux.go and
// numa_linux.go. Addresses with a domain of more than four digits have neither attribute. The
// root is the first directory of the function's path below /sys/devices, and must begin with
// "pci". A numa_node of -1 is not published.
func (a Attribute) Of(f *pci.Function) (value string, known bool) {
	switch {
	case !Published(f.Address):
		return "", true
	case a == PCIeRoot && strings.HasPrefix(f.Top, "pci"):
		return f.Top, true
	case a == PCIeRoot:
		return "", f.RootBus != ""
	case a == NUMANode && f.NUMA >= 0:
		return strconv.Itoa(f.NUMA), true
	case a == NUMANode:
		return "", f.NUMA == pci.None
	}
	return "", true
}

// Published reports whether an address has the form that standard attributes demand: a
// domain of four digits.
func Published(a pci.Address) bool { return a.Domain <= 0xffff }

// Same reports whether two functions have the same value of the attribute.
func (a Attribute) Same(f, g *pci.Function) tristate.State {
	of, known := a.Of(f)
	other, otherKnown := a.Of(g)
	switch {
	case known && of == "", otherKnown && other == "":
		return tristate.False
	case !known || !otherKnown:
		return tristate.Unknown
	}
	return tristate.Of(of == other)
}

// serves reports whether every eligible GPU has one of the NICs with the same value of the
// attribute. Several GPUs may have the same NIC: how many pairs can be allocated at the same
// time is another question.
func (a Attribute) serves(m *Matrix, nics []*pci.Function) tristate.State {
	all := tristate.True
	for _, gpu := range m.GPUs {
		if !gpu.Counts() {
			continue
		}
		one := tristate.False
		for _, f := range nics {
			one = tristate.Or(one, a.Same(gpu.Function, f))
		}
		all = tristate.And(all, one)
	}
	return all
}

// Align returns the narrowest attribute by which every eligible GPU of a machine can be
// matched with an eligible NIC that counts; "" where that is not known, and where there is no such
// GPU or NIC. All count where counts is nil.
func (m *Matrix) Align(bus *pci.Inventory, counts func(*pci.Function) bool) Attribute {
	if !m.Complete || m.EligibleGPUs == 0 || m.EligibleNICs == 0 {
		return ""
	}
	nics := slices.DeleteFunc(eligibleNICs(bus), func(f *pci.Function) bool { return counts != nil && !counts(f) })
	for _, a := range [...]Attribute{PCIeRoot, NUMANode} {
		switch a.serves(m, nics) {
		case tristate.True:
			return a
		case tristate.Unknown:
			return ""
		case tristate.False:
		}
	}
	return NoAttribute
}
