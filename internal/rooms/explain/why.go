package explain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdr-features/topology"
	"gdr-features/topology/nccl"
	"gdr-features/tristate"
)

const (
	fileUnread = "the machine has an NCCL topology file that cannot be read"
	truncated  = "; NCCL truncates an address whose PCI domain has more than 16 bits, finds no function there and takes CPU -1"
)

// why returns the rule that the level follows from, with this pair's facts.
func (w *path) why() string {
	common := w.g.CommonBridges(w.n)
	switch {
	case w.r.Matrix.FileUnread:
		return fileUnread
	case w.pair.FromFile:
		return "the NCCL topology file says so; it knows only switches and NUMA nodes"
	case w.g.RootBus == "":
		return fmt.Sprintf("the place of %v in the device tree cannot be read", w.g.Address)
	case w.n.RootBus == "":
		return fmt.Sprintf("the place of %v in the device tree cannot be read", w.n.Address)
	case w.n.OverC2C():
		return fmt.Sprintf("%v is attached over NVLink-C2C, and its place on the PCI bus does not say how near it is", w.n.Address)
	case common > 0:
		return w.whyBridge(common)
	case w.g.RootBus == w.n.RootBus:
		return fmt.Sprintf("both are on the root bus %s without a common bridge: the path leads through its host bridge", w.g.RootBus)
	}
	return w.whyNode()
}

func (w *path) whyBridge(common int) string {
	rule := "at most one on each side makes PIX"
	if w.pair.Level == topology.PXB {
		rule = "more than one on a side makes PXB"
	}
	left := "bridges are"
	if len(w.g.Bridges)-common == 1 {
		left = "bridge is"
	}
	return fmt.Sprintf("the deepest common bridge is %v; below it %d %s left on the GPU's side and %d on the NIC's: %s",
		w.g.Bridges[common-1], len(w.g.Bridges)-common, left, len(w.n.Bridges)-common, rule)
}

func (w *path) whyNode() string {
	buses := fmt.Sprintf("the root buses differ, %s and %s", w.g.RootBus, w.n.RootBus)
	a, b := w.g.NearNUMA, w.n.NearNUMA
	switch {
	case w.pair.Level == topology.Unknown:
		return buses + ", and numa_node does not say which NUMA nodes they belong to"
	case a >= 0 && b >= 0 && a != b:
		return fmt.Sprintf("%s, and so do the NUMA nodes, %d and %d", buses, a, b)
	case a >= 0 && a == b:
		return fmt.Sprintf("%s, on the same NUMA node %d", buses, a)
	}
	return buses + ", on the one NUMA node that this machine has"
}

// ncclWhy returns NCCL's own rule with this pair's facts, and why its rating differs.
func (w *path) ncclWhy() string {
	m := &w.r.Matrix
	g, n := m.NCCL.Place(nccl.Itself(w.gpu)), m.NCCL.Place(m.InNCCL[w.pair.NIC])
	var text string
	switch w.pair.NCCL {
	case topology.Unknown:
		return w.ncclUnknown()
	case topology.P2C:
		text = "the GPU reaches its CPU by NVLink-C2C, no NIC is nearer to the GPU, and the CPU reaches this NIC by PCIe"
	case topology.PIX, topology.PXB:
		text = ncclSwitches(w.pair, g, n)
	case topology.PHB:
		text = fmt.Sprintf("both are attached to the CPU of NUMA node %s without a common switch%s", g.CPU, w.ncclPHB(g, n))
	case topology.SYS:
		text = fmt.Sprintf("they are attached to the CPUs of NUMA nodes %s and %s", g.CPU, n.CPU)
		if w.wide() {
			text += truncated
		}
	case topology.NODE: // NCCL has none
	}
	switch named := w.inFile(); {
	case w.pair.FromFile:
		text = "the topology file says so"
	case named != "" && n.Net == "":
		text = fmt.Sprintf("NCCL takes the place of %s from the topology file, and that of the other device from the PCI tree", named)
	}
	return text + w.standIn(n)
}

// inFile names the one device that is in the topology file, "" for both or neither.
func (w *path) inFile() string {
	gpu, nic := w.r.Matrix.File.Find(w.g) != nil, w.r.Matrix.File.Find(w.n) != nil
	switch {
	case gpu && !nic:
		return "the GPU"
	case nic && !gpu:
		return "the NIC"
	}
	return ""
}

// standIn says which function's place NCCL uses for the NIC's, "" for its own.
func (w *path) standIn(n nccl.Place) string {
	switch f := n.Function; {
	case !n.Known:
		return ""
	case n.Net != "":
		return fmt.Sprintf("; NCCL finds the NIC in the topology file by the name %s, wherever its function is", n.Net)
	case f == nil:
		return "; NCCL looks for device 0, function 0 of the NIC's bus, finds none, and uses the first CPU"
	case f.DataDirectOf != nil:
		return fmt.Sprintf("; NCCL 2.27.3 and newer uses the place of the NIC's data-direct function %v", f.Address)
	case f.Address.Device != w.n.Address.Device:
		return fmt.Sprintf("; NCCL takes the place of %v, device 0, function 0 of the NIC's bus", f.Address)
	}
	return ""
}

func (w *path) wide() bool {
	return w.gpu.Address.Domain > 0xffff || w.nic.Function.Address.Domain > 0xffff
}

