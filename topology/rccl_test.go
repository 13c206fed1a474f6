package topology

import (
	"slices"
	"testing"

	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/tristate"
)

// on makes a function at an address, below some bridges of its root bus.
func on(address string, vendor, device uint16, class uint32, bridges ...string) pci.Function {
	a, err := pci.ParseAddress(address)
	if err != nil {
		panic(err)
	}
	f := pci.Function{Address: a, Vendor: vendor, Device: device, Class: class, RootBus: "pci" + address[:len(address)-5]}
	for _, bridge := range bridges {
		b, err := pci.ParseAddress(bridge)
		if err != nil {
			panic(err)
		}
		f.Bridges, f.RootBus = append(f.Bridges, b), "pci0000:00"
	}
	f.Classify(family.Known())
	return f
}

// TestRCCLUnderHyperV: the guests of Azure show each function on a root bus of its own.
func TestRCCLUnderHyperV(t *testing.T) {
	intel := platform.CPU{Arch: "x86_64", Vendor: "GenuineIntel", Family: 6, Model: 143}
	const hyperV = "Hyper-V UEFI Release v4.1"
	for _, tt := range []struct {
		name       string
		gpu0, gpu1 string
		device     uint16
		cpu        platform.CPU
		bios       string
		want       [4]Level // gpu0 with both NICs, gpu1 with both
		byDefault  tristate.State
	}{
		{"domains one apart", "0011:00:00.0", "0021:00:00.0", 0x74b5, intel, hyperV, [4]Level{PXB, PHB, PHB, PXB}, tristate.True},
		{"buses one apart", "0010:01:00.0", "0020:01:00.0", 0x74b5, intel, hyperV, [4]Level{PXB, PHB, PHB, PXB}, tristate.True},
		{"the third distance", "010f:00:00.0", "011f:00:00.0", 0x75b0, intel, hyperV, [4]Level{PXB, PHB, PHB, PXB}, tristate.True},
		{"one GPU at no distance", "0011:00:00.0", "0023:00:00.0", 0x74b5, intel, hyperV, [4]Level{PHB, PHB, PHB, PHB}, tristate.False},
		{"another distance", "0012:00:00.0", "0022:00:00.0", 0x74b5, intel, hyperV, [4]Level{PHB, PHB, PHB, PHB}, tristate.False},
		{"a BIOS that cannot be read", "0011:00:00.0", "0021:00:00.0", 0x74b5, intel, "", [4]Level{Unknown, PHB, PHB, Unknown}, tristate.Unknown},
		{"a CPU that cannot be read", "0011:00:00.0", "0021:00:00.0", 0x74b5, platform.CPU{}, hyperV, [4]Level{Unknown, PHB, PHB, Unknown}, tristate.Unknown},
		{"another hypervisor", "0011:00:00.0", "0021:00:00.0", 0x74b5, intel, "SeaBIOS", [4]Level{PHB, PHB, PHB, PHB}, tristate.False},
		{"an older GPU", "0011:00:00.0", "0021:00:00.0", 0x7410, intel, hyperV, [4]Level{PHB, PHB, PHB, PHB}, tristate.False},
		{"an AMD CPU", "0011:00:00.0", "0021:00:00.0", 0x74b5, platform.CPU{Vendor: "AuthenticAMD", Arch: "x86_64", Family: 191}, hyperV, [4]Level{PHB, PHB, PHB, PHB}, tristate.False},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := Build(Inputs{
				PCI: &pci.Inventory{NUMANodes: 1, Functions: []pci.Function{
					on("0010:00:00.0", 0x15b3, 0x101e, 0x020700), on(tt.gpu0, 0x1002, tt.device, 0x120000),
					on("0020:00:00.0", 0x15b3, 0x101e, 0x020700), on(tt.gpu1, 0x1002, tt.device, 0x120000),
				}},
				RDMA: &rdma.Inventory{Complete: true}, Platform: platform.State{CPU: tt.cpu, BIOS: tt.bios, Virtual: tristate.True},
			})
			for i, p := range m.Pairs {
				if p.NCCL != tt.want[i] {
					t.Errorf("pair %d: %v, want %v", i, p.NCCL, tt.want[i])
				}
			}
			if m.Hardware.NCCLDefault != tt.byDefault {
				t.Errorf("used by default: %v, want %v", m.Hardware.NCCLDefault, tt.byDefault)
			}
		})
	}
}

