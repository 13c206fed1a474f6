package verdict_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/source/verbs"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// node is a machine that is ready, in plain values that a row may change.
type node struct {
	pciRead bool
	pci     pci.Inventory
	rdma    rdma.Inventory
	kmod    kmod.State
	virtual tristate.State
	asked   []verbs.Answer
}

const (
	theGPU = iota
	theNIC
)

// at makes an address below a root port of the same bus.
func at(bus uint8) pci.Address { return pci.Address{Bus: bus} }

func function(bus uint8, vendor, device uint16, class uint32, driver string) pci.Function {
	return pci.Function{
		Address: at(bus), Vendor: vendor, Device: device, Class: class,
		RootBus: "pci0000:00", Bridges: []pci.Address{{Bus: 0, Device: 1}, {Bus: 1}, {Bus: 2, Device: bus}},
		Driver: driver, DriverKnown: true, IOMMUGroup: pci.None, IOMMUKnown: true,
	}
}

func ready() *node {
	nic := at(0x20)
	return &node{
		pciRead: true,
		pci: pci.Inventory{NUMANodes: 1, Functions: []pci.Function{
			theGPU: function(0x10, 0x10de, 0x2330, 0x030200, "nvidia"),
			theNIC: function(0x20, 0x15b3, 0x1021, 0x020700, "mlx5_core"),
		}},
		rdma: rdma.Inventory{Complete: true, Devices: []rdma.Device{{
			Name: "mlx5_0", PCI: &nic, PortsRead: true,
			Ports: []rdma.Port{{Number: 1, State: "ACTIVE", LinkLayer: "InfiniBand"}},
		}}},
		kmod: kmod.State{
			Driver: kmod.Driver{Loaded: tristate.True, Open: tristate.True}, Peermem: tristate.True, PeermemBy: "nvidia_peermem",
			Symbols: kmod.Symbols{PeerMemory: tristate.True, UmemDMABuf: tristate.True, MLX5DMABuf: tristate.True},
		},
	}
}

func (n *node) judge() verdict.Verdict {
	return verdict.Judge(verdict.Facts{
		PCIRead: n.pciRead, PCI: &n.pci, RDMA: &n.rdma, Kmod: n.kmod, Asked: n.asked,
		Map: topology.Build(topology.Facts{PCI: &n.pci, RDMA: &n.rdma, Virtual: n.virtual}),
	})
}

func (n *node) gpu() *pci.Function { return &n.pci.Functions[theGPU] }
func (n *node) nic() *pci.Function { return &n.pci.Functions[theNIC] }
func (n *node) port() *rdma.Port   { return &n.rdma.Devices[0].Ports[0] }

func (n *node) drop(i int) { n.pci.Functions = append(n.pci.Functions[:i:i], n.pci.Functions[i+1:]...) }

