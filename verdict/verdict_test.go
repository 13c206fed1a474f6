package verdict_test

import (
	"strings"
	"testing"

	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/test/sample"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// TestRows goes through the rows of the verdict: what is proven missing, and what
// merely cannot be read.
func TestRows(t *testing.T) {
	for _, tc := range []struct {
		name           string
		change         func(*sample.Node)
		capable, ready tristate.State
		reason         verdict.Reason
	}{
		{"everything in place", func(*sample.Node) {}, tristate.True, tristate.True, ""},

		{"no PCI bus", func(n *sample.Node) { *n = sample.Node{}; n.RDMA.Complete = true }, tristate.Unknown, tristate.Unknown, "Unreadable"},
		{"no GPU", func(n *sample.Node) { n.Drop(sample.GPU) }, tristate.False, tristate.False, "NoGPU"},
		{"GPU of another vendor", func(n *sample.Node) { n.GPU().Vendor = 0x1002 }, tristate.False, tristate.False, "NoGPU"},
		{"audio function of a GPU", func(n *sample.Node) { n.GPU().Class = 0x040300 }, tristate.False, tristate.False, "NoGPU"},
		{"GeForce", func(n *sample.Node) { n.GPU().Device = 0x2684 }, tristate.False, tristate.False, "GPUUnsupported"},
		{"GB10", func(n *sample.Node) { n.GPU().Device = 0x2e12 }, tristate.False, tristate.False, "GPUUnsupported"},
		{"unknown GPU id", func(n *sample.Node) { n.GPU().Device = 0xfffe }, tristate.True, tristate.True, ""},
		{"no NIC", func(n *sample.Node) { n.Drop(sample.NIC); n.RDMA.Devices = nil }, tristate.False, tristate.False, "NoNIC"},
		{"bridge of vendor 15b3", func(n *sample.Node) { n.NIC().Class = 0x060400 }, tristate.False, tristate.False, "NoNIC"},
		{"ConnectX-2", func(n *sample.Node) { n.NIC().Device = 0x673c }, tristate.False, tristate.False, "NICUnsupported"},
		{"NVLink management", func(n *sample.Node) { n.NIC().NVLinkManagement = true }, tristate.False, tristate.False, "NICUnsupported"},
		{"unknown NIC id", func(n *sample.Node) { n.NIC().Device = 0x1fff }, tristate.True, tristate.True, ""},
		{"CPU without peer to peer, common switch", addAltra, tristate.True, tristate.True, ""},
		{"CPU without peer to peer", func(n *sample.Node) { addAltra(n); n.NIC().Bridges = nil; n.Platform.Virtual = tristate.False }, tristate.False, tristate.False, "PlatformForbidsP2P"},
		{"perhaps in a virtual machine", func(n *sample.Node) { addAltra(n); n.NIC().Bridges = nil; n.Platform.Virtual = tristate.Unknown }, tristate.Unknown, tristate.Unknown, "Unreadable"},
		{"the same in a virtual machine", func(n *sample.Node) { addAltra(n); n.NIC().Bridges = nil; n.Platform.Virtual = tristate.True }, tristate.True, tristate.True, ""},
		{"the same with a coherent GPU", func(n *sample.Node) { addAltra(n); n.NIC().Bridges = nil; n.GPU().Device = 0x2941 }, tristate.True, tristate.True, ""},
		{"the same with an unknown place", func(n *sample.Node) { addAltra(n); n.NIC().RootBus = "" }, tristate.Unknown, tristate.Unknown, "Unreadable"},
		{"perhaps a CPU without peer to peer", func(n *sample.Node) { addUnread(n); n.NIC().Bridges = nil; n.Platform.Virtual = tristate.False }, tristate.Unknown, tristate.Unknown, "Unreadable"},
		{"the same, common switch", func(n *sample.Node) { addUnread(n); n.Platform.Virtual = tristate.False }, tristate.True, tristate.True, ""},
		{"the same, coherent GPU", func(n *sample.Node) { addUnread(n); n.NIC().Bridges = nil; n.GPU().Device = 0x2941 }, tristate.True, tristate.True, ""},
		{"unidentified function beside no GPU", func(n *sample.Node) { n.GPU().Vendor, n.GPU().Eligible = 0, pci.IDsUnread }, tristate.Unknown, tristate.Unknown, "Unreadable"},
		{"unidentified function beside no NIC", func(n *sample.Node) { n.NIC().Vendor, n.NIC().Eligible = 0, pci.IDsUnread }, tristate.Unknown, tristate.Unknown, "Unreadable"},

		{"unidentified function beside both", func(n *sample.Node) {
			n.PCI.Functions = append(n.PCI.Functions, pci.Function{Address: sample.At(0x50), Eligible: pci.IDsUnread})
		}, tristate.True, tristate.True, ""},
		{"a NIC of a family that is not judged", func(n *sample.Node) { sample.NotJudged(n.NIC()) }, tristate.Unknown, tristate.Unknown, "NICNotJudged"},
		{"such a NIC beside one that is", func(n *sample.Node) { n.AddNIC(); sample.NotJudged(&n.PCI.Functions[sample.NIC+1]) }, tristate.True, tristate.True, ""},
		{"perhaps a NIC that no table has", func(n *sample.Node) { n.Drop(sample.NIC); n.PCI.Unplaced = true }, tristate.Unknown, tristate.Unknown, "Unreadable"},
		{"the same beside a NIC", func(n *sample.Node) { n.PCI.Unplaced = true }, tristate.True, tristate.True, ""},
		{"the same beside a NIC that is not eligible", func(n *sample.Node) { n.NIC().Device, n.PCI.Unplaced = 0x673c, true }, tristate.False, tristate.False, "NICUnsupported"},
		{"the same beside a NIC that is not judged", func(n *sample.Node) { sample.NotJudged(n.NIC()); n.PCI.Unplaced = true }, tristate.Unknown, tristate.Unknown, "NICNotJudged"},
		{"the same with a GeForce", func(n *sample.Node) { n.Drop(sample.NIC); n.GPU().Device, n.PCI.Unplaced = 0x2684, true }, tristate.False, tristate.False, "GPUUnsupported"},
		{"a GeForce is driven, the other GPU is not", func(n *sample.Node) { addGPU(n, 0x2684); n.GPU().Driver = "" }, tristate.True, tristate.False, "GPUDriverNotLoaded"},
		{"a NIC that is left out is driven, the other is not", func(n *sample.Node) {
			n.AddNIC()
			n.PCI.Functions[sample.NIC+1].NVLinkManagement = true
			n.NIC().Driver = ""
		}, tristate.True, tristate.False, "NICDriverNotLoaded"},
		{"a GPU whose driver cannot be read is no driven NIC", func(n *sample.Node) { n.GPU().DriverKnown, n.NIC().Driver = false, "" }, tristate.True, tristate.False, "NICDriverNotLoaded"},
		{"the NIC that is reached is of another family than the one in use", func(n *sample.Node) {
			n.Platform.Virtual = no
			n.AddNIC()
			addAltra(n)
			connectX3(n)
			n.NIC().Driver = ""
			n.PCI.Functions[sample.NIC+1].Bridges = nil
			n.RDMA.Devices[1].Ports = n.RDMA.Devices[0].Ports
		}, tristate.True, tristate.False, "NICDriverNotLoaded"},
		{"the driver maps for no device, a client is there", func(n *sample.Node) {
			n.Kmod.Drivers["nvidia"] = kmod.Driver{Loaded: yes, Open: yes, Version: "580.65.06"}
			n.Kmod.Params = kmod.Params{kmod.TopoOverride: "2"}
		}, tristate.True, tristate.False, "NoPeerMemoryPath"},
		{"the same with a GPU that shares memory with its CPU", func(n *sample.Node) {
			n.GPU().Device = 0x2941
			n.Kmod.Drivers["nvidia"] = kmod.Driver{Loaded: yes, Open: yes, Version: "580.65.06"}
			n.Kmod.Params = kmod.Params{kmod.TopoOverride: "2"}
		}, tristate.True, tristate.True, ""},

		{"GPU passed through", func(n *sample.Node) { n.GPU().Driver = "vfio-pci" }, tristate.True, tristate.False, "GPUPassthrough"},
		{"GPU unbound", func(n *sample.Node) { n.GPU().Driver = "" }, tristate.True, tristate.False, "GPUDriverNotLoaded"},
		{"GPU bound to nouveau", func(n *sample.Node) { n.GPU().Driver = "nouveau" }, tristate.True, tristate.False, "GPUDriverNotLoaded"},
		{"GPU's driver unreadable", func(n *sample.Node) { n.GPU().DriverKnown = false }, tristate.True, tristate.Unknown, "Unreadable"},
		{"GPU excluded by its driver", excluded(0x10, tristate.True), tristate.True, tristate.False, "GPUDriverNotLoaded"},
		{"GPU perhaps excluded", excluded(0x10, tristate.Unknown), tristate.True, tristate.Unknown, "Unreadable"},
		{"what the GPU's driver says was not read", func(n *sample.Node) { n.Platform.GPUs.Said = nil }, tristate.True, tristate.Unknown, "Unreadable"},
		{"one GPU of two excluded", func(n *sample.Node) { addGPU(n, 0x2330); excluded(0x10, tristate.True)(n) }, tristate.True, tristate.True, ""},
		{"one GPU of two excluded, the other unbound", func(n *sample.Node) {
			addGPU(n, 0x2330)
			n.GPU().Driver = ""
			excluded(0x30, tristate.True)(n)
		}, tristate.True, tristate.False, "GPUDriverNotLoaded"},
		{"DMA-BUF alone, the GPU that has it is excluded", func(n *sample.Node) {
			addGPU(n, 0x1db6) // before Turing
			n.Kmod.Peers = sample.Peers(tristate.False)
			excluded(0x10, tristate.True)(n)
		}, tristate.True, tristate.False, "PeermemNotLoaded"},
		{"the GPU that is not virtual is excluded", func(n *sample.Node) {
			addGPU(n, 0x2330)
			excluded(0x10, tristate.True)(n)
			n.Platform.GPUs.Said[sample.At(0x30)] = platform.Information{Model: "NVIDIA A30-8C", Excluded: tristate.False}
		}, tristate.True, tristate.Unknown, "Unreadable"},
		{"NIC unbound", func(n *sample.Node) { n.NIC().Driver = "" }, tristate.True, tristate.False, "NICDriverNotLoaded"},
		{"NIC's driver unreadable", func(n *sample.Node) { n.NIC().DriverKnown = false }, tristate.True, tristate.Unknown, "Unreadable"},
		{"NIC bound to the driver of another family", func(n *sample.Node) { n.NIC().Driver = "mlx4_core" }, tristate.True, tristate.False, "NICDriverNotLoaded"},
		{"ConnectX-3", connectX3, tristate.True, tristate.True, ""},
		{"ConnectX-3, without a peer memory client", func(n *sample.Node) { connectX3(n); n.Kmod.Peers = sample.Peers(tristate.False) }, tristate.True, tristate.False, "PeermemNotLoaded"},
		{"no RDMA device", func(n *sample.Node) { n.RDMA.Devices = nil }, tristate.True, tristate.False, "NoRDMADevice"},
		{"RDMA devices hidden", func(n *sample.Node) { n.RDMA = rdma.Inventory{Exclusive: true} }, tristate.True, tristate.Unknown, "Unreadable"},
		{"RDMA device of management only", func(n *sample.Node) { n.RDMA.Devices[0].NVLinkManagement = true }, tristate.True, tristate.False, "NoRDMADevice"},
		{"port down", func(n *sample.Node) { n.Port().State = "DOWN" }, tristate.True, tristate.False, "NoActivePort"},
		{"port initialising", func(n *sample.Node) { n.Port().State = "INIT" }, tristate.True, tristate.False, "NoActivePort"},
		{"port of no use to NCCL", func(n *sample.Node) { n.Port().LinkLayer = "Unspecified" }, tristate.True, tristate.False, "NoActivePort"},
		{"port state unreadable", func(n *sample.Node) { n.Port().State = "" }, tristate.True, tristate.Unknown, "Unreadable"},
		{"link layer unreadable", func(n *sample.Node) { n.Port().LinkLayer = "" }, tristate.True, tristate.Unknown, "Unreadable"},
		{"ports unreadable", func(n *sample.Node) { n.RDMA.Devices[0].Ports, n.RDMA.Devices[0].PortsRead = nil, false }, tristate.True, tristate.Unknown, "Unreadable"},

		{"peermem alone", func(n *sample.Node) { n.Kmod.Drivers = sample.Driver(tristate.True, tristate.False) }, tristate.True, tristate.True, ""},
		{"DMA-BUF alone", func(n *sample.Node) { n.Kmod.Peers = sample.Peers(tristate.False) }, tristate.True, tristate.True, ""},
		{"DMA-BUF, peermem unreadable", func(n *sample.Node) { n.Kmod.Peers = sample.Peers(tristate.Unknown) }, tristate.True, tristate.True, ""},
		{"neither, the other unreadable", func(n *sample.Node) {
			n.Kmod.Peers, n.Kmod.Drivers = sample.Peers(tristate.False), sample.Driver(tristate.True, tristate.Unknown)
		}, tristate.True, tristate.Unknown, "Unreadable"},
		{"neither, API there", func(n *sample.Node) {
			n.Kmod.Peers, n.Kmod.Drivers = sample.Peers(tristate.False), sample.Driver(tristate.True, tristate.False)
		}, tristate.True, tristate.False, "PeermemNotLoaded"},
		{"neither, no API", func(n *sample.Node) {
			n.Kmod.Peers, n.Kmod.Drivers, n.Kmod.Symbols[kmod.PeerMemoryAPI] = sample.Peers(tristate.False), sample.Driver(tristate.True, tristate.False), kmod.Symbol{Found: tristate.False}
		}, tristate.True, tristate.False, "NoPeerMemoryPath"},

		{"no way to GPU memory beats an unreadable port", func(n *sample.Node) {
			n.Port().State = ""
			n.Kmod.Peers, n.Kmod.Drivers = sample.Peers(tristate.False), sample.Driver(tristate.True, tristate.False)
		}, tristate.True, tristate.False, "PeermemNotLoaded"},
		{"proven missing beats unreadable before it", func(n *sample.Node) { n.GPU().DriverKnown = false; n.RDMA.Devices = nil }, tristate.True, tristate.False, "NoRDMADevice"},
		{"the first of several missing", func(n *sample.Node) { n.GPU().Driver, n.NIC().Driver = "", "" }, tristate.True, tristate.False, "GPUDriverNotLoaded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := sample.Ready()
			tc.change(n)
			v := n.Judge().Verdict
			if v.Capable != tc.capable || v.Ready != tc.ready || v.Reason != tc.reason {
				t.Errorf("capable %v, ready %v, reason %q; want %v, %v, %q", v.Capable, v.Ready, v.Reason, tc.capable, tc.ready, tc.reason)
			}
		})
	}
}

