package sample

import (
	"gdr-features/source/family"
	"gdr-features/source/pci"
)

// Placed makes a function of a GPU or NIC: root is its root bus, "?" where its path could not be
// read.
func Placed(bus uint8, root string, numa int, ids family.IDs) pci.Function {
	f := pci.Function{Address: pci.Address{Bus: bus}, Vendor: ids.Vendor, Device: ids.Device, Class: ids.Class, RootBus: root, Top: root, NUMA: numa, NearNUMA: numa}
	if root == "?" {
		f.RootBus, f.Top = "", ""
	}
	f.Classify(Families())
	return f
}

// PlacedGPU makes an H100.
func PlacedGPU(bus uint8, root string, numa int) pci.Function {
	return Placed(bus, root, numa, family.IDs{Vendor: 0x10de, Device: 0x2330, Class: 0x030200})
}

// PlacedNIC makes a ConnectX-7.
func PlacedNIC(bus uint8, root string, numa int) pci.Function {
	return Placed(bus, root, numa, family.IDs{Vendor: 0x15b3, Device: 0x1021, Class: 0x020700})
}
