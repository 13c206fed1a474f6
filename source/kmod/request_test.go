package kmod

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"gdr-features/source"
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
	_, table := machine()
	read := func(name string) []string {
		t.Helper()
		const devices = "sys/bus/pci/devices/0000:0"
		fs := tree(t, withKernel(map[string]string{devices + "1:00.0/p2p": "NVIDIA\n", devices + "2:00.0/p2p": "NVIDIA\n"}))
		for i := range functions.Functions {
			functions.Functions[i].Classify(table)
		}
		st := Scan(fs, &functions, table, source.What{})
		if len(st.Peers.Files) != 1 || st.Peers.Files[0].File != "/"+devices+"1:00.0/p2p" || st.Peers.FilesOpen {
			t.Errorf("%s: %+v", name, st.Peers)
		}
		return slices.Sorted(maps.Keys(st.KernelOptions))
	}
	if options := read("a Radeon"); len(options) != 0 {
		t.Errorf("options %q", options)
	}
	functions.Functions[3].Device, functions.Functions[3].Class = 0x74a1, 0x120000
	if got := strings.Join(read("an Instinct"), " "); got != "DMABUF_MOVE_NOTIFY PCI_P2PDMA" {
		t.Errorf("options %q", got)
	}
}
