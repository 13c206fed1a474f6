// Package dra tells by which attribute Kubernetes' Dynamic Resource Allocation can match the
// GPUs of a machine with its NICs, and writes the claim that does so. It does no I/O.
//
// DRA drivers publish a device's place in two standard attributes, pcieRoot and numaNode. A
// claim can demand that two devices have the same value of one of them, and nothing nearer:
// what is above the devices in the PCI tree has no attribute.
package dra

import (
	"strconv"
	"strings"

	"gdr-features/internal/dradriver"
	"gdr-features/source/pci"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Attribute is a standard device attribute by which a claim can match a GPU and a NIC,
// without its domain.
type Attribute string

// Attributes, the narrowest first. None stands for a machine that neither of them serves.
const (
	PCIeRoot Attribute = "pcieRoot"
	NUMANode Attribute = "numaNode"
	None     Attribute = "none"
)

// Name is the attribute's full name, "resource.kubernetes.io/pcieRoot".
func (a Attribute) Name() string { return dradriver.Standard + string(a) }

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
	case !published(f.Address):
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

// published reports whether an address has the form that standard attributes demand: a
// domain of four digits.
func published(a pci.Address) bool { return a.Domain <= 0xffff }

func (a Attribute) same(f, g *pci.Function) tristate.State {
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

// serves reports whether every eligible GPU has an eligible NIC with the same value of the
// attribute. counts says which of them count. Several GPUs may have the same NIC: how many
// pairs can be allocated at the same time is another question.
func (a Attribute) serves(node *verdict.Node, counts func(*pci.Function) bool) tristate.State {
	all := tristate.True
	for _, gpu := range node.Matrix.GPUs {
		if !gpu.Eligible {
			continue
		}
		one := tristate.False
		for j := range node.PCI.Functions {
			// Virtual functions come and go with software; their place is that of the physical one.
			if f := &node.PCI.Functions[j]; f.NICEligible() && node.PCI.Physical(f) == nil && counts(f) {
				one = tristate.Or(one, a.same(gpu.Function, f))
			}
		}
		all = tristate.And(all, one)
	}
	return all
}

// Align returns the narrowest attribute by which every eligible GPU of a machine can be
// matched with an eligible NIC; "" where that is not known, and where there is no such GPU
// or NIC.
func Align(node *verdict.Node) Attribute {
	return align(node, func(*pci.Function) bool { return true })
}

// align is Align with some of the NICs.
func align(node *verdict.Node, counts func(*pci.Function) bool) Attribute {
	if m := &node.Matrix; !m.Complete || m.EligibleGPUs == 0 || m.EligibleNICs == 0 {
		return ""
	}
	for _, a := range [...]Attribute{PCIeRoot, NUMANode} {
		switch a.serves(node, counts) {
		case tristate.True:
			return a
		case tristate.Unknown:
			return ""
		case tristate.False:
		}
	}
	return None
}
