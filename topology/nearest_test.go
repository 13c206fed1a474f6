package topology_test

import (
	"slices"
	"testing"

	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/test/machine"
	"gdr-features/test/sample"
	"gdr-features/test/testsize"
	"gdr-features/topology"
)

// TestNearestNICs compares the nearest NICs of every GPU of every machine with the
// levels of all its pairs: the smallest level, and every NIC at it.
func TestNearestNICs(t *testing.T) {
	ties := 0
	for _, m := range testsize.Share(machine.All(t, machinesDir)) {
		t.Run(m.Name, func(t *testing.T) {
			r := ready(t, m)
			for i, gpu := range r.Matrix.GPUs {
				near := gpu.Near(topology.Hardware)
				best, unknown := topology.SYS+1, false
				var want []*pci.Function
				for _, p := range r.Matrix.PairsOf(i) {
					n := &r.Matrix.NICs[p.NIC]
					switch {
					case n.Function == nil, !n.Function.NICEligible(), slices.Contains(want, n.Function):
					case n.Function.PhysFn != nil && r.PCI.Find(*n.Function.PhysFn) != nil:
					case p.Level == topology.Unknown:
						unknown = true
					case p.Level < best:
						best, want = p.Level, []*pci.Function{n.Function}
					case p.Level == best:
						want = append(want, n.Function)
					}
				}
				if unknown && near.Level == topology.Unknown || want == nil {
					best, want = topology.Unknown, nil // a NIC of unknown level may be nearer
				}
				if near.Level != best || !slices.Equal(near.Functions, want) {
					t.Errorf("GPU%d: %v %v, want %v %v", i, near.Level, addresses(near.Functions), best, addresses(want))
				}
				if len(want) > 1 {
					ties++
				}
			}
		})
	}
	if ties < 20 && !testsize.Partial() {
		t.Errorf("only %d GPUs with several NICs at the same level", ties)
	}
}

func addresses(functions []*pci.Function) []pci.Address {
	var all []pci.Address
	for _, f := range functions {
		all = append(all, f.Address)
	}
	return all
}

