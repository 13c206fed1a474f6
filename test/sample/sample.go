// Package sample gives tests a machine in plain values.
package sample

import (
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Node is a machine that is ready, in plain values that a test may change before it is
// judged.
type Node struct{ verdict.Node }

// Places of the two functions in Node.PCI.
const (
	GPU = iota
	NIC
)

// At makes an address: every function is below one switch.
func At(bus uint8) pci.Address { return pci.Address{Bus: bus} }

// Function makes a function on a bus, below the same switch as the others, bound to
// a driver.
func Function(bus uint8, vendor, device uint16, class uint32, driver string) pci.Function {
	return pci.Function{
		Address: At(bus), Vendor: vendor, Device: device, Class: class, IDFile: pci.ModaliasFile,
		RootBus: "pci0000:00", Top: "pci0000:00", Bridges: []pci.Address{{Bus: 0, Device: 1}, {Bus: 1}, {Bus: 2, Device: bus}},
		Driver: driver, DriverKnown: true, IOMMUGroup: pci.None,
	}
}

// Ready returns a machine with one GPU and one NIC, and every prerequisite in place.
func Ready() *Node {
	nic := At(0x20)
	return &Node{Node: verdict.Node{
		PCIRead: true,
		PCI: pci.Inventory{NUMANodes: 1, Functions: []pci.Function{
			GPU: Function(0x10, 0x10de, 0x2330, 0x030200, "nvidia"),
			NIC: Function(0x20, 0x15b3, 0x1021, 0x020700, "mlx5_core"),
		}},
		RDMA: rdma.Inventory{Complete: true, Devices: []rdma.Device{{
			Name: "mlx5_0", PCI: &nic, PortsRead: true,
			Ports: []rdma.Port{{Number: 1, State: "ACTIVE", LinkLayer: "InfiniBand"}},
		}}},
		Platform: platform.State{GPUs: platform.GPUs{Said: map[pci.Address]platform.Information{}}},
		Kmod: kmod.State{
			Drivers: Driver(tristate.True, tristate.True), Peers: Peers(tristate.True),
			Symbols: Symbols(tristate.True, tristate.True, tristate.True),
			Files: map[kmod.Fact][]string{
				kmod.FactDriver:  {"/proc/driver/nvidia/version", "/sys/module/nvidia"},
				kmod.FactSymbols: {"/proc/kallsyms"},
			},
		},
	}}
}

// Peers are the marks of nvidia_peermem, which serves every family of NICs.
func Peers(loaded tristate.State) kmod.Peers {
	state := map[tristate.State]kmod.Init{tristate.True: kmod.Live, tristate.False: kmod.Absent}[loaded]
	p := kmod.Peers{Modules: map[string]kmod.Init{"nvidia_peermem": state, "nv_peer_mem": kmod.Absent}, Directories: map[string]tristate.State{}}
	p.Holders = map[string]kmod.Holders{"ib_peer_mem": {Listed: tristate.False, Module: tristate.False}}
	for _, dir := range kmod.PeerDirs() {
		for _, client := range family.Known().GPUs[0].Client.Directories {
			p.Directories[dir+"/"+client] = tristate.False
		}
	}
	return p
}

// Driver is the GPU driver of NVIDIA.
func Driver(loaded, open tristate.State) map[string]kmod.Driver {
	return map[string]kmod.Driver{"nvidia": {Loaded: loaded, Open: open}}
}

// MLX5DMABuf is the function of mlx5 that registers DMA-BUF.
const MLX5DMABuf = "mlx5_ib_reg_user_mr_dmabuf"

// Symbols are those of the PeerDirect API, of the RDMA core's DMA-BUF and of mlx5's.
func Symbols(api, umem, mlx5 tristate.State) kmod.Symbols {
	return kmod.Symbols{kmod.PeerMemoryAPI: {Found: api}, kmod.UmemDMABuf: {Found: umem}, MLX5DMABuf: {Found: mlx5}}
}

// Judge classifies the functions, builds the matrix and judges the node.
func (n *Node) Judge() *verdict.Node {
	for i := range n.PCI.Functions {
		n.PCI.Functions[i].Classify(Families())
	}
	n.Matrix = topology.Build(topology.Inputs{PCI: &n.PCI, RDMA: &n.RDMA, Platform: n.Platform})
	n.Verdict = verdict.Judge(&n.Node)
	return &n.Node
}

// GPU is the GPU of Ready.
func (n *Node) GPU() *pci.Function { return &n.PCI.Functions[GPU] }

// NIC is the NIC of Ready.
func (n *Node) NIC() *pci.Function { return &n.PCI.Functions[NIC] }

// Port is the port of that NIC.
func (n *Node) Port() *rdma.Port { return &n.RDMA.Devices[0].Ports[0] }

// Drop takes a function out.
func (n *Node) Drop(i int) { n.PCI.Functions = append(n.PCI.Functions[:i:i], n.PCI.Functions[i+1:]...) }

// AddNIC adds a second NIC beside the first.
func (n *Node) AddNIC() {
	second := At(0x21)
	n.PCI.Functions = append(n.PCI.Functions, Function(0x21, 0x15b3, 0x1021, 0x020700, "mlx5_core"))
	n.RDMA.Devices = append(n.RDMA.Devices, rdma.Device{Name: "mlx5_1", PCI: &second, PortsRead: true})
}
