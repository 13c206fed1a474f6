// Package container reads what a container lets a process do: the devices that it can use, the
// memory that it may lock, its capabilities, and GIDs in its network namespace. Programs whose labels
// are about the machine as a whole do not link it.
package container

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"gdr-features/host"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/tristate"
)

// GDRCopyNode is the device node of gdrdrv, the kernel module of GDRCopy.
const GDRCopyNode = "/dev/gdrdrv"

// State is what a container lets this process do.
type State struct {
	Process Process
	// Usable says of device nodes that are there, by their path, whether this process may
	// read and write them.
	Usable map[string]tristate.State
	// GDRCopy reports whether its device node is there.
	GDRCopy tristate.State
	// Ports are the active Ethernet ports of RDMA devices in this network namespace, by the
	// device's name and number.
	Ports []GIDTable
	// Problems are the facts that could not be read, one error each.
	Problems []error
}

// Read reads these facts. devices are the RDMA devices to look at. In a snapshot all of it
// but the ports is unknown: it has no process.
func Read(fs *host.FS, seen *Devices, devices []*rdma.Device) State {
	c := State{Process: Process{User: -1}, Usable: map[string]tristate.State{}}
	var here []*rdma.Device
	for _, d := range devices {
		if seen.InNamespace(d.Name) != tristate.False {
			here = append(here, d)
		}
	}
	c.Ports, c.Problems = ReadGIDTables(fs, here)
	if !fs.Live() {
		return c
	}
	c.Process = readProcess(fs)
	c.Problems = append(c.Problems, c.Process.Problems...)
	for _, address := range slices.SortedFunc(maps.Keys(seen.GPUs), pci.Address.Compare) {
		c.node(fs, seen.GPUs[address].Node, seen.GPUs[address].Visible)
	}
	for _, d := range devices {
		c.node(fs, seen.RDMANode(d.Name), seen.NodeVisible(d.Name))
	}
	if seen.NoDev {
		return c
	}
	there, err := fs.Exists(GDRCopyNode[1:])
	if err != nil {
		c.Problems = append(c.Problems, err)
		return c
	}
	c.GDRCopy = tristate.Of(there)
	c.node(fs, GDRCopyNode, c.GDRCopy)
	return c
}

func (c *State) node(fs *host.FS, path string, here tristate.State) {
	if here != tristate.True || path == "" {
		return
	}
	usable, err := fs.ReadWrite(path[1:])
	c.Usable[path] = tristate.Of(usable)
	if err != nil {
		c.Usable[path] = tristate.Unknown
		c.Problems = append(c.Problems, err)
	}
}

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
