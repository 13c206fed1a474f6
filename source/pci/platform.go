package pci

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/source/family"
	"gdr-features/tristate"
)

// NeedsCommonBridge reports whether this machine's CPU is one of those on which the
// driver of a family of GPUs maps memory only for a NIC below a common bridge. Unknown where
// what would tell may be on a root bus of the GPUs or NICs and was not read.
func (inv *Inventory) NeedsCommonBridge(g *family.GPU) tristate.State {
	if len(g.CommonBridge) == 0 {
		return tristate.False
	}
	buses, ports := map[string]bool{"": true}, map[Address]string{}
	for f := range inv.All() {
		if (f.Class>>8 == 0x0600 || f.Bridge()) && g.CommonBridge[f.Vendor].Has(f.Device) {
			return tristate.True
		}
		if f.GPU == g || f.NIC != nil {
			buses[f.RootBus] = true
			if len(f.Bridges) > 0 {
				ports[f.Bridges[0]] = f.RootBus
			}
		}
	}
	if inv.rootsRead(g, buses, ports) {
		return tristate.False
	}
	return tristate.Unknown
}

// rootsRead: the ids of all functions on some root buses, and of the root ports there, were read.
// Beside a root port by the maker of a CPU that needs a common bridge, device 0 must be listed:
// it is the host bridge, which tells the CPU where the ids of the port do not.
func (inv *Inventory) rootsRead(g *family.GPU, buses map[string]bool, ports map[Address]string) bool {
	first := map[string]bool{}
	for f := range inv.All() {
		if len(f.Bridges) > 0 || !buses[f.RootBus] {
			continue
		}
		if f.IDs() == (family.IDs{}) {
			return false
		}
		first[f.RootBus] = first[f.RootBus] || f.Address.Device == 0
	}
	for address, bus := range ports {
		if port := inv.Find(address); port == nil || g.CommonBridge[port.Vendor] != nil && !first[bus] {
			return false
		}
	}
	return true
}

// hypervisorVendors are those of functions that exist only as a hypervisor's emulation:
// QEMU's bridges and devices (vendor Red Hat), VMware's, VirtualBox's. Virtio is
// not among them: BlueField cards emulate it on bare metal.
var hypervisorVendors = [...]uint16{0x1b36, 0x15ad, 0x80ee}

// Hypervisor returns the function that shows this PCI tree to be a hypervisor's
// making, nil when none does: an emulated device, or a virtual function whose
// physical one is not listed (device ids of virtual functions only).
func (inv *Inventory) Hypervisor() *Function {
	for f := range inv.All() {
		alone := f.PhysFn == nil && !f.Unidentified()
		if slices.Contains(hypervisorVendors[:], f.Vendor) || f.NIC != nil && f.NIC.Virtual.Has(f.Device) && alone {
			return f
		}
	}
	return nil
}

// emulatedSwitches are ports that QEMU emulates with the ids of real products, by vendor: TI's
// XIO3130 (hw/pci-bridge/xio3130_upstream.c and xio3130_downstream.c) and Intel's ioh3420
// (hw/pci-bridge/ioh3420.c). They tell a hypervisor's bridge only inside a virtual machine.
var emulatedSwitches = map[uint16][]uint16{0x104c: {0x8232, 0x8233}, 0x8086: {0x3420}}

// EmulatedBridge reports whether a function of a virtual machine is a bridge that its hypervisor
// emulates. No traffic between passed-through devices goes by it: they are where the hardware
// has them, and its registers say nothing of the bridges there.
func (f *Function) EmulatedBridge() bool {
	return f.Bridge() && (slices.Contains(hypervisorVendors[:], f.Vendor) || slices.Contains(emulatedSwitches[f.Vendor], f.Device))
}

// CPUPort reports whether a GPU is below a root port of a CPU, which no hypervisor
// emulates. (What QEMU calls ioh3420 is 8086:3420.) Those of NVIDIA's CPUs prove nothing:
// GB300 in virtual machines of clouds is below roots like theirs.
func (inv *Inventory) CPUPort() bool {
	for f := range inv.All() {
		if f.GPU == nil || len(f.Bridges) == 0 {
			continue
		}
		port := inv.Find(f.Bridges[0])
		if port == nil || !port.Bridge() {
			continue
		}
		switch port.Vendor {
		case 0x1022, 0x1def, 0x1014: // AMD, Ampere, IBM
			return true
		case 0x8086: // Intel
			return port.Device != 0x3420
		}
	}
	return false
}

