package verdict

import (
	"testing"

	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// many is a node with eight GPUs of each of two families and sixteen NICs of each of two.
func many() *Node {
	n := &Node{PCIRead: true, PCI: pci.Inventory{NUMANodes: 1}, RDMA: rdma.Inventory{Complete: true}}
	add := func(bus uint8, vendor, device uint16, class uint32, driver string) {
		f := pci.Function{
			Address: pci.Address{Bus: bus}, Vendor: vendor, Device: device, Class: class, RootBus: "pci0000:00",
			Bridges: []pci.Address{{Device: 1}, {Bus: 1}, {Bus: 2, Device: bus}}, Driver: driver, DriverKnown: true, IOMMUGroup: pci.None,
		}
		f.Classify(family.Known())
		n.PCI.Functions = append(n.PCI.Functions, f)
	}
	for i := range uint8(8) {
		add(0x10+i, 0x10de, 0x2330, 0x030200, "nvidia")
		add(0x20+i, 0x1002, 0x74a1, 0x120000, "amdgpu")
	}
	for i := range uint8(16) {
		add(0x30+i, 0x15b3, 0x1021, 0x020700, "mlx5_core")
		add(0x50+i, 0x1d0f, 0xefa2, 0x020000, "efa")
	}
	n.Matrix = topology.Build(topology.Inputs{PCI: &n.PCI, RDMA: &n.RDMA})
	return n
}

// TestAskedOnce: whether the driver drives a GPU is asked once for each pair of families.
func TestAskedOnce(t *testing.T) {
	n := many()
	asked := map[*family.GPU]map[*pci.Function]int{}
	n.Verdict = judgeBy(n, func(node *Node, of *family.GPU, gpu *pci.Function) tristate.State {
		if asked[of] == nil {
			asked[of] = map[*pci.Function]int{}
		}
		asked[of][gpu]++
		return drives(node, of, gpu)
	})
	if len(asked) != 2 {
		t.Fatalf("%d families of GPUs, want 2", len(asked))
	}
	for of, gpus := range asked {
		if len(gpus) != 8 {
			t.Errorf("%s: %d GPUs, want 8", of.Name, len(gpus))
		}
		for gpu, times := range gpus {
			if times != 2 { // families of NICs
				t.Errorf("%s: %v is asked for %d times, want 2", of.Name, gpu.Address, times)
			}
		}
	}
}
