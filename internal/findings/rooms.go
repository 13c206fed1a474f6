package findings

import (
	"slices"

	"gdr-features/internal/finding"
	"gdr-features/source/kmod"
	"gdr-features/source/rdma"
	"gdr-features/verdict"
)

// What checks of other packages share with those of a node.

// NCCLDefault is the name of the check whether NCCL uses GPUDirect RDMA by default.
const NCCLDefault = "nccl-default"

// Insert adds findings about something else to those of All, before those of expectations. One of
// a check that All has, too, stands in its place.
func Insert(all, more []finding.Finding) []finding.Finding {
	for _, f := range more {
		at := indexOf(all, f.Check)
		if at >= 0 {
			all[at] = f
			continue
		}
		if at = indexOf(all, expectedCheck.Name); at < 0 {
			at = len(all)
		}
		all = slices.Insert(all, at, f)
	}
	return all
}

func indexOf(all []finding.Finding, check string) int {
	return slices.IndexFunc(all, func(f finding.Finding) bool { return f.Check == check })
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

// WriteOnly reports whether a GPU's nearest NIC is reached through the root complex of a
// processor that forwards writes alone.
func WriteOnly(node *verdict.Node) bool {
	return writeOnly(judgedOf(node)).Any()
}

// BeyondDefault says that a GPU has no NIC with which NCCL uses GPUDirect RDMA by default.
func BeyondDefault(node *verdict.Node) finding.Said { return beyondDefault(judgedOf(node)) }

func judgedOf(node *verdict.Node) *judged { return &judged{Pair: node.Judged()} }
