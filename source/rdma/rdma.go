// Package rdma reads the RDMA (verbs) devices of a machine from
// /sys/class/infiniband: their ports, and the PCI function each belongs to. Names of
// devices have no meaning here: mlx5_0, rocep1s0f0 and mlx5_bond_0 are treated
// alike.
//
// Counters are never read, and neither are the ports of a function that manages
// an NVLink fabric: its firmware refuses and floods the kernel log. A port's state is
// asked of the NIC's firmware, which may take a minute when it fails, so no device may
// hold up the others.
package rdma

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"gdr-features/host"
	"gdr-features/internal/sanitize"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

const (
	classDir  = pci.RDMAClassDir
	netnsMode = "sys/module/ib_core/parameters/netns_mode"
)

// Device is one RDMA device, with the file below /sys/class/infiniband/<name>/
// that each field comes from.
type Device struct {
	Name string
	// PCI is the function the device belongs to, also when there is an
	// auxiliary device in between (a subfunction); nil when it has none, as
	// software devices have not. From the device's own path.
	PCI *pci.Address
	// Auxiliary: there is one, so that the device is no PCI device itself.
	Auxiliary bool
	// Ports are the ports by number, from ports/. PortsRead is false when they could not be
	// read, or must not be.
	Ports     []Port
	PortsRead bool
	// Excluded: the user takes this device out of what is judged (Inventory.Exclude).
	Excluded bool
	// NVLinkManagement: the device manages an NVLink fabric; nothing of it is
	// read but board_id.
	NVLinkManagement bool

	// The rest is read for source.What.Details, but for Board, which also tells some of the
	// devices that manage an NVLink fabric.

	NodeType string   // node_type: "CA", "RNIC", ...
	Firmware string   // fw_ver, "28.39.1002"; for source.What.Expect too, and for Advice about families with NoIBGDA
	Board    string   // board_id, the PSID
	NetDevs  []string // names in the function's net/

	placed    bool     // whether PCI could be found out, also that there is none
	dir       string   // where its files are
	layers    []string // as Port.Layers
	netDevMTU bool     // as family.NIC.NetDevMTU
}

// Port is one port of a device, with its file below ports/<number>/.
type Port struct {
	Number int
	// State is the logical state by its name in the InfiniBand specification,
	// "ACTIVE", "DOWN", "INIT", ...; "" when not readable. From state.
	State string
	// LinkLayer is "InfiniBand", "Ethernet" or "Unspecified"; "" when not readable. From
	// link_layer.
	LinkLayer string
	// RateGbps is the signalling rate in Gbit/s, from rate; 0 when not readable.
	RateGbps float64
	// Physical is the physical state of a port that is not ACTIVE, "Polling",
	// "Disabled", "LinkUp", ...; "" when not readable or not read (source.What.Advice).
	// From phys_state.
	Physical string
	// Layers are the link layers with which a port of this family of NICs carries
	// traffic; nil for InfiniBand and Ethernet.
	Layers []string
	// RoCE is what a RoCE port uses by default (source.What.Publish).
	RoCE RoCE
}

// Usable is Active, and unknown where that could not be read.
func (p Port) Usable() tristate.State {
	switch {
	case p.Active():
		return tristate.True
	case p.State == "", p.State == "ACTIVE" && p.LinkLayer == "":
		return tristate.Unknown
	}
	return tristate.False
}

// Active reports whether the port carries traffic: ACTIVE, with a link layer of its
// family, which is InfiniBand or Ethernet for the ones that NCCL's own transport uses
// (NVIDIA/nccl src/transport/net_ib/init.cc).
func (p Port) Active() bool {
	layers := p.Layers
	if layers == nil {
		layers = []string{"InfiniBand", "Ethernet"}
	}
	return p.State == "ACTIVE" && slices.Contains(layers, p.LinkLayer)
}

// Inventory is the RDMA side of a machine.
type Inventory struct {
	// Devices are sorted by PCI address, then by name.
	Devices []Device
	// Complete is false when there may be devices that are not listed: the
	// class directory cannot be read, or devices may be hidden in the network
	// namespaces of containers (RDMA namespace mode "exclusive").
	Complete bool
	// Exclusive: the RDMA namespace mode is "exclusive".
	Exclusive bool
	// Listed is false when the class directory could not be read.
	Listed bool
	// Problems are the facts that could not be read, one error each.
	Problems []error
}