// excluded: it is this whether the driver excludes the GPU on a bus.
func excluded(bus uint8, is tristate.State) func(*sample.Node) {
	return func(n *sample.Node) { n.Platform.GPUs.Said[sample.At(bus)] = platform.Information{Excluded: is} }
}

// addGPU adds a second GPU.
func addGPU(n *sample.Node, device uint16) {
	n.PCI.Functions = append(n.PCI.Functions, sample.Function(0x30, 0x10de, device, 0x030200, "nvidia"))
}

func connectX3(n *sample.Node) { n.NIC().Device, n.NIC().Driver = 0x1003, "mlx4_core" }

// TestFamilies: the prerequisites of NICs hold within one family, and the node is
// judged by the family that comes furthest. The first NIC is of mlx4, the second of
// mlx5.
func TestFamilies(t *testing.T) {
	const (
		mlx4 = iota
		mlx5
	)
	driver := func(n *sample.Node, i int, name string) { n.PCI.Functions[1+i].Driver = name }
	port := func(n *sample.Node, i int, state string) { n.RDMA.Devices[i].Ports[0].State = state }
	for _, tc := range []struct {
		name                   string
		change                 func(*sample.Node)
		ready                  tristate.State
		reason                 verdict.Reason
		family                 string
		peermem, dmabuf, steps string
	}{
		{"all in place", func(*sample.Node) {}, yes, "", "mlx5", "true", "true", "true true true true"},
		{"mlx5 is down", func(n *sample.Node) { port(n, mlx5, "DOWN") }, yes, "", "mlx4", "true", "false", "true true true true"},
		{"mlx5 is down, and DMA-BUF is its way alone", func(n *sample.Node) {
			port(n, mlx5, "DOWN")
			n.Kmod.Peers = sample.Peers(no)
		}, no, "PeermemNotLoaded", "mlx4", "false", "false", "true true true false"},
		{"no client, and mlx5 is down", func(n *sample.Node) {
			port(n, mlx5, "DOWN")
			n.Kmod.Peers = sample.Peers(no)
		}, no, "PeermemNotLoaded", "mlx4", "false", "false", "true true true false"},
		{"mlx4 has no driver, mlx5 no RDMA device", func(n *sample.Node) {
			driver(n, mlx4, "")
			n.RDMA.Devices = nil
		}, no, "NoRDMADevice", "mlx5", "true", "false", "true false false true"},
		{"both are down", func(n *sample.Node) {
			port(n, mlx4, "DOWN")
			port(n, mlx5, "DOWN")
		}, no, "NoActivePort", "mlx5", "true", "true", "true true false true"},
		{"one is not known, the other is down", func(n *sample.Node) {
			port(n, mlx4, "")
			port(n, mlx5, "DOWN")
		}, unknown, "Unreadable", "mlx4", "true", "false", "true true unknown true"},
		{"no driver at all", func(n *sample.Node) {
			driver(n, mlx4, "vfio-pci")
			driver(n, mlx5, "")
		}, no, "NICDriverNotLoaded", "mlx5", "true", "false", "false true true true"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := sample.Ready()
			connectX3(n)
			n.AddNIC()
			n.RDMA.Devices[mlx5].Ports = []rdma.Port{{Number: 1, State: "ACTIVE", LinkLayer: "InfiniBand"}}
			tc.change(n)
			v := n.Judge().Verdict
			if v.Ready != tc.ready || v.Reason != tc.reason {
				t.Errorf("ready %v, reason %q; want %v, %q", v.Ready, v.Reason, tc.ready, tc.reason)
			}
			if got := verdict.Judge(&n.Node).NIC; got.Name != tc.family {
				t.Errorf("%s comes furthest, want %s", got.Name, tc.family)
			}
			if v.Peermem.String() != tc.peermem || v.DMABuf.String() != tc.dmabuf {
				t.Errorf("peermem %v, DMA-BUF %v; want %s, %s", v.Peermem, v.DMABuf, tc.peermem, tc.dmabuf)
			}
			var steps []string
			for _, s := range v.Steps[4:] {
				steps = append(steps, s.Met.String())
			}
			if got := strings.Join(steps, " "); got != tc.steps {
				t.Errorf("NIC driver, RDMA device, port, GPU memory: %s, want %s", got, tc.steps)
			}
		})
	}
}

