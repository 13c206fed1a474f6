package findings

import (
	"gdr-features/internal/finding"
	"gdr-features/source/kmod"
	"gdr-features/verdict"
)

// What checks of other packages share with those of a node.

// Names of checks: whether NCCL uses GPUDirect RDMA by default, and what is expected of the machine.
const (
	NCCLDefault = "nccl-default"
	Expected    = "expected"
)

// SawFact is evidence of what the file of a fact held; nothing where it was not read.
func SawFact(node *verdict.Node, fact kmod.Fact, value string) []string {
	return judgedOf(node).saw(fact, value)
}

// WriteOnly reports whether a GPU's nearest NIC is behind a CPU that forwards writes alone.
func WriteOnly(node *verdict.Node) bool {
	return writeOnly(judgedOf(node)).Any()
}

// BeyondDefault says that a GPU has no NIC with which NCCL uses GPUDirect RDMA by default.
func BeyondDefault(node *verdict.Node) finding.Said { return beyondDefault(judgedOf(node)) }

func judgedOf(node *verdict.Node) *judged { return &judged{Pair: node.Judged()} }
