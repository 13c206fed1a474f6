package features

import (
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/report"
	"gdr-features/topology"
)

// State returns the facts about a whole node in which the nodes of one job should be alike,
// and which no label has:
//   - kernel, the release of the running kernel; driverVersion, that of the GPU driver, and
//     driverOpen, whether it is the open kernel modules;
//   - findings, the codes of what is not as it should be, sorted, with "," between them.
func State(r *report.Report) map[string]string {
	a := Attrs{}
	driver := r.Kmod.Driver()
	a.Text("kernel", r.Platform.Kernel)
	a.Text("driverVersion", driver.Version)
	if driver.Version != "" {
		a.State("driverOpen", driver.Open)
	}
	var codes []string
	for _, f := range Findings(r) {
		if f.Wrong() {
			codes = append(codes, string(f.Code))
		}
	}
	slices.Sort(codes)
	a.Text("findings", strings.Join(slices.Compact(codes), ","))
	return a
}

// rails numbers the NICs that jobs use, from 0 on in the order of the matrix, which is that
// of addresses and names; -1 for all others: NICs that do not count, virtual functions beside
// their physical one, subfunctions, and those for other traffic, unless there is nothing else.
// It depends on hardware alone.
func rails(r *report.Report) []int {
	m := &r.Matrix
	numbered, count := make([]int, len(m.NICs)), 0
	for i := range m.NICs {
		n := &m.NICs[i]
		numbered[i] = -1
		if m.ForGPUs(i) && r.PCI.Physical(n.Function) == nil && (n.RDMA == nil || !n.RDMA.Auxiliary) {
			numbered[i] = count
			count++
		}
	}
	return numbered
}

// inUse adds what a port uses: mtu, the active MTU in bytes, and mtuFrom, where that is
// from; gidIndex, the entry of the GID table that NCCL chooses on RoCE.
func (a Attrs) inUse(r *report.Report, n *topology.NIC) {
	p := portOf(n.RDMA.Ports)
	if p == nil {
		return
	}
	a.Port(*p)
	if !p.Active() {
		return
	}
	if mtu, from := r.ActiveMTU(n.RDMA, p); mtu > 0 {
		a["mtu"], a["mtuFrom"] = strconv.Itoa(mtu), from
	}
	if i := p.RoCE.GIDIndex; i != nil {
		a.Number("gidIndex", *i)
	}
}
