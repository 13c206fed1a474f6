package findings

import (
	"slices"

	"gdr-features/source/kmod"
	"gdr-features/source/rdma"
	"gdr-features/verdict"
)

// What checks of other packages share with those of a node.

// Insert adds findings about something else to those of All, before those of expectations.
func Insert(all, more []Finding) []Finding {
	at := slices.IndexFunc(all, func(f Finding) bool { return f.Check == expectedCheck.Name })
	if at < 0 {
		at = len(all)
	}
	return slices.Insert(all, at, more...)
}

// PortState is the state of a port that is not active, or not known to be: "DOWN (Polling)".
func PortState(p rdma.Port) string { return portState(p) }

// SawPort is evidence of the state of a port.
func SawPort(d *rdma.Device, p rdma.Port) string { return sawPort(d, p) }

// SawFact is evidence of what the file of a fact held; nothing where it was not read.
func SawFact(node *verdict.Node, fact kmod.Fact, value string) []string {
	return judgedOf(node).saw(fact, value)
}

// SawMachine is evidence of the names of the machine.
func SawMachine(node *verdict.Node) []string { return machineNames(judgedOf(node)) }

// ThroughClientCPU reports whether a GPU's nearest NIC is reached through the root complex of a
// processor that forwards writes alone.
func ThroughClientCPU(node *verdict.Node) bool {
	return writeOnly(judgedOf(node)).Any()
}

func judgedOf(node *verdict.Node) *judged { return &judged{Pair: node.Judged()} }
