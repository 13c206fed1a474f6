package findings

import (
	"strings"

	"gdr-features/internal/frameworks"
	"gdr-features/internal/version"
)

// ggaTransport is a transport of UCX 1.18 and newer, beside rc and dc.
const ggaTransport = "gga_mlx5"

// ucxBond: UCX's gga transport cannot connect the queue pair with which it registers memory on
// a bond of ports (RoCE LAG), and the program then ends with a segmentation fault
// (openucx/ucx#11709; not fixed in 1.22.0).
var ucxBond = check{name: "ucx-bond", rows: under(onBonds, sawBonds, []row{
	{
		status: Warn, code: "UCXOnBond", when: usesGGA,
		text: "UCX {ucxVersion} may crash when it registers memory with {bonds}, a bond of ports: its transport gga, of 1.18 and newer, cannot connect there",
		fix:  do("set UCX_TLS=^gga in spec.containers[].env"),
	},
	{status: OK, text: "UCX does not use gga on {bonds}"},
})}

// onBonds: UCX is in the image or asked for, and NICs are bonds. Their driver names them so
// (kernel drivers/infiniband/hw/mlx5/main.c, mlx5_ib_stage_ib_reg_init); one that was
// renamed is not found.
func onBonds(f *judged) bool {
	_, asked := ucxVersion(f)
	return asked && len(bonds(f)) > 0
}

func bonds(f *judged) (names []string) {
	for _, nic := range f.nicsInQuestion() {
		if strings.HasPrefix(nic.RDMA, "mlx5_bond_") {
			names = append(names, nic.RDMA)
		}
	}
	return names
}

func sawBonds(f *judged) (seen []string) {
	for _, name := range bonds(f) {
		seen = append(seen, "/sys/class/infiniband/"+name)
	}
	return append(seen, f.sawVariable(frameworks.UCXTransports)...)
}

// ucxVersion returns the version of the UCX that frameworks of the image use, or the one that
// is asked for; "" for an unknown one.
func ucxVersion(f *judged) (version string, asked bool) {
	for _, p := range f.frameworksInQuestion() {
		for _, q := range f.through(p) {
			if q.Name == "ucx" {
				return q.Version, true
			}
		}
	}
	return "", false
}

// usesGGA: UCX has the transport, as far as is known, and nothing in the environment deselects
// it.
func usesGGA(f *judged) bool {
	ucx, _ := ucxVersion(f)
	return (ucx == "" || version.Compare(ucx, "1.18") >= 0) && frameworks.UCXSelects(f.Pod.Environment.Variables, ggaTransport)
}
