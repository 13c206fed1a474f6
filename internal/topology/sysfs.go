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
func flatten(switches []ncclSwitch) []ncclSwitch {
	var kept []ncclSwitch
	for i := 0; i < len(switches); i++ {
		kept = append(kept, switches[i])
		gen := broadcomGeneration(switches[i].ids, 0)
		if gen != 0 && i+1 < len(switches) && broadcomGeneration(switches[i+1].ids, 1) == gen {
			i++
		}
	}
	return kept
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
	above := f.Switches()
	switches := make([]ncclSwitch, len(above))
	for i, a := range above {
		s := ncclSwitch{name: a.String()}
		if g := inv.Find(a); g != nil {
			s.ids = uint64(g.Vendor)<<48 | uint64(g.Device)<<32 | uint64(g.SubVendor)<<16 | uint64(g.SubDevice)
		}
		switches[len(above)-1-i] = s
	}
	return ncclPlace{known: true, switches: flatten(switches), cpu: numaText(f.RootNUMA)}
}