func (w *path) ncclUnknown() string {
	if w.r.Matrix.FileUnread {
		return fileUnread
	}
	if why := w.r.Matrix.NCCL.Failed; why != nil {
		if errors.Is(why, nccl.ErrStale) {
			return "NCCL may not start: " + why.Error()
		}
		return "NCCL does not start: " + why.Error()
	}
	if w.nic.RDMA != nil && w.nic.RDMA.Auxiliary {
		return "the RDMA device belongs to an auxiliary device, not to a PCI device: NCCL puts it on the first CPU that it knows"
	}
	if w.r.Matrix.UnmatchedDataDirect(w.n) {
		return "NCCL 2.27.3 and newer uses the place of the NIC's data-direct function; the VPD tells which that is, and only root may read it"
	}
	return "the place or the NUMA node of one of them cannot be read"
}

func ncclSwitches(pair topology.Pair, g, n nccl.Place) string {
	meet := ""
	for i := 0; i < len(g.Switches) && i < len(n.Switches) && g.Switches[i] == n.Switches[i]; i++ {
		meet = g.Switches[i]
	}
	text, where := "both are attached to one switch", ", the one with the upstream port "+meet
	if pair.NCCL == topology.PXB {
		text, where = "the path leads through several switches and no CPU", "; they meet in the one with the upstream port "+meet
	}
	if meet != "" {
		text += where
	}
	merged := slices.Concat(g.Merged, n.Merged)
	slices.Sort(merged)
	if merged = slices.Compact(merged); len(merged) > 0 {
		text += "; NCCL counts both levels of a Broadcom chip as one switch, here " + strings.Join(merged, " and ")
	}
	return text
}

// ncclPHB says why NCCL rates PHB what nvidia-smi rates otherwise.
func (w *path) ncclPHB(g, n nccl.Place) string {
	switch {
	case w.wide():
		return truncated
	case g.CPU == "-1":
		return "; numa_node is -1, which NCCL treats as a CPU of its own"
	case w.pair.Level == topology.NODE:
		return "; NCCL has no NODE"
	case w.pair.Level != topology.PIX && w.pair.Level != topology.PXB:
		return ""
	case w.g.CommonBridges(w.n) == 1 && n.Function == w.n:
		return "; to NCCL, a root port is not a switch"
	}
	return ""
}

// byDefault reports whether NCCL uses GPUDirect RDMA here with its default settings.
func (w *path) byDefault() (tristate.State, string) {
	switch {
	case !w.gpu.GPUEligible():
		return tristate.False, "no: " + w.gpu.GPU.Help.Vendor + " does not support GPUDirect RDMA on this GPU"
	case w.nic.Excluded():
		return tristate.Unknown, "not judged: this NIC is excluded (--nic-exclude)"
	case !w.nic.Counts():
		return tristate.Unknown, "not judged: this NIC is not eligible"
	case w.nic.Function != nil && w.r.Matrix.Refuses(w.nic.Function.NIC) == tristate.True:
		return tristate.False, "no: machines of type " + w.r.Matrix.Machine.Product.Value + " cannot do GPUDirect RDMA with this NIC"
	case w.pair.Allowed == tristate.False:
		return tristate.False, "no: on this CPU the " + w.gpu.GPU.Help.Vendor + " driver maps GPU memory only for a NIC below a common PCIe bridge"
	case w.pair.Default == tristate.True:
		return tristate.True, "yes, with its default settings (NCCL_NET_GDR_LEVEL is PXB, P2C on Grace)"
	case w.pair.Default == tristate.Unknown:
		return tristate.Unknown, "not known"
	}
	if w.r.Matrix.VFAside(w.pair) {
		return tristate.False, "not with its default settings; NCCL_IB_MERGE_VFS=0 makes NCCL look for this virtual function itself, as the topology file has it"
	}
	return tristate.False, "not with its default settings; " + instead(w.r, w.pair)
}

func (w *path) notes(hops []Hop) []string {
	var notes []string
	say := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if w.n != w.nic.Function {
		say("%v is a virtual function: it has the place of its physical function %v", w.nic.Function.Address, w.n.Address)
	}
	if w.nic.Role != "" {
		say("this NIC is for %s traffic by its PCI ids: where there are others, env leaves it out", w.nic.Role)
	}
	if w.g != w.gpu {
		say("%v is a virtual function: it has the place of its physical function %v", w.gpu.Address, w.g.Address)
	}
	if w.gpu.Coherent() {
		say("the GPU is attached to its CPU by NVLink-C2C too")
	}
	if w.r.Matrix.Origin == topology.Virtual {
		say("this is the PCI tree that the hypervisor shows; the host's may differ")
		if nic := w.n.NIC; nic != nil && nic.NCCLPlugin != nil && !w.pair.FromFile {
			say("in a job, NCCL may rate this otherwise: its plugin %s brings a topology file or makes one at run time", nic.NCCLPlugin.Name)
		}
	}
	if w.pair.FromFile {
		say("the hops are from the PCI tree, the levels from the topology file %s", w.r.Matrix.File.Name)
	}
	if redirecting := redirects(hops); len(redirecting) > 0 && w.g.CommonBridges(w.n) > 0 {
		say("ACS redirects peer-to-peer traffic to the root complex at %s", strings.Join(redirecting, " "))
	}
	if l := w.g.Link; l != nil && l.Speed > 0 && l.Speed < l.MaxSpeed {
		say("an idle GPU lowers the speed of its link: look again under load before calling %gGT/s a fault", l.Speed)
	}
	return notes
}

// redirects names the ports right below the turn that redirect peer-to-peer traffic.
func redirects(hops []Hop) []string {
	var list []string
	turn := slices.IndexFunc(hops, func(h Hop) bool { return h.Turn })
	for i, h := range hops {
		crossing := i == turn-1 || i == turn+1 // others go up anyway, see topology.GPU.Crossing
		if crossing && h.Function != nil && h.Function.ACS != nil && h.Function.ACS.Redirect() {
			list = append(list, h.Name)
		}
	}
	return list
}
