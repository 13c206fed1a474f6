package verdict

import (
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// boundTo tells whether a function is bound to a driver.
func boundTo(f *pci.Function, driver string) tristate.State {
	if !f.DriverKnown {
		return tristate.Unknown
	}
	return tristate.Of(f.Driver == driver)
}

// anyGPU asks a question of every eligible GPU until one says yes. A function
// that could not be identified may be one that would.
func (f *Facts) anyGPU(ask func(*pci.Function) tristate.State) tristate.State {
	answer := tristate.False
	for _, gpu := range f.Matrix.GPUs {
		if gpu.Eligible {
			answer = tristate.Or(answer, ask(gpu.Function))
		}
	}
	return f.unlessUnidentified(answer)
}

func (f *Facts) unlessUnidentified(no tristate.State) tristate.State {
	if no == tristate.False && !f.Matrix.Counted {
		return tristate.Unknown
	}
	return no
}

// AllPassthrough tells whether every eligible GPU is bound to vfio-pci, which hands
// it to a virtual machine.
func (f *Facts) AllPassthrough() tristate.State {
	if f.Matrix.EligibleGPUs == 0 {
		return f.unlessUnidentified(tristate.False)
	}
	return tristate.Not(f.anyGPU(func(gpu *pci.Function) tristate.State { return tristate.Not(boundTo(gpu, "vfio-pci")) }))
}

// GPUDriven tells whether some eligible GPU is bound to the NVIDIA driver.
func (f *Facts) GPUDriven() tristate.State {
	return f.anyGPU(func(gpu *pci.Function) tristate.State { return boundTo(gpu, "nvidia") })
}

// NICDriven tells whether some eligible NIC function, physical or virtual, is bound
// to its driver.
func (f *Facts) NICDriven() tristate.State {
	answer := tristate.False
	for i := range f.PCI.Functions {
		if fn := &f.PCI.Functions[i]; fn.NICEligible() {
			answer = tristate.Or(answer, boundTo(fn, "mlx5_core"), boundTo(fn, "mlx4_core"))
		}
	}
	return f.unlessUnidentified(answer)
}

// anyDevice asks a question of the RDMA devices of eligible adapters. Devices
// that may be hidden might say yes.
func (f *Facts) anyDevice(ask func(*topology.NIC) tristate.State) tristate.State {
	answer := tristate.False
	for i := range f.Matrix.NICs {
		if n := &f.Matrix.NICs[i]; n.Eligible && n.RDMA != nil {
			answer = tristate.Or(answer, ask(n))
		}
	}
	if answer == tristate.False && !f.RDMA.Complete {
		return tristate.Unknown
	}
	return f.unlessUnidentified(answer)
}

// RDMADevice tells whether some eligible NIC has an RDMA device.
func (f *Facts) RDMADevice() tristate.State {
	return f.anyDevice(func(*topology.NIC) tristate.State { return tristate.True })
}

// ActivePort tells whether some port of those devices is ACTIVE with link layer
// InfiniBand or Ethernet.
func (f *Facts) ActivePort() tristate.State {
	return f.anyDevice(HasActivePort)
}

// HasActivePort tells whether a NIC has such a port.
func HasActivePort(n *topology.NIC) tristate.State {
	if n.RDMA == nil {
		return tristate.False
	}
	answer := tristate.False
	if !n.RDMA.PortsRead {
		answer = tristate.Unknown
	}
	for _, p := range n.RDMA.Ports {
		answer = tristate.Or(answer, p.Carries())
	}
	return answer
}

// DevicesSay tells whether some mlx5 device of an eligible NIC answered, when it was
// asked, that it registers DMA-BUF. False only when all were asked and all said no.
func (f *Facts) DevicesSay() tristate.State {
	if len(f.Asked) == 0 {
		return tristate.Unknown
	}
	said := make(map[string]tristate.State, len(f.Asked))
	for _, a := range f.Asked {
		said[a.Device] = a.DMABuf
	}
	asked := false
	answer := f.anyDevice(func(n *topology.NIC) tristate.State {
		mlx5 := boundTo(n.Function, "mlx5_core")
		asked = asked || mlx5 == tristate.True
		return tristate.And(mlx5, said[n.RDMA.Name])
	})
	if !asked {
		return tristate.Unknown
	}
	return answer
}

// link names the link layer of the active ports of eligible adapters. A port
// that could not be read leaves it open, unless both layers are there already.
func (f *Facts) link() (layer string, open bool) {
	layers := map[string]bool{}
	open = !f.RDMA.Complete
	for _, n := range f.Matrix.NICs {
		if !n.Eligible || n.RDMA == nil {
			continue
		}
		open = open || !n.RDMA.PortsRead
		for _, p := range n.RDMA.Ports {
			switch p.Carries() {
			case tristate.True:
				layers[p.LinkLayer] = true
			case tristate.Unknown:
				open = true
			case tristate.False:
			}
		}
	}
	switch {
	case len(layers) == 2:
		return "mixed", false
	case open:
		return "", true
	case layers["InfiniBand"]:
		return "infiniband", false
	case layers["Ethernet"]:
		return "ethernet", false
	}
	return "", !f.Matrix.Counted
}

// iommu judges by the groups of the eligible GPUs and adapters, not by the
// kernel's command line: one translated device is enough to slow a pair down.
// Devices without a group prove that the IOMMU is off only where the kernel's list
// of groups was read.
func (f *Facts) iommu() (mode string, open bool) {
	var seen, grouped, translated bool
	look := func(fn *pci.Function) {
		seen = true
		switch {
		case !fn.IOMMUKnown:
			open = true
		case fn.IOMMUGroup != pci.None:
			grouped = true
			switch f.Kmod.GroupTypes[fn.IOMMUGroup] {
			case "identity":
			case "DMA", "DMA-FQ":
				translated = true
			default:
				open = true
			}
		}
	}
	for i := range f.PCI.Functions {
		if fn := &f.PCI.Functions[i]; fn.GPUEligible() || fn.NICEligible() {
			look(fn)
		}
	}
	switch {
	case translated:
		return "translated", false
	case open, !seen:
		return "", open || !f.Matrix.Counted
	case grouped:
		return "passthrough", false
	case f.Kmod.IOMMU == tristate.Unknown: // they are in no group, and whether there are groups is not known
		return "", true
	}
	return "off", false
}

// acs judges the bridges between every eligible GPU and its nearest NIC. It is
// open when reading them took too long, or failed for some and not for others;
// where it failed for all, this process may not read them. A function that could
// not be identified may be the nearest one.
func (f *Facts) acs() (state string, open bool) {
	if !f.Matrix.Counted {
		return "", true
	}
	missing := f.Matrix.EligibleGPUs == 0
	var denied, read bool
	for _, gpu := range f.Matrix.GPUs {
		if !gpu.Eligible {
			continue
		}
		between := gpu.Between()
		missing = missing || len(between) == 0 // nothing is known of what is between them
		for _, bridge := range between {
			switch acs := f.ACS[bridge]; {
			case acs == nil:
				denied = true
			case acs.Redirect():
				return "redirect", false
			default:
				read = true
			}
		}
	}
	if missing || denied {
		return "", f.ACSUnread || denied && read
	}
	return "clear", false
}
