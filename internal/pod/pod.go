// Package pod reads what a container lets its processes do: which device nodes this process
// may use, how much memory it may lock, and which GIDs its RoCE ports have.
package pod

import (
	"cmp"
	"maps"
	"slices"

	"gdr-features/host"
	"gdr-features/internal/visible"
	"gdr-features/source/pci"
	"gdr-features/source/process"
	"gdr-features/source/rdma"
	"gdr-features/tristate"
)

// GDRCopy is the device node of gdrdrv, the kernel module of GDRCopy.
const GDRCopy = "/dev/gdrdrv"

// Container is what a container lets this process do.
type Container struct {
	Process process.Process
	// Usable says of device nodes that are there, by their path, whether this process may
	// read and write them.
	Usable map[string]tristate.State
	// GDRCopy reports whether its device node is there.
	GDRCopy tristate.State
	// Ports are the active Ethernet ports of RDMA devices in this network namespace, by the
	// device's name and number.
	Ports []Port
	// Problems are the facts that could not be read, one error each.
	Problems []error
}

// Port is an active Ethernet port with its GID table.
type Port struct {
	Device *rdma.Device
	Number int
	GIDs   []rdma.GID
	// Unread: not all entries could be read.
	Unread bool
}

// File is the directory of the port's GIDs.
func (p *Port) File() string { return p.Device.PortFile(p.Number, rdma.GIDFile) }

// Read reads these facts. devices are the RDMA devices to look at. In a snapshot all of it is
// unknown: it has no process, and addresses of networks are left out of it.
func Read(fs *host.FS, seen *visible.Devices, devices []*rdma.Device) Container {
	f := Container{Process: process.Process{User: -1}, Usable: map[string]tristate.State{}}
	if fs.Live() {
		f.Process = process.Read(fs)
		f.Problems = append(f.Problems, f.Process.Problems...)
	}
	for _, address := range slices.SortedFunc(maps.Keys(seen.GPUs), pci.Address.Compare) {
		gpu := seen.GPUs[address]
		f.node(fs, gpu.Node, gpu.Visible)
	}
	for _, d := range devices {
		f.node(fs, seen.RDMANode(d.Name), seen.NodeVisible(d.Name))
		if seen.InNamespace(d.Name) != tristate.False {
			f.ports(fs, d)
		}
	}
	if !seen.NoDev && fs.Live() {
		f.gdrCopy(fs)
	}
	slices.SortFunc(f.Ports, func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Device.Name, b.Device.Name), cmp.Compare(a.Number, b.Number))
	})
	return f
}

func (f *Container) gdrCopy(fs *host.FS) {
	there, err := fs.Exists(GDRCopy[1:])
	if err != nil {
		f.Problems = append(f.Problems, err)
		return
	}
	f.GDRCopy = tristate.Of(there)
	f.node(fs, GDRCopy, f.GDRCopy)
}

// node finds out whether a device node that is there may be used.
func (f *Container) node(fs *host.FS, path string, here tristate.State) {
	if here != tristate.True || path == "" || !fs.Live() {
		return
	}
	usable, err := fs.ReadWrite(path[1:])
	f.Usable[path] = tristate.Of(usable)
	if err != nil {
		f.Usable[path] = tristate.Unknown
		f.Problems = append(f.Problems, err)
	}
}

// ports reads the GIDs of a device's ports.
func (f *Container) ports(fs *host.FS, d *rdma.Device) {
	for _, p := range d.Ports {
		if !p.Active() || p.LinkLayer != "Ethernet" {
			continue
		}
		port := Port{Device: d, Number: p.Number, Unread: true}
		if fs.Live() {
			gids, err := d.ReadGIDs(fs, p.Number)
			if err != nil {
				f.Problems = append(f.Problems, err)
			}
			port.GIDs, port.Unread = gids, err != nil
		}
		f.Ports = append(f.Ports, port)
	}
}