// TestRCCLAtPHB: whether RCCL uses a pair at PHB on EPYC depends on its version.
func TestRCCLAtPHB(t *testing.T) {
	milan := platform.CPU{Arch: "x86_64", Vendor: "AuthenticAMD", Family: 175, Model: 1}
	for _, tt := range []struct {
		name          string
		gpu, nic      string
		vendor        uint16
		device        uint16
		cpu           platform.CPU
		behind        []string // the bridges above the GPU
		switched, use tristate.State
	}{
		{"a card right below a root port", "0000:03:00.0", "0000:05:00.0", 0x1002, 0x740f, milan, []string{"0000:00:01.1", "0000:01:00.0", "0000:02:00.0"}, tristate.False, tristate.Unknown},
		{"without a switch of its own", "0000:03:00.0", "0000:05:00.0", 0x1002, 0x74a0, milan, []string{"0000:00:01.1"}, tristate.False, tristate.Unknown},
		{"bus numbers that begin otherwise", "0000:43:00.0", "0000:05:00.0", 0x1002, 0x740f, milan, []string{"0000:00:01.1"}, tristate.False, tristate.False},
		{"behind two switches", "0000:09:00.0", "0000:05:00.0", 0x1002, 0x740f, milan, []string{"0000:00:01.1", "0000:01:00.0", "0000:02:00.0", "0000:03:00.0", "0000:04:00.0"}, tristate.False, tristate.False},
		{"a NIC behind a switch", "0000:03:00.0", "0000:05:00.0", 0x1002, 0x740f, milan, []string{"0000:00:01.1"}, tristate.True, tristate.False},
		{"Turin", "0000:03:00.0", "0000:05:00.0", 0x1002, 0x740f, platform.CPU{Arch: "x86_64", Vendor: "AuthenticAMD", Family: 191}, []string{"0000:00:01.1"}, tristate.False, tristate.False},
		{"Naples", "0000:03:00.0", "0000:05:00.0", 0x1002, 0x740f, platform.CPU{Arch: "x86_64", Vendor: "AuthenticAMD", Family: 143, Model: 1}, []string{"0000:00:01.1"}, tristate.False, tristate.False},
		{"a CPU that cannot be read", "0000:03:00.0", "0000:05:00.0", 0x1002, 0x740f, platform.CPU{}, []string{"0000:00:01.1"}, tristate.False, tristate.Unknown},
		{"NVIDIA's GPU", "0000:03:00.0", "0000:05:00.0", 0x10de, 0x2330, milan, []string{"0000:00:01.1"}, tristate.False, tristate.False},
	} {
		t.Run(tt.name, func(t *testing.T) {
			above := []string{"0000:00:03.1"}
			if tt.switched == tristate.True {
				above = append(above, "0000:04:00.0", "0000:05:01.0")
			}
			class := uint32(0x038000)
			switch {
			case tt.vendor == 0x10de:
				class = 0x030200
			case tt.device == 0x74a0:
				class = 0x120000
			}
			functions := []pci.Function{on(tt.gpu, tt.vendor, tt.device, class, tt.behind...), on(tt.nic, 0x15b3, 0x1021, 0x020700, above...)}
			for _, bridges := range [][]string{tt.behind, above} {
				for i, bridge := range bridges {
					functions = append(functions, on(bridge, 0x1022, 0x1500, 0x060400, bridges[:i]...))
				}
			}
			slices.SortFunc(functions, func(a, b pci.Function) int { return a.Address.Compare(b.Address) })
			m := Build(Inputs{
				PCI:  &pci.Inventory{NUMANodes: 1, Functions: functions},
				RDMA: &rdma.Inventory{Complete: true}, Platform: platform.State{CPU: tt.cpu},
			})
			if m.Pairs[0].NCCL != PHB || m.Pairs[0].Default != tt.use {
				t.Errorf("%v, used %v; want PHB, %v", m.Pairs[0].NCCL, m.Pairs[0].Default, tt.use)
			}
		})
	}
}