// addAltra puts the root complex of an Ampere Altra into the machine.
func addAltra(n *sample.Node) {
	n.PCI.Functions = append(n.PCI.Functions, sample.Function(0xff, 0x1def, 0xe100, 0x060000, ""))
}

// addUnread puts a function whose ids cannot be read on the root bus.
func addUnread(n *sample.Node) {
	n.PCI.Functions = append(n.PCI.Functions, pci.Function{Address: sample.At(0xff), RootBus: "pci0000:00"})
}

// TestDMABuf takes each prerequisite away, and makes each unreadable.
func TestDMABuf(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*sample.Node)
		want   tristate.State
	}{
		{"all there", func(*sample.Node) {}, tristate.True},
		{"below two root ports", func(n *sample.Node) { n.NIC().Bridges = nil }, tristate.True},
		{"closed driver", func(n *sample.Node) { n.Kmod.Drivers = sample.Driver(tristate.True, tristate.False) }, tristate.False},
		{"driver's kernel module type unreadable", func(n *sample.Node) { n.Kmod.Drivers = sample.Driver(tristate.True, tristate.Unknown) }, tristate.Unknown},
		{"Volta", func(n *sample.Node) { n.GPU().Device = 0x1db1 }, tristate.False},
		{"GPU not driven", func(n *sample.Node) { n.GPU().Driver = "" }, tristate.False},
		{"mlx4", func(n *sample.Node) { n.NIC().Driver = "mlx4_core" }, tristate.False},
		{"no RDMA device", func(n *sample.Node) { n.RDMA.Devices = nil }, tristate.False},
		{"no umem symbol", func(n *sample.Node) { n.Kmod.Symbols[kmod.UmemDMABuf] = kmod.Symbol{Found: tristate.False} }, tristate.False},
		{"no mlx5 symbol", func(n *sample.Node) { n.Kmod.Symbols[sample.MLX5DMABuf] = kmod.Symbol{Found: tristate.False} }, tristate.False},
		{"no kallsyms", func(n *sample.Node) { n.Kmod.Symbols = kmod.Symbols{} }, tristate.Unknown},
		{"no kallsyms, closed driver", func(n *sample.Node) {
			n.Kmod.Symbols, n.Kmod.Drivers = kmod.Symbols{}, sample.Driver(tristate.True, tristate.False)
		}, tristate.False},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := sample.Ready()
			tc.change(n)
			if got := n.Judge().Verdict.DMABuf; got != tc.want {
				t.Errorf("dmabuf %v, want %v", got, tc.want)
			}
		})
	}
}

// TestJudgeWithoutFamilies: a table without families of GPUs or NICs is judged by the hardware
// alone.
func TestJudgeWithoutFamilies(t *testing.T) {
	for _, table := range []family.Table{{NICs: family.Known().NICs}, {GPUs: family.Known().GPUs}} {
		n := sample.Ready().Judge()
		n.Families = table
		n.Verdict = verdict.Judge(n)
		if v := n.Verdict; v.GPU != nil || v.NIC != nil || len(v.Steps) != 1 || v.Peermem != tristate.Unknown {
			t.Errorf("%d families of GPUs: %+v", len(table.GPUs), v)
		}
	}
}
