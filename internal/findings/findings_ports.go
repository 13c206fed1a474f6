package findings

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

func (f *Facts) ports(v verdict.Verdict) Finding {
	state := f.ActivePort()
	out := Finding{Check: "port", Status: fromState(state, Fail), Sources: []string{ibClass + "/*/ports/*/state", ibClass + "/*/ports/*/link_layer"}}
	active, total := 0, 0
	var down, unread []string
	fix := fixes{}
	for i := range f.Matrix.NICs {
		n := &f.Matrix.NICs[i]
		if !n.Eligible || n.RDMA == nil {
			continue
		}
		for _, p := range n.RDMA.Ports {
			total++
			if p.Active() {
				active++
				continue
			}
			name := fmt.Sprintf("%s/%d %s", n.RDMA.Name, p.Number, portState(p))
			if p.Carries() == tristate.False {
				down = append(down, name)
			} else {
				unread = append(unread, name)
			}
			out.Evidence = append(out.Evidence, sawPort(n.RDMA.Name, p))
			fix.add(portFix(p))
		}
	}
	out.Detail = fmt.Sprintf("%d of %s ACTIVE", active, count(total, "port"))
	switch state {
	case tristate.True:
		if v.Link != "" {
			out.Detail += ", " + v.Link
		}
		if len(down)+len(unread) > 0 {
			out.Detail += "; not: " + some(append(down, unread...))
			out.Status, out.Fix = Undecidable, fix.text()
		}
		if len(down) > 0 {
			out.Status, out.Code = Warn, PortDown
		}
	case tristate.False:
		out.Reason = verdict.NoActivePort
		out.Fix = fix.text()
		if f.RDMADevice() != tristate.True {
			out.Detail, out.Fix = "no RDMA device, no port", "see rdma-device"
		}
	case tristate.Unknown:
		out.Reason, out.Detail = verdict.Unreadable, "the ports' state cannot be read"
	}
	return out
}

// portState is that of a port that is not active, or not known to be: "DOWN" or,
// where the cable says more, "DOWN (Polling)".
func portState(p rdma.Port) string {
	switch {
	case p.State == "":
		return "?"
	case p.State == "ACTIVE":
		return "ACTIVE, link layer unknown"
	case p.Physical != "":
		return p.State + " (" + p.Physical + ")"
	}
	return p.State
}

// portFix says what a port that is not active needs, by what its physical side
// says.
func portFix(p rdma.Port) string {
	switch {
	case p.State == "", p.State == "ACTIVE":
		return "a port whose state or link layer cannot be read: ibstat"
	case p.Physical == "Disabled" && p.LinkLayer == "Ethernet":
		return "Disabled: ip link set its interface (rdma link) up"
	case p.Physical == "Disabled":
		return "Disabled: ibportstate enables it from another node"
	case p.Physical == "Polling", p.Physical == "Sleep":
		return "Polling: no signal from the other end: check cable, transceiver and the switch port"
	case p.Physical == "LinkUp" && p.LinkLayer == "InfiniBand":
		return "LinkUp but not ACTIVE: no subnet manager reaches it, run opensm or UFM"
	}
	return "ibstat and mlxlink show why a port is down: check cables, transceivers and, for InfiniBand, the subnet manager"
}

// fixes are different pieces of advice, each once.
type fixes []string

func (x *fixes) add(fix string) {
	if !slices.Contains(*x, fix) {
		*x = append(*x, fix)
	}
}

func (x *fixes) text() string { return strings.Join(*x, "; ") }

// some lists a few and counts the rest.
func some(list []string) string {
	const few = 3
	if len(list) <= few {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), len(list)-few)
}

// nearPorts finds GPUs whose nearest adapters have no active port while farther
// ones have: the pair that is left is worse than the machine's level says.
func (f *Facts) nearPorts() []Finding {
	if f.ActivePort() != tristate.True || !f.Matrix.Counted || !f.RDMA.Complete {
		return nil
	}
	var worse, evidence []string
	for i := range f.Matrix.GPUs {
		if !f.Matrix.GPUs[i].Eligible {
			continue
		}
		near, left := f.nearestOf(i)
		if near == nil || left == nil || left.Level <= near.Level {
			continue
		}
		dead, alive := &f.Matrix.NICs[near.NIC], &f.Matrix.NICs[left.NIC]
		worse = append(worse, fmt.Sprintf("%v has %s at %v with no active port, and %s at %v next", f.Matrix.GPUs[i].Address, nicName(dead), near.Level, nicName(alive), left.Level))
		evidence = append(evidence, f.sawPorts(dead)...)
	}
	if len(worse) == 0 {
		return nil
	}
	return []Finding{{
		Check: "near-port", Status: Warn, Code: NearPortDown,
		Detail:   "a GPU's nearest adapter is of no use to it: " + some(worse),
		Fix:      "bring the near port up (see port); until then expect the farther level, which NCCL may leave GPUDirect RDMA out at",
		Sources:  []string{ibClass + "/*/ports/*/state", pciDevices},
		Evidence: evidence,
	}}
}

// nearestOf gives a GPU's nearest pair, and the nearest one whose adapter has an
// active port; nil where a level or a port is not known.
func (f *Facts) nearestOf(gpu int) (near, left *topology.Pair) {
	pairs := f.Matrix.PairsOf(gpu)
	for i := range pairs {
		p := &pairs[i]
		n := &f.Matrix.NICs[p.NIC]
		if !n.Eligible {
			continue
		}
		active := verdict.HasActivePort(n)
		if p.Level == topology.Unknown || active == tristate.Unknown {
			return nil, nil
		}
		if near == nil && p.Level == f.Matrix.GPUs[gpu].Level {
			near = p
		}
		if active == tristate.True && (left == nil || p.Level < left.Level) {
			left = p
		}
	}
	return near, left
}

func nicName(n *topology.NIC) string {
	if name := n.Name(); name != "" {
		return name
	}
	return n.Address()
}

// sawPorts is evidence of an adapter's ports, or of there being no device.
func (f *Facts) sawPorts(n *topology.NIC) []string {
	if n.RDMA == nil {
		return []string{saw(pciDevices+"/"+n.Address()+"/infiniband", "absent")}
	}
	var all []string
	for _, p := range n.RDMA.Ports {
		all = append(all, sawPort(n.RDMA.Name, p))
	}
	return all
}

// sawPort is evidence of a port that is not active, or not known to be.
func sawPort(device string, p rdma.Port) string {
	dir := fmt.Sprintf("%s/%s/ports/%d/", ibClass, device, p.Number)
	if p.State == "ACTIVE" {
		return saw(dir+"link_layer", p.LinkLayer)
	}
	return saw(dir+"state", portState(p))
}
