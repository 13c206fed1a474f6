package verdict

import (
	"strconv"

	"gdr-features/internal/version"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// DirectPCI is what NVIDIA's driver looks at before it maps the memory of a GPU that shares
// memory with its CPU for a PCI function whose users ask for a mapping over PCIe, and not over
// C2C (mapping type FORCE_PCIE of a DMA-BUF).
type DirectPCI struct {
	Version   string    // of the driver, "" where unknown
	Parameter TopoCheck // of the driver
	GPU, NIC  int       // their IOMMU groups, pci.None or pci.Unread
	// Bridge: the two have a bridge above them in common.
	Bridge tristate.State
}

// TopoCheck is the driver's parameter GrdmaPciTopoCheckOverride: its value, or one of these.
type TopoCheck int64

// What may stand in place of a value.
const (
	TopoCheckUnread      TopoCheck = -1 - iota // the file of the parameters is there and cannot be read
	TopoCheckNotRecorded                       // the file is not there, as in snapshots that do not hold it
	TopoCheckNotListed                         // the driver does not have the parameter
)

// TopoCheck returns the parameter of the loaded driver.
func (node *Node) TopoCheck() TopoCheck {
	value, listed := node.Kmod.Params[kmod.TopoOverride]
	switch {
	case node.Kmod.ParamsUnread:
		return TopoCheckUnread
	case node.Kmod.Params == nil:
		return TopoCheckNotRecorded
	case !listed:
		return TopoCheckNotListed
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return TopoCheckUnread
	}
	return TopoCheck(n)
}

// Valid reports whether the driver maps the memory. In NVIDIA/open-gpu-kernel-modules it is
// kernel-open/nvidia/nv-pci.c, nv_pci_is_valid_topology_for_direct_pci:
//
//   - before R570 (565.57.01) there is no such mapping, and the GPU is reached over C2C;
//   - R570 and R575 (570.86.15, 575.57.08): any value of the parameter but 0 allows it;
//   - R580 and R590 (580.65.06, 580.142, 590.48.01): 1 allows it, 2 refuses it;
//   - with other values these want one IOMMU group for both, or none for both;
//   - early releases of R595 (595.45.04) want that whatever the parameter says;
//   - later ones (commit 022c3658) do not have the parameter any more. They want that too, or no
//     group for the NIC and a bridge in common with the GPU (nv_pci_has_common_pci_switch).
//
// Where a release of R595 or newer cannot be told from others, what they all say counts.
func (d DirectPCI) Valid() tristate.State {
	major := version.Major(d.Version)
	equal := tristate.Of(d.GPU == d.NIC)
	if d.GPU == pci.Unread || d.NIC == pci.Unread {
		equal = tristate.Unknown
	}
	later := tristate.Or(equal, tristate.And(tristate.Of(d.NIC == pci.None), d.Bridge)) // equal is unknown without the NIC's group
	switch listed := d.Parameter >= 0; {
	case major == 0:
		return tristate.Unknown
	case major < 570:
		return tristate.True
	case major >= 595 && listed:
		return equal
	case major >= 595 && d.Parameter == TopoCheckNotListed:
		return later
	case major >= 595 && equal != later:
		return tristate.Unknown
	case major >= 595:
		return equal
	case major >= 580 && d.Parameter == TopoCheckUnread:
		return tristate.Unknown // it may refuse every place
	case !listed && equal != tristate.True:
		return tristate.Unknown // the parameter may allow it
	case major >= 580 && d.Parameter == 2:
		return tristate.False
	case d.Parameter == 1, major < 580 && d.Parameter > 0:
		return tristate.True
	}
	return equal
}
