package explain

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/topology"
	"gdr-features/tristate"
)

const fileUnread = "the machine has an NCCL topology file, which cannot be read"

// why gives the rule that makes the level, with this pair's facts.
func (w *way) why() string {
	common := w.g.CommonBridges(w.n)
	switch {
	case w.r.Matrix.FileUnread:
		return fileUnread
	case w.pair.FromFile:
		return "so the NCCL topology file has it, which knows switches and NUMA nodes alone"
	case w.g.RootBus == "":
		return fmt.Sprintf("the place of %v in the device tree cannot be read", w.g.Address)
	case w.n.RootBus == "":
		return fmt.Sprintf("the place of %v in the device tree cannot be read", w.n.Address)
	case common > 0:
		return w.whyBridge(common)
	case w.g.RootBus == w.n.RootBus:
		return fmt.Sprintf("no bridge is above both, and both stand on the root bus %s: the way leads through its host bridge", w.g.RootBus)
	}
	return w.whyNode()
}

func (w *way) whyBridge(common int) string {
	rule := "at most one on each side is PIX"
	if w.pair.Level == topology.PXB {
		rule = "more than one on a side is PXB"
	}
	return fmt.Sprintf("the deepest bridge above both is %v; below it %s on the GPU's side and %d on the NIC's: %s",
		w.g.Bridges[common-1], bridgesLeft(len(w.g.Bridges)-common), len(w.n.Bridges)-common, rule)
}

func bridgesLeft(n int) string {
	if n == 1 {
		return "1 bridge is left"
	}
	return fmt.Sprintf("%d bridges are left", n)
}

func (w *way) whyNode() string {
	buses := fmt.Sprintf("the root buses differ, %s and %s", w.g.RootBus, w.n.RootBus)
	a, b := w.g.NearNUMA, w.n.NearNUMA
	switch {
	case w.pair.Level == topology.Unknown:
		return buses + ", and numa_node does not tell which NUMA nodes they belong to"
	case a >= 0 && b >= 0 && a != b:
		return fmt.Sprintf("%s, and so do the NUMA nodes, %d and %d", buses, a, b)
	case a >= 0 && a == b:
		return fmt.Sprintf("%s, on the same NUMA node %d", buses, a)
	}
	return buses + ", on the one NUMA node that this machine has"
}

// ncclWhy gives NCCL's own rule with this pair's facts, and why the rating
// differs where it does.
func (w *way) ncclWhy() string {
	g, n := w.r.Matrix.InNCCL(&w.r.PCI, w.gpu), w.r.Matrix.InNCCL(&w.r.PCI, w.nic.Function)
	var text string
	switch w.pair.NCCL {
	case topology.Unknown:
		text = w.ncclUnknown()
	case topology.P2C:
		text = "the GPU reaches its CPU by NVLink-C2C, no NIC is nearer to it, and the CPU reaches this one by PCIe"
	case topology.PIX, topology.PXB:
		text = ncclSwitches(w.pair, g, n)
	case topology.PHB:
		text = fmt.Sprintf("both hang on the CPU of NUMA node %s and on no common switch%s", g.CPU, w.ncclPHB(g, n))
	case topology.SYS:
		text = fmt.Sprintf("they hang on the CPUs of NUMA nodes %s and %s", g.CPU, n.CPU)
		if w.wide() {
			text += "; NCCL cuts the address in a PCI domain of more than 16 bits, finds no function there and takes CPU -1"
		}
	case topology.NODE: // NCCL has none
	}
	if w.pair.NCCL == topology.Unknown {
		return text
	}
	switch named := w.inFile(); {
	case w.pair.FromFile:
		text = "so the topology file has it"
	case named != "":
		text = fmt.Sprintf("NCCL takes the place of %s from the topology file, and the other one's from the PCI tree", named)
	}
	return text + w.standIn(n)
}

// inFile names the one of both that stands in the topology file, "" where not
// just one does.
func (w *way) inFile() string {
	gpu, nic := w.r.Matrix.InFile(w.g), w.r.Matrix.InFile(w.n)
	switch {
	case gpu && !nic:
		return "the GPU"
	case nic && !gpu:
		return "the NIC"
	}
	return ""
}

// standIn tells whose place NCCL takes for the NIC's where that is another's.
func (w *way) standIn(n topology.NCCLPlace) string {
	switch f := n.Function; {
	case !n.Known:
		return ""
	case f == nil:
		return "; NCCL looks for device 0, function 0 of the NIC's bus, which is not there, and takes the first CPU"
	case f.DataDirectOf != nil:
		return fmt.Sprintf("; NCCL 2.27.3 and newer goes by the NIC's data-direct function %v", f.Address)
	case f.Address.Device != w.n.Address.Device:
		return fmt.Sprintf("; NCCL takes the place of %v, device 0, function 0 of the NIC's bus", f.Address)
	}
	return ""
}

// wide tells whether an address has a PCI domain of more than 16 bits.
func (w *way) wide() bool {
	return w.gpu.Address.Domain > 0xffff || w.nic.Function.Address.Domain > 0xffff
}

