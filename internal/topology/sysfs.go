package topology

import "gdr-features/source/pci"

// sysfsLevel rates two functions by their places in the kernel's device tree:
// their root buses, the bridges above them, their NUMA nodes.
func sysfsLevel(gpu, nic *pci.Function, numaNodes int) span {
	if gpu.RootBus == "" || nic.RootBus == "" {
		return atLeast(PIX)
	}
	if common := gpu.CommonBridges(nic); common > 0 {
		if len(gpu.Bridges)-common <= 1 && len(nic.Bridges)-common <= 1 {
			return exactly(PIX)
		}
		return exactly(PXB)
	}
	switch a, b := gpu.NearNUMA, nic.NearNUMA; {
	case gpu.RootBus == nic.RootBus:
		return exactly(PHB)
	case a >= 0 && a == b:
		return exactly(NODE)
	case a >= 0 && b >= 0:
		return exactly(SYS)
	case numaNodes == 0 || numaNodes == 1:
		return exactly(NODE)
	}
	return atLeast(NODE)
}

// ncclPlace is where NCCL puts a function: the switches above it, the topmost
// first, and the CPU they hang on, "" when that cannot be read.
type ncclPlace struct {
	known    bool
	switches []ncclSwitch
	cpu      string
}

// ncclSwitch is a PCIe switch in NCCL's graph, named by its upstream port.
type ncclSwitch struct {
	name string
	ids  uint64 // vendor, device, subsystem vendor, subsystem device
}

// level rates two places as NCCL does (src/graph/paths.cc, ncclTopoSetPaths):
// the same switch PIX, a way through switches alone PXB, the same CPU PHB.
func (p ncclPlace) level(q ncclPlace) Level {
	if !p.known || !q.known {
		return Unknown
	}
	common := 0
	for common < len(p.switches) && common < len(q.switches) && p.switches[common].name == q.switches[common].name {
		common++
	}
	switch {
	case common > 0 && common == len(p.switches) && common == len(q.switches):
		return PIX
	case common > 0:
		return PXB
	case p.cpu == "" || q.cpu == "":
		return Unknown
	case p.cpu == q.cpu:
		return PHB
	}
	return SYS
}

// flatten dissolves a Broadcom sub-switch into the switch of the same chip right
// above it (src/graph/topo.cc, ncclTopoFlattenBcmSwitches): each switch takes in
// one level below itself, and what took in is not taken in again.
func flatten(switches []ncclSwitch) (kept, dissolved []ncclSwitch) {
	for i := 0; i < len(switches); i++ {
		kept = append(kept, switches[i])
		gen := broadcomGeneration(switches[i].ids, 0)
		if gen != 0 && i+1 < len(switches) && broadcomGeneration(switches[i+1].ids, 1) == gen {
			i++
			dissolved = append(dissolved, switches[i])
		}
	}
	return kept, dissolved
}

// broadcomGeneration knows the PCIe switches whose chips show as two levels
// (src/graph/topo.cc, getBcmGen): 4 or 5, 0 for any other.
func broadcomGeneration(ids uint64, level uint64) int {
	switch ids &^ 0xfff {
	case 0x1000c0101000a000:
		return 4
	case 0x1000c03010000000 | level*0x1000:
		return 5
	}
	return 0
}

// ncclPlaceOf finds a function's place in NCCL's graph from sysfs.
func ncclPlaceOf(inv *pci.Inventory, f *pci.Function) ncclPlace {
	if f.RootBus == "" {
		return ncclPlace{}
	}
	kept, _ := flatten(switchesAbove(inv, f))
	return ncclPlace{known: true, switches: kept, cpu: numaText(f.RootNUMA)}
}

// switchesAbove lists the switches above a function, the topmost first.
func switchesAbove(inv *pci.Inventory, f *pci.Function) []ncclSwitch {
	above := f.Switches()
	switches := make([]ncclSwitch, len(above))
	for i, a := range above {
		s := ncclSwitch{name: a.String()}
		if g := inv.Find(a); g != nil {
			s.ids = uint64(g.Vendor)<<48 | uint64(g.Device)<<32 | uint64(g.SubVendor)<<16 | uint64(g.SubDevice)
		}
		switches[len(above)-1-i] = s
	}
	return switches
}

// countsInNCCL gives the function whose path NCCL takes for that of an adapter:
// its data-direct function where it has one (src/transport/net_ib/init.cc).
func countsInNCCL(inv *pci.Inventory, f *pci.Function) *pci.Function {
	if f.DataDirect != nil {
		if dd := inv.Find(*f.DataDirect); dd != nil {
			return dd
		}
	}
	return f
}

// NCCLPlace is where NCCL finds a function in the PCI tree.
type NCCLPlace struct {
	// Function is the one whose path counts: a virtual function's physical one,
	// an adapter's data-direct function.
	Function *pci.Function
	// Switches are the switches above it, the topmost first, by their upstream
	// ports. Dissolved are those that NCCL takes for one with the switch of the
	// same chip right above them.
	Switches, Dissolved []string
}

// InNCCL finds a function's place as NCCL would from sysfs.
func InNCCL(inv *pci.Inventory, f *pci.Function) NCCLPlace {
	p := NCCLPlace{Function: countsInNCCL(inv, inv.Place(f))}
	if p.Function.RootBus == "" {
		return p
	}
	kept, dissolved := flatten(switchesAbove(inv, p.Function))
	p.Switches, p.Dissolved = names(kept), names(dissolved)
	return p
}

func names(switches []ncclSwitch) []string {
	var list []string
	for _, s := range switches {
		list = append(list, s.name)
	}
	return list
}
