package pod

import (
	"slices"

	"gdr-features/internal/finding"
	"gdr-features/internal/findings"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// virtualFunctions judges NCCL's default where the container has NCCL_IB_MERGE_VFS=0, in place of
// the node's finding: NCCL then looks for each virtual function where the topology file has it.
var virtualFunctions = check{
	Name: findings.NCCLDefault, Sources: []string{pci.Devices}, Codes: []finding.Code{"BeyondNCCLDefault"},
	Judge: func(f *judged) finding.Said {
		unmerged := frameworks.Zero(f.Pod.Environment.Variables[frameworks.MergeVFs])
		switch {
		case !unmerged, f.Matrix.Usable.NCCLDefault != tristate.False, !slices.ContainsFunc(f.Matrix.Pairs, f.Matrix.VFAside):
			return finding.Said{}
		case f.nearUnmerged():
			return finding.OK("%s looks for each virtual function where the topology file has it, because of "+
				frameworks.MergeVFs+"=0", f.GPU.Help.Library).Saw(f.sawVariable(frameworks.MergeVFs)...)
		}
		return findings.BeyondDefault(f.Node)
	},
}

// nearUnmerged: with the variable, NCCL uses GPUDirect RDMA with some NIC of every GPU by default.
func (f *judged) nearUnmerged() bool {
	near := func(p topology.Pair) bool { return p.Default == tristate.True || f.Matrix.VFAside(p) }
	for gpu := range f.Matrix.GPUs {
		if f.Matrix.GPUs[gpu].Counts() && !slices.ContainsFunc(f.Matrix.PairsOf(gpu), near) {
			return false
		}
	}
	return true
}
