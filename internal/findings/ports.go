package findings

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/show"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

var port = check{
	Name: "port", Sources: []string{rdma.AnyPortFile(rdma.StateFile), rdma.AnyPortFile(rdma.LinkLayerFile)},
	Codes: []finding.Code{"NoActivePort", finding.Unreadable, "PortDown"},
	Judge: judgePorts,
}

func judgePorts(f *judged) finding.Said {
	active, idle := f.Verdict.ActivePort, idlePorts(f)
	if lack := apart(f, verdict.NoActivePort, active, "an ACTIVE port"); lack.Found() {
		lack.Detail = activePorts(f) + ", but " + lack.Detail
		return lack.Saw(idle.Evidence...).Do(portFixes(f)...).Do(orMoveOther)
	}
	perhapsApart := f.apartPairs(tristate.Unknown, verdict.NoActivePort)
	switch {
	case active == tristate.True && perhapsApart.Any():
		return finding.Unread("%s, but not all can be read of what it takes to reach the memory of one GPU "+
			"through one NIC on this CPU: %s",
			activePorts(f), perhapsApart).
			Of(perhapsApart).Saw(gpuDrivers(f)...).Saw(nicDrivers(f)...).Do(seeProblems, mountSys)
	case active == tristate.True:
		return somePortsActive(f, idle)
	case active == tristate.False && f.Verdict.RDMADevice != tristate.True:
		return finding.Unmet(verdict.NoActivePort, "no RDMA device, so no port").Of(idle).Do("see rdma-device")
	case active == tristate.False:
		return finding.Unmet(verdict.NoActivePort, "%s", activePorts(f)).Of(idle).Do(portFixes(f)...)
	}
	return finding.Unread("the state of the ports cannot be read").Of(idle)
}

// somePortsActive says what the other ports are.
func somePortsActive(f *judged, idle finding.Subjects) finding.Said {
	text := activePorts(f) + linkLayer(f)
	if !idle.Any() {
		return finding.OK("%s", text)
	}
	others := finding.Unknown("%s; others: %s", text, idle)
	down := func(p rdma.DevicePort) bool { return p.Usable() == tristate.False }
	if slices.ContainsFunc(f.ports(), down) {
		others = finding.Warn("PortDown", "%s; others: %s", text, idle)
	}
	return others.Of(idle).Do(portFixes(f)...)
}

// ports are those of the eligible NICs.
func (f *judged) ports() (all []rdma.DevicePort) {
	for _, d := range f.devices() {
		for _, p := range d.Ports {
			all = append(all, rdma.DevicePort{Port: p, Device: d})
		}
	}
	return all
}

func activePorts(f *judged) string {
	active, ports := 0, f.ports()
	for _, p := range ports {
		if p.Active() {
			active++
		}
	}
	return fmt.Sprintf("%d of %s ACTIVE", active, show.Count(len(ports), "port"))
}

func linkLayer(f *judged) string {
	if f.Verdict.Link == "" {
		return ""
	}
	return ", " + f.Verdict.Link
}

// idlePorts names the ports that are not active: those that are down, then the unread.
func idlePorts(f *judged) (idle finding.Subjects) {
	var unread []string
	for _, p := range f.ports() {
		name := fmt.Sprintf("%s/%d %s", p.Device.Name, p.Number, PortState(p.Port))
		switch p.Usable() {
		case tristate.False:
			idle.Names = append(idle.Names, name)
		case tristate.Unknown:
			unread = append(unread, name)
		case tristate.True:
			continue
		}
		idle.Evidence = append(idle.Evidence, SawPort(p.Device, p.Port))
	}
	idle.Names = append(idle.Names, unread...)
	return idle
}