func at(t *testing.T, text string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// build makes a matrix of functions alone.
func build(nodes int, functions ...pci.Function) topology.Matrix {
	for i := range functions {
		functions[i].Classify(sample.Families())
	}
	return topology.Build(topology.Inputs{PCI: &pci.Inventory{Functions: functions, NUMANodes: nodes}, RDMA: &rdma.Inventory{}})
}

// TestNearestOfOddMachines: ties, virtual functions, unknown places.
func TestNearestOfOddMachines(t *testing.T) {
	port := at(t, "0000:10:00.0")
	gpu := pci.Function{Address: at(t, "0000:11:00.0"), Vendor: 0x10de, Device: 0x2330, Class: 0x030200, RootBus: "pci0000:10", Bridges: []pci.Address{port}, NearNUMA: 0}
	nic := func(address string, numa int, bridges ...pci.Address) pci.Function {
		return pci.Function{Address: at(t, address), Vendor: 0x15b3, Device: 0x1021, Class: 0x020700, RootBus: "pci" + address[:7], Bridges: bridges, NearNUMA: numa}
	}
	near, second, far := nic("0000:10:01.0", 0, port), nic("0000:10:02.0", 0, port), nic("0000:20:00.0", 1)
	virtual := nic("0000:10:01.1", 0, port)
	virtual.PhysFn = &near.Address
	lost := near
	lost.RootBus = ""
	noNode := nic("0000:30:00.0", pci.None)

	tests := []struct {
		name      string
		functions []pci.Function
		level     topology.Level
		nearest   []string
	}{
		{"no NIC", []pci.Function{gpu}, topology.Unknown, nil},
		{"one", []pci.Function{gpu, far}, topology.SYS, []string{"0000:20:00.0"}},
		{"two at the same level", []pci.Function{near, second, gpu, far}, topology.PIX, []string{"0000:10:01.0", "0000:10:02.0"}},
		{"a virtual function and its physical one", []pci.Function{near, virtual, gpu}, topology.PIX, []string{"0000:10:01.0"}},
		{"a virtual function alone", []pci.Function{virtual, gpu}, topology.PIX, []string{"0000:10:01.1"}},
		{"one without place may be nearer", []pci.Function{lost, gpu, far}, topology.Unknown, nil},
		{"none is nearer than PIX", []pci.Function{lost, second, gpu}, topology.PIX, []string{"0000:10:02.0"}},
		{"one without NUMA node may be nearer", []pci.Function{gpu, far, noNode}, topology.Unknown, nil},
		{"one without NUMA node is farther", []pci.Function{near, gpu, noNode}, topology.PIX, []string{"0000:10:01.0"}},
	}
	for _, tt := range tests {
		for _, device := range []uint16{0x2330, 0x2684} { // H100, GeForce RTX 4090
			functions := slices.Clone(tt.functions)
			i := slices.IndexFunc(functions, func(f pci.Function) bool { return f.Vendor == 0x10de })
			functions[i].Device = device
			m := build(2, functions...)
			got := m.GPUs[0].Near(topology.Hardware)
			var names []string
			for _, f := range got.Functions {
				names = append(names, f.Address.String())
			}
			if got.Level != tt.level || !slices.Equal(names, tt.nearest) {
				t.Errorf("%s, GPU %04x: %v %v, want %v %v", tt.name, device, got.Level, names, tt.level, tt.nearest)
			}
		}
	}
}

// TestBest: the best level of any pair is known where no function that was not read can be nearer.
func TestBest(t *testing.T) {
	for _, tt := range []struct {
		name             string
		bridges, of      []pci.Address // of the NIC, of the GPU
		lost, incomplete bool
		want, hardware   topology.Level
	}{
		{"PIX", []pci.Address{{Bus: 1}}, []pci.Address{{Bus: 1}}, false, false, topology.PIX, topology.PIX},
		{"PIX, and a function without ids", []pci.Address{{Bus: 1}}, []pci.Address{{Bus: 1}}, false, true, topology.PIX, topology.Unknown},
		{"PHB", []pci.Address{{Bus: 1}}, []pci.Address{{Bus: 2}}, false, false, topology.PHB, topology.PHB},
		{"PHB, and a function without ids", []pci.Address{{Bus: 1}}, []pci.Address{{Bus: 2}}, false, true, topology.Unknown, topology.Unknown},
		{"PHB, and a NIC without place", []pci.Address{{Bus: 1}}, []pci.Address{{Bus: 2}}, true, false, topology.Unknown, topology.Unknown},
		{"PIX, and a NIC without place", []pci.Address{{Bus: 1}}, []pci.Address{{Bus: 1}}, true, false, topology.PIX, topology.PIX},
	} {
		nic := sample.PlacedNIC(0x20, "pci0000:00", 0)
		gpu := sample.PlacedGPU(0x10, "pci0000:00", 0)
		nic.Bridges, gpu.Bridges = tt.bridges, tt.of
		functions := []pci.Function{gpu, nic}
		if tt.lost {
			functions = append(functions, sample.PlacedNIC(0x30, "?", 0))
		}
		if tt.incomplete {
			functions = append(functions, pci.Function{Address: pci.Address{Bus: 0x40}, Eligible: pci.IDsUnread})
		}
		m := topology.Build(topology.Inputs{PCI: &pci.Inventory{Functions: functions, NUMANodes: 1}, RDMA: &rdma.Inventory{}})
		if m.Best != tt.want || m.Hardware.Level != tt.hardware {
			t.Errorf("%s: best %v, level %v; want %v, %v", tt.name, m.Best, m.Hardware.Level, tt.want, tt.hardware)
		}
	}
}

// TestNodesOfGPUMemory: the nodes that a driver adds for a GPU's memory change no level.
func TestNodesOfGPUMemory(t *testing.T) {
	for _, tt := range []struct {
		nodes, withCPUs int
		want            topology.Level
	}{
		{1, 0, topology.NODE},
		{2, 1, topology.NODE},
		{9, 1, topology.NODE},
		{2, 0, topology.Unknown},
		{3, 2, topology.Unknown},
	} {
		inv := pci.Inventory{NUMANodes: tt.nodes, OneCPUNode: tt.withCPUs == 1, Functions: []pci.Function{
			{Address: at(t, "0002:01:00.0"), Vendor: 0x15b3, Device: 0x1021, Class: 0x020700, RootBus: "pci0002:00", NearNUMA: pci.None},
			{Address: at(t, "0009:01:00.0"), Vendor: 0x10de, Device: 0x2342, Class: 0x030200, RootBus: "pci0009:00", NearNUMA: pci.None},
		}}
		for f := range inv.All() {
			f.Classify(family.Known())
		}
		if m := topology.Build(topology.Inputs{PCI: &inv, RDMA: &rdma.Inventory{}}); m.Hardware.Level != tt.want {
			t.Errorf("%d nodes, %d with CPUs: %v, want %v", tt.nodes, tt.withCPUs, m.Hardware.Level, tt.want)
		}
	}
}

// TestBetween: the bridges on the path to the first of the nearest NICs, and the
// ports where the path crosses from one to the other.
func TestBetween(t *testing.T) {
	root, up, down1, down2 := at(t, "0000:10:01.0"), at(t, "0000:11:00.0"), at(t, "0000:12:00.0"), at(t, "0000:12:01.0")
	gpu := pci.Function{Address: at(t, "0000:13:00.0"), Vendor: 0x10de, Device: 0x2330, Class: 0x030200, RootBus: "pci0000:10", Bridges: []pci.Address{root, up, down1}}
	nic := pci.Function{Address: at(t, "0000:14:00.0"), Vendor: 0x15b3, Device: 0x1021, Class: 0x020700, RootBus: "pci0000:10", Bridges: []pci.Address{root, up, down2}}
	apart := nic
	apart.RootBus, apart.Bridges = "pci0000:20", []pci.Address{at(t, "0000:20:01.0")}
	tests := []struct {
		name              string
		functions         []pci.Function
		between, crossing []pci.Address
	}{
		{"no NIC", []pci.Function{gpu}, nil, nil},
		{"one switch", []pci.Function{gpu, nic}, []pci.Address{down1, down2}, []pci.Address{down1, down2}},
		{"two root buses", []pci.Function{gpu, apart}, []pci.Address{root, up, down1, apart.Bridges[0]}, nil},
	}
	for _, tt := range tests {
		m := build(1, tt.functions...)
		if got := m.GPUs[0].Between(); !slices.Equal(got, tt.between) {
			t.Errorf("%s: between %v, want %v", tt.name, got, tt.between)
		}
		if got := m.GPUs[0].Crossing(); !slices.Equal(got, tt.crossing) {
			t.Errorf("%s: crossing %v, want %v", tt.name, got, tt.crossing)
		}
	}
}

// TestNearestWithManagement: a NIC that manages NVLink switches as far as its RDMA
// device alone tells is not eligible, but still counts for the hardware: the device is
// there only while a driver is bound.
func TestNearestWithManagement(t *testing.T) {
	n := sample.Ready()
	for _, management := range []bool{false, true} {
		n.RDMA.Devices[0].NVLinkManagement = management
		m := n.Judge().Matrix
		nic := &m.NICs[0]
		if nic.Counts() == management || nic.NVLinkManagement() != management {
			t.Errorf("management %v: eligible %v, management %v", management, nic.Counts(), nic.NVLinkManagement())
		}
		if m.EligibleNICs != 1 || m.Hardware.Level != topology.PIX || !slices.Equal(m.GPUs[0].Near(topology.Hardware).Functions, []*pci.Function{nic.Function}) {
			t.Errorf("management %v: %d NICs, level %v, nearest %v", management, m.EligibleNICs, m.Hardware.Level, m.GPUs[0].Near(topology.Hardware).Functions)
		}
	}
}

// TestRolesOfDPU: NICs for the host are no adapters that make a DPU one for the host, too.
func TestRolesOfDPU(t *testing.T) {
	placed := func(bus uint8, device uint16) pci.Function {
		return sample.Placed(bus, "pci0000:00", 0, family.IDs{Vendor: 0x15b3, Device: device, Class: 0x020000})
	}
	const dpu, forHost, adapter = 0xa2dc, 0x101f, 0x1021 // BlueField-3, ConnectX-6 Lx, ConnectX-7
	for _, tt := range []struct {
		others []uint16
		want   topology.Role
	}{
		{nil, ""}, {[]uint16{forHost, forHost}, ""}, {[]uint16{adapter}, ""}, {[]uint16{adapter, adapter}, topology.NorthSouth},
	} {
		functions := []pci.Function{placed(0x10, dpu)}
		for i, device := range tt.others {
			functions = append(functions, placed(uint8(0x20+i), device))
		}
		if m := build(1, append(functions, sample.PlacedGPU(0x40, "pci0000:00", 0))...); m.NICs[0].Role != tt.want {
			t.Errorf("beside %04x: %q, want %q", tt.others, m.NICs[0].Role, tt.want)
		}
	}
}
