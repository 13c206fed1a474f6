package topology

import "gdr-features/source/pci"

// sysfsLevel rates two functions by their places in the kernel's device tree:
// their root buses, the bridges above them, their NUMA nodes.
func sysfsLevel(gpu, nic *pci.Function, numaNodes int) bound {
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