// dataDirect joins NICs with their data-direct functions by the UUID that
// both carry in their VPD (kernel: drivers/infiniband/hw/mlx5/data_direct.c).
// Where the VPD cannot be read, nothing is joined.
func (s *scanner) dataDirect() {
	byUUID := map[string]*Address{}
	for f := range s.inv.All() {
		if f.DataDirectOf != nil {
			if uuid := s.vpd(f).UUID(); uuid != "" {
				byUUID[uuid] = &f.Address
			}
		}
	}
	if len(byUUID) == 0 {
		return
	}
	for f := range s.inv.All() {
		if f.NIC != nil && len(f.NIC.WithDataDirect) > 0 && f.PhysFn == nil {
			f.DataDirect = byUUID[s.vpd(f).UUID()]
		}
	}
}

// vpd reads a function's VPD once.
func (s *scanner) vpd(f *Function) *VPD {
	if f.VPD == nil && !s.noVPD[f] {
		f.VPD = ReadVPD(s.fs, f.Address)
	}
	return f.VPD
}

// managementMarks finds the ConnectX-7 that manages the NVLink switches of a
// GPU baseboard (HGX B200 and later). Its firmware is restricted: reading its
// ports and counters fails and floods the kernel log, and no traffic goes
// through it. It is recognized by facts of the PCI function alone:
//   - SMDL=SW_MNG, or its product name, in the VPD (root only);
//   - a device id that is in the family's row and two PCIe lanes at most, which no
//     card is sold with (max_link_width, readable by everybody).
//
// One marked function marks its whole slot. A NIC of which neither can be read is unidentified.
func (s *scanner) managementMarks() {
	var open []*Function
	for f := range s.inv.All() {
		if !f.mayManage() || f.Unidentified() || f.NVLinkManagement {
			continue
		}
		switch s.marked(f) {
		case tristate.True:
			s.markSlot(f)
		case tristate.Unknown:
			open = append(open, f)
		case tristate.False:
		}
	}
	for _, f := range open {
		if f.NIC != nil && !f.NVLinkManagement && s.mayHaveManagers() {
			f.Eligible = MayManageNVLink
			s.unread(fmt.Errorf("/%s/%s: no number of lanes: the NIC may manage NVLink switches",
				f.Address.dir(), MaxLinkWidthFile))
		}
	}
}

// mayHaveManagers reports whether the GPUs here may be those of a baseboard with such NICs. Virtual
// machines with other GPUs have NICs without lanes, on a root bus of QEMU.
func (s *scanner) mayHaveManagers() bool {
	other := false
	for g := range s.inv.All() {
		switch {
		case g.GPU == nil && g.Unidentified() && g.NIC == nil:
			return true
		case g.GPU != nil && g.GPU.ManagersFrom != 0 && g.Device >= g.GPU.ManagersFrom:
			return true
		case g.GPU != nil:
			other = true
		}
	}
	return !other
}

func (s *scanner) markSlot(f *Function) {
	for g := range s.inv.All() {
		slot := g.Address
		slot.Function = f.Address.Function
		if g.KnownNIC() == f.KnownNIC() && slot == f.Address {
			g.NVLinkManagement = true
			g.rule(NVLinkManager)
		}
	}
}

// mayManage reports whether a function is one of those that managementMarks looks at.
func (f *Function) mayManage() bool {
	return f.InfiniBand() && f.KnownNIC().NVLinkManagement != nil && f.PhysFn == nil
}

func (s *scanner) marked(f *Function) tristate.State {
	lanes := 0
	narrow := f.KnownNIC().NVLinkManagement.Narrow.Has(f.Device)
	if narrow {
		if lanes = s.lanes(f); lanes > 0 && lanes <= 2 {
			return tristate.True
		}
	}
	switch vpd := s.vpd(f); {
	case vpd != nil:
		return tristate.Of(vpd.nvlinkManagement())
	case narrow && lanes == 0:
		return tristate.Unknown
	}
	return tristate.False
}

// lanes are the most that a function's link can have; 0 for unknown.
func (s *scanner) lanes(f *Function) int {
	if _, read := s.linked[f.Address]; read {
		return f.link().MaxWidth
	}
	width, _ := s.fs.Line(f.Address.dir() + "/" + MaxLinkWidthFile)
	return parseWidth(width)
}

// ManagementMark in a field of the VPD tells a NIC that manages NVLink switches.
const ManagementMark = "SW_MNG"

// nvlinkManagement looks for the field SMDL=SW_MNG of a vendor keyword, or the product name
// of the baseboard's NIC.
func (v *VPD) nvlinkManagement() bool {
	for _, value := range v.Fields {
		if strings.Contains(value, ManagementMark) {
			return true
		}
	}
	return strings.Contains(v.Product, "mezz internal")
}
