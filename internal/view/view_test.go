package view

import (
	"testing"

	"gdr-features/internal/finding"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

func TestSummary(t *testing.T) {
	for _, tt := range []struct {
		verdict verdict.Verdict
		level   topology.Level
		want    string
	}{
		{verdict.Verdict{Ready: tristate.True, Capable: tristate.True, Peermem: tristate.True}, topology.PIX, "GPUDirect RDMA: ready by peermem, every GPU has a NIC at PIX"},
		{verdict.Verdict{Ready: tristate.True, Capable: tristate.True, Peermem: tristate.True, DMABuf: tristate.True}, topology.NODE, "GPUDirect RDMA: ready by peermem and DMA-BUF, every GPU has a NIC at NODE or nearer"},
		{verdict.Verdict{Ready: tristate.True, Capable: tristate.True, DMABuf: tristate.True}, topology.Unknown, "GPUDirect RDMA: ready by DMA-BUF"},
		{verdict.Verdict{Ready: tristate.False, Capable: tristate.True, Reason: verdict.NoActivePort}, topology.PIX, "GPUDirect RDMA: not ready (NoActivePort)"},
		{verdict.Verdict{Ready: tristate.False, Capable: tristate.False, Reason: verdict.NoNIC}, topology.Unknown, "GPUDirect RDMA: not possible on this machine (NoNIC)"},
		{verdict.Verdict{Reason: verdict.Unreadable}, topology.PIX, "GPUDirect RDMA: unknown (Unreadable)"},
	} {
		node := verdict.Node{Verdict: tt.verdict, Matrix: topology.Matrix{Usable: topology.Reach{Level: tt.level}}}
		if got := Verdict(&node); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
		for n, more := range []string{"", ", 1 warning (A)", ", 2 warnings (A, B)", ", 3 warnings (A, B and 1 more)"} {
			all := []finding.Finding{{Status: finding.StatusOK}, {Status: finding.StatusFail, Code: "F"}, {Status: finding.StatusUnknown, Code: "U"}}
			for _, code := range []finding.Code{"A", "B", "C"}[:n] {
				all = append(all, finding.Finding{Status: finding.StatusWarn, Code: code})
			}
			if got := Summary(&node, all); got != tt.want+more {
				t.Errorf("%q, want %q", got, tt.want+more)
			}
		}
	}
}

func TestNothing(t *testing.T) {
	for _, tt := range []struct {
		node verdict.Node
		want string
	}{
		{verdict.Node{}, "The PCI bus cannot be read."},
		{verdict.Node{PCIRead: true}, "No NVIDIA or AMD GPU on this machine."},
		{verdict.Node{PCIRead: true, Matrix: topology.Matrix{GPUs: []topology.GPU{{}}}}, "No RDMA device and no RDMA NIC on this machine."},
		{verdict.Node{PCIRead: true, Matrix: topology.Matrix{GPUs: []topology.GPU{{}}, NICs: []topology.NIC{{}}}}, ""},
	} {
		if got := Nothing(&tt.node); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestNICNote(t *testing.T) {
	counting := &pci.Function{NIC: &family.NIC{}, Eligible: pci.Counts}
	ports := []rdma.Port{{Number: 1, State: "ACTIVE", LinkLayer: "InfiniBand", RateGbps: 400}, {Number: 2}}
	for _, tt := range []struct {
		nic  topology.NIC
		want string
	}{
		{topology.NIC{Function: &pci.Function{NVLinkManagement: true}}, "NVLink management, not read"},
		{topology.NIC{Function: &pci.Function{}}, "no RDMA device"},
		{topology.NIC{RDMA: &rdma.Device{Name: "mlx5_0"}}, "ports not readable"},
		{topology.NIC{Function: counting, RDMA: &rdma.Device{Name: "mlx5_0", PortsRead: true, Ports: ports}}, "1: ACTIVE InfiniBand 400G, 2: ? ?"},
		{topology.NIC{RDMA: &rdma.Device{Name: "rxe0", PortsRead: true}}, "not eligible"},
	} {
		if got := NICNote(&tt.nic); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