// PortState is that of a port that is not active, or not known to be: "DOWN" or,
// where the physical state says more, "DOWN (Polling)".
func PortState(p rdma.Port) string {
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

// portFixes says what the ports that are not active need, without repeating itself.
func portFixes(f *judged) (fixes []string) {
	for _, p := range f.ports() {
		if !p.Active() {
			fixes = append(fixes, portFix(p.Port, f))
		}
	}
	return finding.Unique(fixes)
}

// portFix goes by the port's physical state.
func portFix(p rdma.Port, f *judged) string {
	switch {
	case p.State == "", p.State == "ACTIVE":
		return "a port whose state or link layer cannot be read: ibstat"
	case p.Physical == "Disabled" && p.LinkLayer == "Ethernet":
		return "Disabled: set its network interface up (`rdma link` names it; `ip link set INTERFACE up`)"
	case p.Physical == "Disabled":
		return "Disabled: enable it from another node with ibportstate"
	case p.Physical == "Polling", p.Physical == "Sleep":
		return "Polling: no signal from the other end: check the cable, the transceiver and the switch port"
	case p.Physical == "LinkUp" && p.LinkLayer == "InfiniBand":
		return "LinkUp but not ACTIVE: no subnet manager reaches it, run opensm or UFM"
	}
	show := "ibstat shows"
	if tool := f.NIC.Help.PortTool; tool != "" {
		show = "ibstat and " + tool + " show"
	}
	return show + " why a port is down: check cables, transceivers and, for InfiniBand, the subnet manager"
}

// SawPort is evidence of a port that is not active, or not known to be.
func SawPort(d *rdma.Device, p rdma.Port) string {
	if p.State == "ACTIVE" {
		return finding.Saw(d.PortFile(p.Number, rdma.LinkLayerFile), p.LinkLayer)
	}
	return finding.Saw(d.PortFile(p.Number, rdma.StateFile), PortState(p))
}

var nearPort = check{
	Name: "near-port", Sources: []string{
		rdma.AnyPortFile(rdma.StateFile),
		pci.Devices,
	}, Codes: []finding.Code{"NearPortDown"},
	Judge: func(f *judged) finding.Said {
		var down finding.Subjects
		for _, far := range f.Verdict.FarPorts {
			dead, alive := &f.Matrix.NICs[far.Near.NIC], &f.Matrix.NICs[far.Left.NIC]
			text := fmt.Sprintf("%s has %s at %v %s, and %s at %v next", f.named(f.Matrix.GPUs[far.Near.GPU].Function),
				nicName(dead), far.Near.Level, lackOf(dead).text, nicName(alive), far.Left.Level)
			down.Add(text, sawPorts(dead)...)
		}
		return finding.Warn("NearPortDown", "a GPU cannot use its nearest NIC: %s", down).OfAny(down).
			Do(nearNICUp(f), "until then traffic uses the farther NIC, where NCCL may not use GPUDirect RDMA",
				withoutDirectNIC(f))
	},
}

// portLack is why a NIC has no active port, and what to do.
type portLack struct{ text, fix string }

func lackOf(n *topology.NIC) portLack {
	switch {
	case n.RDMA != nil:
		return portLack{"with no active port", "bring the port of the nearest NIC up (see port)"}
	case n.Function.DriverKnown && n.Function.Driver == "":
		return portLack{"bound to no driver", "bind the nearest NIC to its driver (see nic-driver)"}
	}
	return portLack{"without an RDMA device", "give the nearest NIC an RDMA device (see rdma-device)"}
}

// nearNICUp says what the nearest NICs need.
func nearNICUp(f *judged) string {
	return strings.Join(finding.Unique(finding.Map(f.Verdict.FarPorts,
		func(far verdict.FarPort) string { return lackOf(&f.Matrix.NICs[far.Near.NIC]).fix })), "; ")
}

// nicName is "mlx5_3 0000:3c:00.0".
func nicName(n *topology.NIC) string { return strings.TrimSpace(n.Name() + " " + n.Address()) }

// named is what topo calls a GPU or a NIC, "GPU1 0000:3b:00.0", or an address alone.
func (f *judged) named(fn *pci.Function) string {
	for i := range f.Matrix.GPUs {
		if f.Matrix.GPUs[i].Function == fn {
			return fmt.Sprintf("GPU%d %v", i, fn.Address)
		}
	}
	for i := range f.Matrix.NICs {
		if n := &f.Matrix.NICs[i]; n.Function == fn {
			return nicName(n)
		}
	}
	return fn.Address.String()
}

// sawPorts is evidence of a NIC's ports, or of there being no RDMA device.
func sawPorts(n *topology.NIC) []string {
	if n.RDMA == nil {
		return []string{sawNoRDMA(n.Function.Address)}
	}
	return finding.Map(n.RDMA.Ports, func(p rdma.Port) string { return SawPort(n.RDMA, p) })
}
