package rdma

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source"
	"gdr-features/source/family"
)

// Nothing is read of a device that manages an NVLink fabric: its firmware
// refuses, and floods the kernel log. The kernel reports which files were opened.
func TestScanNVLinkManagement(t *testing.T) {
	board := []string{"board_id"}
	ports := []string{"ports", "ports/1/link_layer", "ports/1/rate", "ports/1/state"}
	all := []string{"board_id", "fw_ver", "node_type", "ports", "ports/1/link_layer", "ports/1/rate", "ports/1/state"}
	tests := []struct {
		name   string
		nic    string
		board  string
		detail source.What
		opened []string
		mark   bool
	}{
		{"two lanes", "ib 15b3:1021 width=2", "MT_0000000838", source.What{}, nil, true},
		{"two lanes, everything", "ib 15b3:1021 width=2", "MT_0000000838", everything, nil, true},
		{"product name", "ib 15b3:1021 vpd=Nvidia~ConnectX-7~mezz~internal", "MT_0000000838", everything, nil, true},
		{"board of a B200", "ib 15b3:1021", "MT_0000001121", source.What{}, board, true},
		{"board of a B200, everything", "ib 15b3:1021", "MT_0000001121", everything, board, true},
		{"board of a B300", "ib 15b3:1021", "NVD0000000079", source.What{}, board, true},
		{"another board", "ib 15b3:1021", "MT_0000001120", source.What{}, append(board[:1:1], ports...), false},
		{"another board, everything", "ib 15b3:1021", "MT_0000001120", everything, all, false},
		{"Ethernet, which none of them is", "eth 15b3:1021", "MT_0000001121", source.What{}, ports, false},
		{"Ethernet, everything", "eth 15b3:1021", "MT_0000001121", everything, all, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, "pci0000:15\n  0000:16:00.0 "+tt.nic+" rdma=mlx5_0\n")
			device := filepath.Join(dir, "sys/devices/pci0000:15/0000:16:00.0/infiniband/mlx5_0")
			put(t, device, "board_id", tt.board+"\n")
			opened := watch(t, device, "", "ports/", "ports/1/")
			inv := scan(t, dir, tt.detail)
			if diff := cmp.Diff(tt.opened, opened()); diff != "" {
				t.Errorf("files opened (-want +got):\n%s", diff)
			}
			// That NICs of its family do not count does not make it a NIC to read.
			irdma, err := family.Select([]string{"irdma"})
			if err != nil {
				t.Fatal(err)
			}
			opened = watch(t, device, "", "ports/", "ports/1/")
			_ = scanBy(t, dir, irdma, tt.detail)
			if diff := cmp.Diff(tt.opened, opened()); diff != "" {
				t.Errorf("files opened where the family does not count (-want +got):\n%s", diff)
			}
			d := inv.Devices[0]
			if d.NVLinkManagement != tt.mark || d.PortsRead == tt.mark || (d.Ports == nil) != tt.mark {
				t.Errorf("marked %v, ports %v, read %v; marked should be %v", d.NVLinkManagement, d.Ports, d.PortsRead, tt.mark)
			}
			wantProblems(t, inv.Problems)
		})
	}
}

// The boards on which the switches' manager was seen, one by one.
func TestManagementBoards(t *testing.T) {
	for _, board := range []string{
		"MT_0000001121", "MT_0000001122", "MT_0000001181", "MT_0000001182", "NVD0000000079", "OMN0000000006",
	} {
		dir := write(t, "pci0000:15\n  0000:16:00.0 ib 15b3:1021 rdma=mlx5_0\n")
		put(t, dir, "sys/class/infiniband/mlx5_0/board_id", board+"\n")
		if d := scan(t, dir, source.What{}).Devices[0]; !d.NVLinkManagement || d.Board != board {
			t.Errorf("%s: board %q, marked %v", board, d.Board, d.NVLinkManagement)
		}
	}
}