// Scan lists the RDMA devices and reads their ports. Ports of devices without a PCI function are
// for advice and for publishing. It needs the PCI functions to know which ports not to touch. When
// ctx ends, devices that have not answered stay without ports.
func Scan(ctx context.Context, fs *host.FS, functions *pci.Inventory, what source.What) Inventory {
	var s Scanner
	return s.Scan(ctx, fs, functions, what)
}

// Scanner scans again and again. It leaves a device alone that has not answered
// an earlier scan: each would leave another reader behind. Scan and Moved may run
// at the same time.
type Scanner struct {
	// Directories of devices that are being read, by Scan and by Moved. Scan checks
	// only its own: a slow answer to Moved does not keep it from reading a device.
	stuck, polled sync.Map
}

// Scan does what the function Scan does.
func (s *Scanner) Scan(ctx context.Context, fs *host.FS, functions *pci.Inventory, what source.What) Inventory {
	inv := Inventory{Complete: true, Listed: true}
	links, err := fs.Links(classDir)
	for _, link := range links {
		if d, ok := byClass(fs, functions, link); ok {
			inv.add(d)
		}
	}
	if err != nil && !host.Absent(err) {
		inv.Complete, inv.Listed = false, false
		inv.problem(err)
	}
	slices.SortFunc(inv.Devices, compare) // Of searches them
	for _, d := range inv.byFunction(fs, functions) {
		inv.add(d)
	}
	slices.SortFunc(inv.Devices, compare)
	for i := range inv.Devices { // those of physical functions before those of their virtual ones
		inv.describe(fs, functions, &inv.Devices[i], what)
	}
	s.readPorts(ctx, fs, &inv, what)
	inv.namespaceMode(fs, functions)
	return inv
}

func (inv *Inventory) problem(err error) { inv.Problems = append(inv.Problems, err) }

// compare puts devices without a function before all others.
func compare(a, b Device) int {
	var place int
	switch {
	case a.PCI != nil && b.PCI != nil:
		place = a.PCI.Compare(*b.PCI)
	case a.PCI != nil:
		place = 1
	case b.PCI != nil:
		place = -1
	}
	return cmp.Or(place, strings.Compare(a.Name, b.Name))
}

func (inv *Inventory) add(d Device) {
	if !d.placed {
		inv.Complete = false
		inv.problem(fmt.Errorf("/%s: no path to its PCI function", d.dir))
	}
	inv.Devices = append(inv.Devices, d)
}

// byFunction finds devices that the class does not list below the NICs
// themselves.
func (inv *Inventory) byFunction(fs *host.FS, functions *pci.Inventory) []Device {
	listed := map[string]bool{}
	for i := range inv.Devices {
		listed[inv.Devices[i].Name] = true
	}
	var devices []Device
	for f := range functions.All() {
		if f.NIC == nil || len(inv.Of(f.Address)) > 0 {
			continue
		}
		dir := functionDir(f.Address) + "/" + FunctionFile
		names, err := fs.Names(dir)
		if err != nil {
			continue // most functions without a device have no such directory
		}
		for _, name := range names {
			if !listed[sanitize.Terminal(name)] {
				devices = append(devices, Device{Name: sanitize.Terminal(name), PCI: &f.Address, placed: true, dir: dir + "/" + name})
			}
		}
	}
	return devices
}

func functionDir(a pci.Address) string { return a.File("")[1:] }

