// Package view has the words that all forms of output use for a machine. It is pure.
package view

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/show"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// wide is the most NICs that a matrix gives a column each, virtual functions too.
const wide = 24

// Folded reports whether a NIC, a virtual function in a wide matrix, has no column of its own.
func Folded(r *verdict.Node, n *topology.NIC) bool {
	return len(r.Matrix.NICs) > wide && n.Function != nil && r.PCI.Physical(n.Function) != nil
}

// NICName is what a matrix calls a NIC: its RDMA device, or its address.
func NICName(n *topology.NIC) string { return cmp.Or(n.Name(), Short(n.Address())) }

// Short omits the domain if it is 0000, as lspci does.
func Short(address string) string { return strings.TrimPrefix(address, "0000:") }

// Product is the name of a function's product, or its ids.
func Product(f *pci.Function) string {
	return cmp.Or(f.Name(), fmt.Sprintf("%04x:%04x", f.Vendor, f.Device))
}

// Driver is the bound driver, "-" for none, "?" where that cannot be read.
func Driver(f *pci.Function) string {
	if !f.DriverKnown {
		return "?"
	}
	return cmp.Or(f.Driver, "-")
}

// GPUNote says why a GPU is not eligible, "" where it is.
func GPUNote(g topology.GPU) string {
	if !g.Counts() {
		return "no GPUDirect RDMA on this product"
	}
	return ""
}

// NICNote returns the state of each port of a NIC, or says why there is none to show.
func NICNote(n *topology.NIC) string {
	switch {
	case n.NVLinkManagement():
		return "NVLink management, not read"
	case n.RDMA == nil && InNoTable(n):
		return "no RDMA device, " + inNoTable
	case n.RDMA == nil:
		return "no RDMA device"
	case !n.RDMA.PortsRead:
		return "ports not readable"
	}
	var notes []string
	for _, p := range n.RDMA.Ports {
		note := fmt.Sprintf("%d: %s %s", p.Number, cmp.Or(p.State, "?"), cmp.Or(p.LinkLayer, "?"))
		if p.RateGbps > 0 {
			note += " " + strconv.FormatFloat(p.RateGbps, 'f', -1, 64) + "G"
		}
		notes = append(notes, note)
	}
	switch aside := n.Aside(); {
	case aside != "":
		notes = append(notes, aside)
	case InNoTable(n):
		notes = append(notes, inNoTable)
	case !n.Counts():
		notes = append(notes, "not eligible")
	}
	return strings.Join(notes, ", ")
}

// inNoTable is said of a NIC of which no table tells anything.
const inNoTable = "in no table"

// InNoTable reports whether a NIC is one that stands in no row of a table.
func InNoTable(n *topology.NIC) bool {
	return n.Function != nil && n.Function.Other == family.Unlisted()
}

// Meanings explains the levels by their numbers; "" for a level that no matrix shows.
var Meanings = [...]string{
	topology.PIX:  "at most one PCIe switch between them",
	topology.PXB:  "several PCIe switches, no host bridge",
	topology.PHB:  "a PCIe host bridge, usually the CPU",
	topology.NODE: "several PCIe host bridges of one NUMA node",
	topology.SYS:  "the interconnect between NUMA nodes",
}

// Nothing says why a machine has no matrix, "" if it has one.
func Nothing(r *verdict.Node) string {
	switch {
	case len(r.Matrix.GPUs) == 0 && !r.PCIRead:
		return "The PCI bus cannot be read."
	case len(r.Matrix.GPUs) == 0:
		return "No " + vendors() + " GPU on this machine."
	case len(r.Matrix.NICs) == 0:
		return "No RDMA device and no RDMA NIC on this machine."
	}
	return ""
}

// vendors are those of the GPUs that are looked for, "NVIDIA or AMD".
func vendors() string {
	names := finding.Map(family.Known().GPUs, func(g *family.GPU) string { return g.Help.Vendor })
	return strings.Join(names, " or ")
}

// Summary returns the verdict in one line: after it, how many checks warn, and of what, and in how
// much the machine is not what is expected.
func Summary(r *verdict.Node, all []finding.Finding) string {
	return Verdict(r) + warnings(all) + deviations(all)
}

// deviations is ", 2 deviations from what is expected"; "" for none.
func deviations(all []finding.Finding) string {
	n := 0
	for i := range all {
		if all[i].Code == "Deviation" && all[i].Status == finding.StatusFail {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return ", " + show.Count(n, "deviation") + " from what is expected"
}

// warnings is ", 2 warnings (LinkDegraded, NearPortDown)"; "" for none.
func warnings(all []finding.Finding) string {
	const named = 2
	codes := Warnings(all)
	if len(codes) == 0 {
		return ""
	}
	text := strings.Join(codes[:min(len(codes), named)], ", ")
	if more := len(codes) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf(", %s (%s)", show.Count(len(codes), "warning"), text)
}

// Warnings are the codes of the checks that warn, one for each.
func Warnings(all []finding.Finding) (codes []string) {
	for i := range all {
		if all[i].Status == finding.StatusWarn {
			codes = append(codes, string(all[i].Code))
		}
	}
	return codes
}

// Verdict returns the verdict alone, in one line.
func Verdict(r *verdict.Node) string {
	v := &r.Verdict
	if v.Ready != tristate.True {
		state := finding.Choose(v.Ready, "", "not ready", "unknown")
		if v.Ready == tristate.False && v.Capable == tristate.False {
			state = "not possible on this machine"
		}
		return fmt.Sprintf("GPUDirect RDMA: %s (%s)", state, v.Reason)
	}
	var ways []string
	if v.Peermem == tristate.True {
		ways = append(ways, "peermem")
	}
	if v.DMABuf == tristate.True {
		ways = append(ways, "DMA-BUF")
	}
	line := "GPUDirect RDMA: ready by " + strings.Join(ways, " and ")
	switch r.Matrix.Usable.Level {
	case topology.Unknown:
		return line
	case topology.PIX:
		return line + ", every GPU has a NIC at PIX"
	default:
		return line + fmt.Sprintf(", every GPU has a NIC at %v or nearer", r.Matrix.Usable.Level)
	}
}