// TestRows walks the rows of the verdict: what is proven missing, and what only
// cannot be read.
func TestRows(t *testing.T) {
	for _, tc := range []struct {
		name           string
		change         func(*node)
		capable, ready tristate.State
		reason         verdict.Reason
	}{
		{"everything in place", func(*node) {}, tristate.True, tristate.True, ""},

		{"no PCI bus", func(n *node) { *n = node{rdma: rdma.Inventory{Complete: true}} }, tristate.Unknown, tristate.Unknown, "Unreadable"},
		{"no GPU", func(n *node) { n.drop(theGPU) }, tristate.False, tristate.False, "NoGPU"},
		{"GPU of another vendor", func(n *node) { n.gpu().Vendor = 0x1002 }, tristate.False, tristate.False, "NoGPU"},
		{"audio function of a GPU", func(n *node) { n.gpu().Class = 0x040300 }, tristate.False, tristate.False, "NoGPU"},
		{"GeForce", func(n *node) { n.gpu().Device = 0x2684 }, tristate.False, tristate.False, "GPUUnsupported"},
		{"GB10", func(n *node) { n.gpu().Device = 0x2e12 }, tristate.False, tristate.False, "GPUUnsupported"},
		{"unknown GPU id", func(n *node) { n.gpu().Device = 0xfffe }, tristate.True, tristate.True, ""},
		{"no NIC", func(n *node) { n.drop(theNIC); n.rdma.Devices = nil }, tristate.False, tristate.False, "NoNIC"},
		{"bridge of vendor 15b3", func(n *node) { n.nic().Class = 0x060400 }, tristate.False, tristate.False, "NoNIC"},
		{"ConnectX-2", func(n *node) { n.nic().Device = 0x673c }, tristate.False, tristate.False, "NICUnsupported"},
		{"NVLink management", func(n *node) { n.nic().NVLinkManagement = true }, tristate.False, tristate.False, "NICUnsupported"},
		{"unknown NIC id", func(n *node) { n.nic().Device = 0x1fff }, tristate.True, tristate.True, ""},
		{"processor without peer to peer, common switch", addAltra, tristate.True, tristate.True, ""},
		{"processor without peer to peer", func(n *node) { addAltra(n); n.nic().Bridges = nil; n.virtual = tristate.False }, tristate.False, tristate.False, "PlatformForbidsP2P"},
		{"perhaps in a virtual machine", func(n *node) { addAltra(n); n.nic().Bridges = nil; n.virtual = tristate.Unknown }, tristate.Unknown, tristate.Unknown, "Unreadable"},
		{"the same in a virtual machine", func(n *node) { addAltra(n); n.nic().Bridges = nil; n.virtual = tristate.True }, tristate.True, tristate.True, ""},
		{"the same with a coherent GPU", func(n *node) { addAltra(n); n.nic().Bridges = nil; n.gpu().Device = 0x2941 }, tristate.True, tristate.True, ""},
		{"the same with an unknown place", func(n *node) { addAltra(n); n.nic().RootBus = "" }, tristate.Unknown, tristate.Unknown, "Unreadable"},
		{"unidentified function beside no GPU", func(n *node) { n.gpu().Vendor, n.gpu().Unidentified = 0, true }, tristate.Unknown, tristate.Unknown, "Unreadable"},
		{"unidentified function beside no NIC", func(n *node) { n.nic().Vendor, n.nic().Unidentified = 0, true }, tristate.Unknown, tristate.Unknown, "Unreadable"},

		{"GPU passed through", func(n *node) { n.gpu().Driver = "vfio-pci" }, tristate.True, tristate.False, "GPUPassthrough"},
		{"GPU unbound", func(n *node) { n.gpu().Driver = "" }, tristate.True, tristate.False, "GPUDriverNotLoaded"},
		{"GPU bound to nouveau", func(n *node) { n.gpu().Driver = "nouveau" }, tristate.True, tristate.False, "GPUDriverNotLoaded"},
		{"GPU's driver unreadable", func(n *node) { n.gpu().DriverKnown = false }, tristate.True, tristate.Unknown, "Unreadable"},
		{"NIC unbound", func(n *node) { n.nic().Driver = "" }, tristate.True, tristate.False, "NICDriverNotLoaded"},
		{"NIC's driver unreadable", func(n *node) { n.nic().DriverKnown = false }, tristate.True, tristate.Unknown, "Unreadable"},
		{"NIC bound to mlx4", func(n *node) { n.nic().Driver = "mlx4_core" }, tristate.True, tristate.True, ""},
		{"no RDMA device", func(n *node) { n.rdma.Devices = nil }, tristate.True, tristate.False, "NoRDMADevice"},
		{"RDMA devices hidden", func(n *node) { n.rdma = rdma.Inventory{Exclusive: true} }, tristate.True, tristate.Unknown, "Unreadable"},
		{"RDMA device of management only", func(n *node) { n.rdma.Devices[0].NVLinkManagement = true }, tristate.True, tristate.False, "NoRDMADevice"},
		{"port down", func(n *node) { n.port().State = "DOWN" }, tristate.True, tristate.False, "NoActivePort"},
		{"port initialising", func(n *node) { n.port().State = "INIT" }, tristate.True, tristate.False, "NoActivePort"},
		{"port of no use to NCCL", func(n *node) { n.port().LinkLayer = "Unspecified" }, tristate.True, tristate.False, "NoActivePort"},
		{"port state unreadable", func(n *node) { n.port().State = "" }, tristate.True, tristate.Unknown, "Unreadable"},
		{"link layer unreadable", func(n *node) { n.port().LinkLayer = "" }, tristate.True, tristate.Unknown, "Unreadable"},
		{"ports unreadable", func(n *node) { n.rdma.Devices[0].Ports, n.rdma.Devices[0].PortsRead = nil, false }, tristate.True, tristate.Unknown, "Unreadable"},

		{"peermem alone", func(n *node) { n.kmod.Driver.Open = tristate.False }, tristate.True, tristate.True, ""},
		{"DMA-BUF alone", func(n *node) { n.kmod.Peermem = tristate.False }, tristate.True, tristate.True, ""},
		{"DMA-BUF, peermem unreadable", func(n *node) { n.kmod.Peermem = tristate.Unknown }, tristate.True, tristate.True, ""},
		{"neither, the other unreadable", func(n *node) { n.kmod.Peermem, n.kmod.Driver.Open = tristate.False, tristate.Unknown }, tristate.True, tristate.Unknown, "Unreadable"},
		{"neither, API there", func(n *node) { n.kmod.Peermem, n.kmod.Driver.Open = tristate.False, tristate.False }, tristate.True, tristate.False, "PeermemNotLoaded"},
		{"neither, no API", func(n *node) {
			n.kmod.Peermem, n.kmod.Driver.Open, n.kmod.Symbols.PeerMemory = tristate.False, tristate.False, tristate.False
		}, tristate.True, tristate.False, "NoPeerMemoryPath"},

		{"no way to GPU memory beats an unreadable port", func(n *node) {
			n.port().State = ""
			n.kmod.Peermem, n.kmod.Driver.Open = tristate.False, tristate.False
		}, tristate.True, tristate.False, "PeermemNotLoaded"},
		{"proven missing beats unreadable before it", func(n *node) { n.gpu().DriverKnown = false; n.rdma.Devices = nil }, tristate.True, tristate.False, "NoRDMADevice"},
		{"the first of several missing", func(n *node) { n.gpu().Driver, n.nic().Driver = "", "" }, tristate.True, tristate.False, "GPUDriverNotLoaded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := ready()
			tc.change(n)
			v := n.judge()
			if v.Capable != tc.capable || v.Ready != tc.ready || v.Reason != tc.reason {
				t.Errorf("capable %v, ready %v, reason %q; want %v, %v, %q", v.Capable, v.Ready, v.Reason, tc.capable, tc.ready, tc.reason)
			}
		})
	}
}

