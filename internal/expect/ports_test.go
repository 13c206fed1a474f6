package expect

import (
	"testing"

	"gdr-features/source/pci"
	"gdr-features/topology"
)

// A GPU that the map does not list has no nearest NIC.
func TestNearestOfUnlistedGPU(t *testing.T) {
	f := Facts{PCI: &pci.Inventory{}, Matrix: &topology.Matrix{NICs: []topology.NIC{{Function: &pci.Function{}, Eligible: true}}}}
	if got := f.nearest(topology.Link{GPU: &pci.Function{}, Level: topology.PIX}); got != nil {
		t.Errorf("%v", got)
	}
}