func (w *way) ncclUnknown() string {
	if w.r.Matrix.FileUnread {
		return fileUnread
	}
	if why := w.r.Matrix.NCCLFails(); why != nil {
		return "NCCL does not start: " + why.Error()
	}
	if w.nic.RDMA != nil && w.nic.RDMA.Auxiliary {
		return "the RDMA device is no PCI device itself but hangs on an auxiliary device: NCCL puts it on the first CPU it knows of"
	}
	return "the place or the NUMA node of one of them cannot be read"
}

func ncclSwitches(pair topology.Pair, g, n topology.NCCLPlace) string {
	meet := ""
	for i := 0; i < len(g.Switches) && i < len(n.Switches) && g.Switches[i] == n.Switches[i]; i++ {
		meet = g.Switches[i]
	}
	text, where := "both hang on one switch", ", that with the upstream port "+meet
	if pair.NCCL == topology.PXB {
		text, where = "the way leads through several switches and no CPU", "; they meet in the one with the upstream port "+meet
	}
	if meet != "" {
		text += where
	}
	merged := slices.Concat(g.Merged, n.Merged)
	slices.Sort(merged)
	if merged = slices.Compact(merged); len(merged) > 0 {
		text += "; NCCL takes both levels of a Broadcom chip for one switch, here " + strings.Join(merged, " and ")
	}
	return text
}

// ncclPHB tells why what nvidia-smi rates otherwise is PHB to NCCL.
func (w *way) ncclPHB(g, n topology.NCCLPlace) string {
	switch {
	case w.wide():
		return "; NCCL cuts an address in a PCI domain of more than 16 bits, finds no function there and takes CPU -1"
	case g.CPU == "-1":
		return "; numa_node is -1, which NCCL takes for a CPU of its own"
	case w.pair.Level == topology.NODE:
		return "; NCCL has no NODE"
	case w.pair.Level != topology.PIX && w.pair.Level != topology.PXB:
		return ""
	case w.g.CommonBridges(w.n) == 1 && n.Function == w.n:
		return "; a root port is no switch to NCCL"
	}
	return ""
}

// byDefault tells whether NCCL uses GPUDirect RDMA here without being told to,
// and why.
func (w *way) byDefault() (tristate.State, string) {
	switch {
	case !w.gpu.GPUEligible():
		return tristate.False, "no: NVIDIA does not support GPUDirect RDMA on this GPU"
	case !w.nic.Eligible:
		return tristate.Unknown, "not judged: this NIC does not count"
	case w.pair.Allowed == tristate.False:
		return tristate.False, "no: on this processor the NVIDIA driver maps GPU memory only for an adapter below a common PCIe bridge"
	case w.pair.Default == tristate.True:
		return tristate.True, "yes, with its default settings (NCCL_NET_GDR_LEVEL is PXB, P2C on Grace)"
	case w.pair.Default == tristate.Unknown:
		return tristate.Unknown, "not known"
	}
	return tristate.False, fmt.Sprintf("not with its default settings; NCCL_NET_GDR_LEVEL=%v allows it: measure, it may be slower than without", w.pair.NCCL)
}

// notes tell what else matters on the way.
func (w *way) notes(hops []Hop) []string {
	var notes []string
	say := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if w.n != w.nic.Function {
		say("%v is a virtual function: it stands where its physical function %v stands", w.nic.Function.Address, w.n.Address)
	}
	if w.g != w.gpu {
		say("%v is a virtual function: it stands where its physical function %v stands", w.gpu.Address, w.g.Address)
	}
	if w.gpu.Coherent() {
		say("the GPU hangs on its CPU by NVLink-C2C as well")
	}
	if w.r.Matrix.Origin == topology.Virtual {
		say("this is the PCI tree that the hypervisor shows; the host's may be another")
	}
	if w.pair.FromFile {
		say("the stations are those of the PCI tree; the levels are those of the topology file")
	}
	if redirecting := redirects(hops); len(redirecting) > 0 && w.g.CommonBridges(w.n) > 0 {
		say("ACS sends peer to peer traffic up to the root complex instead of across, at %s", strings.Join(redirecting, " "))
	}
	if l := w.g.Link; l != nil && l.Speed > 0 && l.Speed < l.MaxSpeed {
		say("an idle GPU lowers the speed of its link: look again under load before calling %sGT/s a fault", Speed(l.Speed))
	}
	return notes
}

// redirects names the ports below the turn that send across traffic up.
func redirects(hops []Hop) []string {
	var list []string
	turn := slices.IndexFunc(hops, func(h Hop) bool { return h.Turn })
	for i, h := range hops {
		crossing := i == turn-1 || i == turn+1 // others go up anyway: see topology.GPU.Crossing
		if crossing && h.Function != nil && h.Function.ACS != nil && h.Function.ACS.Redirect() {
			list = append(list, h.Name)
		}
	}
	return list
}

// Speed writes GT/s as people do: 32, 2.5.
func Speed(gts float64) string { return fmt.Sprintf("%g", gts) }