// addAltra puts the root complex of an Ampere Altra into the machine.
func addAltra(n *node) {
	n.pci.Functions = append(n.pci.Functions, function(0xff, 0x1def, 0xe100, 0x060000, ""))
}

// TestDMABuf takes each prerequisite away, and makes each unreadable.
func TestDMABuf(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*node)
		want   tristate.State
	}{
		{"all there", func(*node) {}, tristate.True},
		{"closed driver", func(n *node) { n.kmod.Driver.Open = tristate.False }, tristate.False},
		{"driver's flavour unreadable", func(n *node) { n.kmod.Driver.Open = tristate.Unknown }, tristate.Unknown},
		{"Volta", func(n *node) { n.gpu().Device = 0x1db1 }, tristate.False},
		{"GPU not driven", func(n *node) { n.gpu().Driver = "" }, tristate.False},
		{"mlx4", func(n *node) { n.nic().Driver = "mlx4_core" }, tristate.False},
		{"no RDMA device", func(n *node) { n.rdma.Devices = nil }, tristate.False},
		{"no umem symbol", func(n *node) { n.kmod.Symbols.UmemDMABuf = tristate.False }, tristate.False},
		{"no mlx5 symbol", func(n *node) { n.kmod.Symbols.MLX5DMABuf = tristate.False }, tristate.False},
		{"no kallsyms", func(n *node) { n.kmod.Symbols = kmod.Symbols{} }, tristate.Unknown},
		{"no kallsyms, closed driver", func(n *node) { n.kmod.Symbols, n.kmod.Driver.Open = kmod.Symbols{}, tristate.False }, tristate.False},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := ready()
			tc.change(n)
			if got := n.judge().DMABuf; got != tc.want {
				t.Errorf("dmabuf %v, want %v", got, tc.want)
			}
		})
	}
}

