package topology_test

import (
	"regexp"
	"strings"
	"testing"

	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/test/sample"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// TestHardware: what labels about the hardware rest on. The worst GPU counts, no NIC that is not
// for GPUs stands for one that is, and what is not known is no answer.
func TestHardware(t *testing.T) {
	const yes, no, unknown = tristate.True, tristate.False, tristate.Unknown
	const (
		near = "nodes 2\npci0000:00 numa=0\n  0000:00:01.0 port 8086:352a\n    0000:01:00.0 switch 1000:c030\n" +
			"      0000:02:00.0 port 1000:c030\n        0000:03:00.0 gpu 10de:2330\n" +
			"      0000:02:01.0 port 1000:c030\n        0000:04:00.0 ib 15b3:1021 rdma=mlx5_0\n"
		far    = "pci0000:80 numa=1\n  0000:80:01.0 port 8086:352a\n"
		farGPU = far + "    0000:81:00.0 gpu 10de:2330\n"
		altra  = "pci00ff:00 numa=0\n  00ff:00:00.0 060000 1def:e100\n"
		farNIC = far + "    0000:81:00.0 ib 15b3:1021 rdma=mlx5_1\n"
	)
	without := func(kind string) string { return regexp.MustCompile(".* "+kind+" .*\n").ReplaceAllString(near, "") }
	lost := func(bus uint8) func(*pci.Function) {
		return func(f *pci.Function) {
			if f.Address.Bus == bus {
				f.RootBus = ""
			}
		}
	}
	for _, tt := range []struct {
		name              string
		text              string
		change            func(*pci.Function)
		level, best       topology.Level
		byDefault, usable tristate.State
		reachable         tristate.State
	}{
		{"below one switch", near, nil, topology.PIX, topology.PIX, yes, yes, yes},
		{"on two CPUs", without("ib") + farNIC, nil, topology.SYS, topology.SYS, no, no, yes},
		{"another NIC is near", near + farNIC, nil, topology.PIX, topology.PIX, yes, yes, yes},
		{"one GPU of two is near", near + farGPU, nil, topology.SYS, topology.PIX, no, no, yes},
		{"the second is", strings.NewReplacer("gpu 10de:2330", "ib 15b3:1021 rdma=mlx5_1", "ib 15b3:1021 rdma=mlx5_0", "gpu 10de:2330").Replace(near), nil, topology.PIX, topology.PIX, yes, yes, yes},
		{"a GPU at an unknown place", near + farGPU, lost(0x81), topology.Unknown, topology.PIX, unknown, unknown, yes},
		{"it comes first", near + farGPU, lost(0x03), topology.Unknown, topology.Unknown, no, no, yes},
		{"a NIC at an unknown place", near, lost(0x04), topology.Unknown, topology.Unknown, unknown, unknown, yes},
		{"no NIC", without("ib"), nil, topology.Unknown, topology.Unknown, unknown, unknown, no},
		{"no GPU that counts", strings.Replace(near, "10de:2330", "10de:2684", 1), nil, topology.Unknown, topology.Unknown, unknown, unknown, no},
		{"the near NIC is for the host", strings.Replace(near, "ib 15b3:1021", "eth 15b3:a2dc", 1) + farNIC + "  0000:80:02.0 port 8086:352a\n    0000:82:00.0 ib 15b3:1021 rdma=mlx5_2\n", nil, topology.PIX, topology.PIX, yes, no, yes},
		{"a CPU that forwards nothing, one switch", near + altra, nil, topology.PIX, topology.PIX, yes, yes, yes},
		{"the same on two CPUs", without("ib") + farNIC + altra, nil, topology.SYS, topology.SYS, no, no, no},
		{"one NIC of two is below the switch", near + farNIC + altra, nil, topology.PIX, topology.PIX, yes, yes, yes},
		{"a virtual machine with it", "virtual\n" + without("ib") + farNIC + altra, nil, topology.SYS, topology.SYS, no, no, yes},
		{"a GPU that shares memory with its CPU", strings.Replace(without("ib"), "10de:2330", "10de:2941", 1) + farNIC + altra, nil, topology.SYS, topology.SYS, no, no, yes},
		{"such a CPU, and a NIC at an unknown place", near + altra, lost(0x04), topology.Unknown, topology.Unknown, unknown, unknown, unknown},
		{"such a CPU, and a GPU at an unknown place", near + altra, lost(0x03), topology.Unknown, topology.Unknown, unknown, unknown, unknown},
		{"a function without ids", near + far + "    0000:81:00.0 eth 15b3:1021\n", func(f *pci.Function) {
			if f.Address.Bus == 0x81 {
				f.Vendor, f.Eligible = 0, pci.IDsUnread
				f.Classify(family.Known())
			}
		}, topology.Unknown, topology.PIX, unknown, unknown, yes},
	} {
		n := parsed(t, tt.text)
		if tt.change != nil {
			for f := range n.PCI.All() {
				tt.change(f)
			}
		}
		m := topology.Build(topology.Inputs{PCI: &n.PCI, RDMA: &n.RDMA, Platform: n.Platform})
		if m.Hardware.Level != tt.level || m.Best != tt.best || m.Reachable != tt.reachable {
			t.Errorf("%s: %v, best %v, reachable %v; want %v, %v, %v", tt.name, m.Hardware.Level, m.Best, m.Reachable, tt.level, tt.best, tt.reachable)
		}
		if m.Hardware.NCCLDefault != tt.byDefault || m.Usable.NCCLDefault != tt.usable {
			t.Errorf("%s: by default %v, of NICs for GPUs %v; want %v, %v", tt.name, m.Hardware.NCCLDefault, m.Usable.NCCLDefault, tt.byDefault, tt.usable)
		}
	}
}

// TestNICsCounted: one that is too old or of a family that is only listed does not count; one that
// is left out by hand still is hardware.
func TestNICsCounted(t *testing.T) {
	old, listed, out := sample.PlacedNIC(0x21, "?", 0), sample.PlacedNIC(0x22, "?", 0), sample.PlacedNIC(0x23, "?", 0)
	old.Device = 0x673c // ConnectX-2
	sample.NotJudged(&listed)
	out.Excluded = true
	m := build(1, sample.PlacedGPU(0x10, "?", 0), sample.PlacedNIC(0x20, "?", 0), old, listed, out)
	if m.EligibleGPUs != 1 || m.EligibleNICs != 2 || m.DataDirect || !m.Complete {
		t.Errorf("%d GPUs, %d NICs", m.EligibleGPUs, m.EligibleNICs)
	}
}
