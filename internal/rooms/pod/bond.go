package pod

import (
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/internal/version"
)

// ggaTransport is a transport of UCX 1.18 and newer, beside rc and dc.
const ggaTransport = "gga_mlx5"

// ucxBond: UCX's gga transport cannot connect the queue pair with which it registers memory on
// a bond of ports (RoCE LAG), and the program then ends with a segmentation fault
// (openucx/ucx#11709; not fixed in 1.22.0).
var ucxBond = check{
	Name: "ucx-bond", Codes: []finding.Code{"UCXOnBond"},
	Judge: func(f *judged) finding.Said {
		ucx, asked := f.ucxVersion()
		bonds := f.bonds()
		if !asked || !bonds.Any() {
			return finding.Said{}
		}
		said := finding.OK("UCX does not use gga on %s", bonds)
		has := ucx == "" || version.Compare(ucx, "1.18") >= 0 // as far as is known
		if has && frameworks.UCXSelects(f.Pod.Environment.Variables, ggaTransport) {
			said = finding.Warn("UCXOnBond", "UCX %s may crash when it registers memory with %s, a bond of "+
				"ports: its transport gga, of 1.18 and newer, cannot connect there", orUnknown(ucx), bonds).
				Do("set UCX_TLS=^gga in spec.containers[].env")
		}
		return said.Of(bonds).Saw(f.sawVariable(frameworks.UCXTransports)...)
	},
}

// bonds are the NICs in question that are bonds. Their driver names them so (kernel
// drivers/infiniband/hw/mlx5/main.c, mlx5_ib_stage_ib_reg_init); one that was renamed is not
// found.
func (f *judged) bonds() (bonds finding.Subjects) {
	for _, nic := range f.nicsInQuestion() {
		if strings.HasPrefix(nic.RDMA, "mlx5_bond_") {
			bonds.Add(nic.RDMA, "/sys/class/infiniband/"+nic.RDMA)
		}
	}
	return bonds
}

// ucxVersion returns the version of the UCX that frameworks of the image use, or the one that
// is asked for; "" for an unknown one.
func (f *judged) ucxVersion() (version string, asked bool) {
	for _, p := range f.frameworksInQuestion() {
		for _, q := range f.through(p) {
			if q.Name == "ucx" {
				return q.Version, true
			}
		}
	}
	return "", false
}