// TestDMABufFinding: the state and what check says of it follow from the same
// prerequisites. A missing one is named, and so are files that could not be read.
func TestDMABufFinding(t *testing.T) {
	states := []tristate.State{yes, no, unknown}
	gpus := map[string]func(*node){
		"driven": func(*node) {}, "not driven": func(n *node) { n.gpu().Driver = "" }, "passed through": func(n *node) { n.gpu().Driver = "vfio-pci" },
		"driver unreadable": func(n *node) { n.gpu().Driver, n.gpu().DriverKnown = "", false }, "Volta": func(n *node) { n.gpu().Device = 0x1db1 },
	}
	nics := map[string]func(*node){
		"mlx5": func(*node) {}, "mlx4": func(n *node) { n.nic().Driver = "mlx4_core" }, "no device": func(n *node) { n.rdma.Devices = nil },
		"hidden": func(n *node) { n.rdma = rdma.Inventory{Exclusive: true} }, "refuses": func(n *node) { n.asked = []verbs.Answer{{Device: "mlx5_0", DMABuf: no}} },
		"accepts": func(n *node) { n.asked = []verbs.Answer{{Device: "mlx5_0", DMABuf: yes}} },
	}
	for gpu, changeGPU := range gpus {
		for nic, changeNIC := range nics {
			for i := range 81 {
				loaded, open, umem, mlx5 := states[i%3], states[i/3%3], states[i/9%3], states[i/27]
				n := ready()
				changeGPU(n)
				changeNIC(n)
				n.kmod.Peermem = no
				n.kmod.Driver.Loaded, n.kmod.Driver.Open, n.kmod.Symbols.UmemDMABuf, n.kmod.Symbols.MLX5DMABuf = loaded, open, umem, mlx5
				v := n.judge()
				got := finding(t, v, "dmabuf")
				name := fmt.Sprintf("GPU %s, NIC %s, loaded %v, open %v, umem %v, mlx5 %v", gpu, nic, loaded, open, umem, mlx5)
				if loaded == no && v.DMABuf != no {
					t.Errorf("%s: %v without a driver", name, v.DMABuf)
				}
				want := map[tristate.State]verdict.Status{yes: verdict.OK, no: verdict.Fail, unknown: verdict.Undecidable}[v.DMABuf]
				if got.Status != want || (got.Code == "") != (v.DMABuf == yes) || (got.Code == "Unreadable") != (v.DMABuf == unknown) || (len(got.Evidence) == 0) != (v.DMABuf == yes) {
					t.Errorf("%s: %v, and check says %+v", name, v.DMABuf, got)
				}
			}
		}
	}
}

