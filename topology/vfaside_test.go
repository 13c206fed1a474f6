package topology_test

import (
	"strings"
	"testing"

	"gdr-features/test/machine"
	"gdr-features/topology/nccl"
	"gdr-features/tristate"
)

// TestVFAside: a virtual machine whose topology file has a virtual function beside a GPU, where NCCL
// looks for device 0, function 0 (crusoecloud/solutions-library 6a72945a,
// b300-nccltest-cmk-mpijob). NCCL overwrites the function number in any case, so that only function
// 0 of another device is found with NCCL_IB_MERGE_VFS=0.
func TestVFAside(t *testing.T) {
	const guest = "virtual\npci0000:00 numa=0\n  0000:00:05.0 gpu 10de:2330\npci0000:01 numa=0\n  NIC ib 15b3:101e rdma=mlx5_0\n"
	const file = `<system version="1"><cpu numaid="0"><pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">` +
		`<pci busid="0000:00:05.0" class="0x030200"/><pci busid="NIC" class="0x020700"/></pci></cpu></system>`
	for _, tt := range []struct {
		nic, inFile string
		want        bool
	}{
		{"0000:01:09.0", "0000:01:09.0", true},
		{"0000:01:09.3", "0000:01:09.0", true},
		{"0000:01:09.3", "0000:01:09.3", false},
		{"0000:01:09.0", "0000:01:00.0", false},
		{"0000:01:00.3", "0000:01:00.3", false},
		{"0000:01:00.3", "0000:01:00.0", false},
	} {
		m, err := machine.Parse(strings.Replace(guest, "NIC", tt.nic, 1))
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := nccl.ParseFile([]byte(strings.Replace(file, "NIC", tt.inFile, 1)))
		if err != nil || parsed.RefusedFor(nil) != nil {
			t.Fatal(err, parsed.RefusedFor(nil))
		}
		r := withFile(t, m, parsed)
		p := r.Matrix.Pairs[0]
		if got := r.Matrix.VFAside(p); got != tt.want || tt.want && r.Matrix.Hardware.NCCLDefault != tristate.False {
			t.Errorf("%s, in the file %s: %v, %v by default %v, want %v", tt.nic, tt.inFile, got, p.NCCL, r.Matrix.Hardware.NCCLDefault, tt.want)
		}
	}
}
