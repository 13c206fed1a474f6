package kmod

import (
	"strings"
	"testing"

	"gdr-features/source/pci"
)

// TestBoundFunctions: only functions that their own driver drives are asked, and only GPUs
// that are there ask for options of the kernel.
func TestBoundFunctions(t *testing.T) {
	functions := pci.Inventory{Functions: []pci.Function{
		{Address: pci.Address{Bus: 1}, Vendor: 0x1d0f, Device: 0xefa1, Class: 0x020000, Driver: "efa", DriverKnown: true},
		{Address: pci.Address{Bus: 2}, Vendor: 0x1d0f, Device: 0xefa1, Class: 0x020000, Driver: "vfio-pci", DriverKnown: true},
		{Address: pci.Address{Bus: 3}, Vendor: 0x15b3, Device: 0x1021, Class: 0x020000, Driver: "mlx5_core", DriverKnown: true},
		{Address: pci.Address{Bus: 4}, Vendor: 0x1002, Device: 0x744c, Class: 0x030000, Driver: "amdgpu", DriverKnown: true}, // a Radeon
		{Address: pci.Address{Bus: 5}, Vendor: 0x10de, Device: 0x2330, Class: 0x030200, Driver: "nvidia", DriverKnown: true},
	}}
	table := present([]string{"nvidia", "amd"}, []string{"mlx5", "efa"})
	classify := func() Request {
		for i := range functions.Functions {
			functions.Functions[i].Classify(table)
		}
		return For(&functions, table)
	}
	if got := classify(); len(got.PeerFiles) != 1 || len(got.PeerFiles["efa"]) != 1 || got.PeerFiles["efa"][0].Bus != 1 || len(got.KernelOptions) != 0 {
		t.Errorf("%+v", got)
	}
	functions.Functions[3].Device, functions.Functions[3].Class = 0x74a1, 0x120000
	var names []string
	for _, o := range classify().KernelOptions {
		names = append(names, o.Name)
	}
	if got := strings.Join(names, " "); got != "PCI_P2PDMA DMABUF_MOVE_NOTIFY" {
		t.Errorf("options %q", got)
	}
}