// TestFindings: every finding says something, failures say what to do, and the
// verdict's reason is among them.
func TestFindings(t *testing.T) {
	changes := map[string]func(*node){
		"ready":       func(*node) {},
		"no bus":      func(n *node) { *n = node{rdma: rdma.Inventory{Complete: true}} },
		"no GPU":      func(n *node) { n.drop(theGPU) },
		"GeForce":     func(n *node) { n.gpu().Device = 0x2684 },
		"no NIC":      func(n *node) { n.drop(theNIC); n.rdma.Devices = nil },
		"passthrough": func(n *node) { n.gpu().Driver = "vfio-pci" },
		"no driver":   func(n *node) { n.gpu().Driver = "" },
		"no ports":    func(n *node) { n.port().State = "DOWN" },
		"hidden":      func(n *node) { n.rdma = rdma.Inventory{Exclusive: true} },
		"legacy":      func(n *node) { n.kmod.Stack.PeerDirect = kmod.PeerDirectLegacy },
		"nothing":     func(n *node) { n.kmod = kmod.State{} },
		"no path": func(n *node) {
			n.kmod.Peermem, n.kmod.Driver.Open, n.kmod.Symbols.PeerMemory = tristate.False, tristate.False, tristate.False
		},
		"not loaded": func(n *node) { n.kmod.Peermem, n.kmod.Driver.Open = tristate.False, tristate.False },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			n := ready()
			change(n)
			v := n.judge()
			named := v.Reason == ""
			for _, f := range v.Findings {
				if f.Check == "" || f.Detail == "" || len(f.Sources) == 0 || f.Status == "" {
					t.Errorf("incomplete: %+v", f)
				}
				if (f.Status == verdict.OK) != (f.Code == "") || f.Code != "" && !slices.Contains(verdict.Codes(), f.Code) {
					t.Errorf("code %q at %s: %+v", f.Code, f.Status, f)
				}
				if f.Status == verdict.Fail && f.Reason == "" && v.Ready != tristate.True && f.Check != "dmabuf" {
					t.Errorf("failed without a reason: %+v", f)
				}
				if f.Status == verdict.Fail && f.Fix == "" && f.Reason != verdict.NoGPU {
					t.Errorf("failed without a fix: %+v", f)
				}
				if v.Ready == tristate.True && f.Status == verdict.Fail {
					t.Errorf("ready, and failed: %+v", f)
				}
				named = named || f.Reason == v.Reason
			}
			if !named {
				t.Errorf("reason %q is not among the findings", v.Reason)
			}
		})
	}
}

// TestFindingsPrintable: what a machine calls its files and drivers does not act on
// a terminal.
func TestFindingsPrintable(t *testing.T) {
	n := ready()
	n.kmod.Peermem, n.kmod.Driver.Open, n.kmod.Driver.Version = no, no, "570\x1b[2J"
	n.kmod.Advice = kmod.NoAdvice()
	n.kmod.Advice.File = kmod.ModuleFile{Listed: yes, Name: "nvidia_peermem", Dep: []string{"/lib/modules/6.8\x1b[2J/modules.dep"}, Needs: []string{"ib_uverbs\r"}}
	v := n.judge()
	all := fmt.Sprintf("%q %q", finding(t, v, "gpu-driver"), finding(t, v, "peermem"))
	for _, want := range []string{`nvidia 570?[2J`, `"/lib/modules/6.8?[2J/modules.dep"`, `"/lib/modules/6.8?[2J/modules.dep=nvidia_peermem needs ib_uverbs?"`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in %s", want, all)
		}
	}
	if strings.Contains(all, `\x1b`) || strings.Contains(all, `\r`) {
		t.Error(all)
	}
}

// TestPortOfUnknownLinkLayer: an active port that nobody can tell the use of is shown
// by the file that is missing.
func TestPortOfUnknownLinkLayer(t *testing.T) {
	n := ready()
	n.addNIC()
	n.rdma.Devices[1].Ports, n.rdma.Devices[1].PortsRead = slices.Clone(n.rdma.Devices[0].Ports), true
	n.port().LinkLayer = ""
	got := finding(t, n.judge(), "port")
	if want := "mlx5_0/1 ACTIVE, link layer unknown"; !strings.Contains(got.Detail, want) {
		t.Errorf("no %q in %q", want, got.Detail)
	}
	if want := []string{"/sys/class/infiniband/mlx5_0/ports/1/link_layer=?"}; !slices.Equal(got.Evidence, want) {
		t.Errorf("evidence %q, want %q", got.Evidence, want)
	}
}
