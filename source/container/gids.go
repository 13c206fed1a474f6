package container

import (
	"cmp"
	"errors"
	"slices"

	"gdr-features/host"
	"gdr-features/source/rdma"
)

// GIDTable is an active Ethernet port with its GIDs.
type GIDTable struct {
	Device *rdma.Device
	Number int // of the port
	GIDs   []rdma.GID
	// Unread: not all entries could be read.
	Unread bool
}

// File is the directory of the GIDs.
func (p *GIDTable) File() string { return p.Device.PortFile(p.Number, rdma.GIDFile) }

// ReadGIDTables reads the GIDs of the active Ethernet ports of some devices, by the device's name
// and number. In a snapshot they have other addresses of the same kind. That an older one has none
// of them is no problem.
func ReadGIDTables(fs *host.FS, devices []*rdma.Device) (ports []GIDTable, problems []error) {
	for _, d := range devices {
		for _, p := range d.Ports {
			if !p.Active() || p.LinkLayer != "Ethernet" {
				continue
			}
			gids, err := d.ReadGIDs(fs, p.Number)
			if err != nil && !errors.Is(err, host.ErrNotRecorded) {
				problems = append(problems, err)
			}
			ports = append(ports, GIDTable{Device: d, Number: p.Number, GIDs: gids, Unread: err != nil})
		}
	}
	slices.SortFunc(ports, func(a, b GIDTable) int {
		return cmp.Or(cmp.Compare(a.Device.Name, b.Device.Name), cmp.Compare(a.Number, b.Number))
	})
	return ports, problems
}