// describe finds out what must not be touched, and what people want to know. Of a virtual
// function only the latter is read: its board is that of its physical function.
func (inv *Inventory) describe(fs *host.FS, functions *pci.Inventory, d *Device, what source.What) {
	var f *pci.Function
	if d.PCI != nil {
		f = functions.Find(*d.PCI)
	}
	base := d.dir + "/"
	var management *family.NVLinkManagement
	if f != nil && f.KnownNIC() != nil {
		d.layers, d.netDevMTU = f.KnownNIC().LinkLayers, f.KnownNIC().NetDevMTU
		if f.InfiniBand() {
			management = f.KnownNIC().NVLinkManagement
		}
	}
	var physical []*Device
	if f != nil && f.PhysFn != nil && !what.Details {
		physical = inv.Of(*f.PhysFn)
	}
	switch {
	case f != nil && f.NVLinkManagement:
		d.NVLinkManagement = true
	case len(physical) > 0:
		d.Board, d.NVLinkManagement = physical[0].Board, physical[0].NVLinkManagement
	case management != nil || what.Details:
		d.Board, _ = fs.Line(base + "board_id") // only some drivers have it
		d.NVLinkManagement = management != nil && slices.Contains(management.Boards, d.Board)
	}
	if (what.Details || what.Expect || what.Publish || what.Advice && f != nil && f.NIC != nil && f.NIC.NoIBGDA != nil) && !d.NVLinkManagement {
		d.Firmware, _ = fs.Line(base + "fw_ver") // only some drivers have it
	}
	if !what.Details || d.NVLinkManagement {
		return
	}
	if text, err := fs.Line(base + "node_type"); err == nil {
		_, d.NodeType, _ = strings.Cut(text, ": ")
	}
	if d.PCI != nil {
		d.netDevs(fs, what)
	}
}

func (d *Device) netDevs(fs *host.FS, what source.What) {
	net := functionDir(*d.PCI) + "/net"
	d.NetDevs, _ = fs.Names(net) // InfiniBand may have none
	for i, name := range d.NetDevs {
		if what.Everything {
			_, _ = fs.Line(net + "/" + name + "/mtu") // for the snapshot alone
		}
		d.NetDevs[i] = sanitize.Terminal(name)
	}
	slices.Sort(d.NetDevs)
}

// byClass finds the PCI function of a device that the class lists (pci.OwnerOf), or else the NIC
// that has the device below it.
func byClass(fs *host.FS, functions *pci.Inventory, link host.Link) (d Device, ok bool) {
	d = Device{Name: sanitize.Terminal(link.Name), dir: classDir + "/" + link.Name}
	owner, ok := pci.OwnerOf(fs, link)
	if !ok {
		return d, false
	}
	d.PCI, d.placed = owner.Function, owner.Known
	d.Auxiliary = d.PCI != nil && owner.Below != "" && !strings.HasPrefix(owner.Below+"/", "infiniband/")
	if d.placed {
		return d, true
	}
	for f := range functions.All() {
		if f.NIC == nil {
			continue
		}
		if ok, err := fs.Exists(functionDir(f.Address) + "/infiniband/" + link.Name); err == nil && ok {
			d.PCI, d.placed = &f.Address, true
			break
		}
	}
	return d, true
}

// Of returns the devices that belong to a function.
func (inv *Inventory) Of(a pci.Address) []*Device {
	first := sort.Search(len(inv.Devices), func(i int) bool {
		d := &inv.Devices[i]
		return d.PCI != nil && d.PCI.Compare(a) >= 0
	})
	var devices []*Device
	for i := first; i < len(inv.Devices) && *inv.Devices[i].PCI == a; i++ {
		devices = append(devices, &inv.Devices[i])
	}
	return devices
}

// DevicePort is a port with the device it is of.
type DevicePort struct {
	Port
	Device *Device
}

// Exclude marks the devices of these names.
func (inv *Inventory) Exclude(names []string) {
	for i := range inv.Devices {
		inv.Devices[i].Excluded = slices.Contains(names, inv.Devices[i].Name)
	}
}

// PortsOf lists the ports of the devices of some functions, but for devices that are excluded
// or manage an NVLink fabric. Those of subfunctions, which show a port of their function once more, are
// left out on request. all is false where there may be more.
func (inv *Inventory) PortsOf(functions []*pci.Function, subfunctions bool) (ports []DevicePort, all bool) {
	all = inv.Complete
	for _, f := range functions {
		for _, d := range inv.Of(f.Address) {
			if d.NVLinkManagement || d.Excluded || d.Auxiliary && !subfunctions {
				continue
			}
			all = all && d.PortsRead
			for _, p := range d.Ports {
				ports = append(ports, DevicePort{p, d})
			}
		}
	}
	return ports, all
}
