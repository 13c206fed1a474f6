// Package rdma reads the RDMA (verbs) devices of a machine from
// /sys/class/infiniband: their ports, and the PCI function each belongs to. Names
// mean nothing here (mlx5_0, rocep1s0f0 and mlx5_bond_0 are all one to it).
//
// Counters are never read, and neither are the ports of a function that manages
// an NVLink fabric: its firmware refuses and floods the kernel log. A port's state is
// asked of the adapter's firmware, which may take a minute when it is sick, so
// no device may hold up the others.
package rdma

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/host"
	"gdr-features/source/pci"
)

const (
	classDir  = "sys/class/infiniband"
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
	// Ports are the ports by number, from ports/. Nil when they were not read:
	// see PortsRead.
	Ports []Port
	// PortsRead is false when the ports could not be read, or must not be.
	PortsRead bool
	// NVLinkManagement: the device manages an NVLink fabric; nothing of it is
	// read but board_id.
	NVLinkManagement bool

	// The rest is read for people and raw features only (pci.Everything).

	NodeType string   // node_type: "CA", "RNIC", ...
	Firmware string   // fw_ver
	Board    string   // board_id, the PSID
	NetDevs  []string // names in the function's net/

	placed bool // whether PCI could be found out, also that there is none
}

// Port is one port of a device, with its file below ports/<number>/.
type Port struct {
	Number int
	// State is the logical state by its name in the InfiniBand specification,
	// "ACTIVE", "DOWN", "INIT", ...; "" when not readable. From state.
	State string
	// LinkLayer is "InfiniBand", "Ethernet" or what else link_layer says.
	LinkLayer string
	// RateGbps is the signalling rate in Gbit/s, from rate; 0 when not read.
	RateGbps float64
}

// Active tells whether the port carries traffic NCCL would use: ACTIVE, with
// link layer InfiniBand or Ethernet (NVIDIA/nccl src/transport/net_ib/init.cc).
func (p Port) Active() bool {
	return p.State == "ACTIVE" && (p.LinkLayer == "InfiniBand" || p.LinkLayer == "Ethernet")
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
	// Problems are the facts that could not be read, one error each.
	Problems []error
}

// Scan lists the RDMA devices and reads their ports. It needs the PCI functions
// to know which ports not to touch. When ctx ends, devices that have not
// answered stay without ports.
func Scan(ctx context.Context, fs *host.FS, functions *pci.Inventory, detail pci.Detail) Inventory {
	inv := Inventory{Complete: true}
	names, err := fs.Names(classDir)
	switch {
	case host.Absent(err):
		names = namesByFunction(fs, functions)
	case err != nil:
		inv.Complete = false
		inv.problem(err)
	}
	for _, name := range names {
		d := describe(fs, functions, name, detail)
		if !d.placed {
			inv.Complete = false
			inv.problem(fmt.Errorf("/%s/%s: no path to its PCI function", classDir, name))
		}
		inv.Devices = append(inv.Devices, d)
	}
	slices.SortFunc(inv.Devices, compare)
	inv.readPorts(ctx, fs, detail)
	inv.namespaceMode(fs, functions)
	return inv
}

func (inv *Inventory) problem(err error) { inv.Problems = append(inv.Problems, err) }

func compare(a, b Device) int {
	switch {
	case a.PCI == nil && b.PCI == nil:
	case a.PCI == nil:
		return -1 // "" sorts before every address
	case b.PCI == nil:
		return 1
	default:
		if c := a.PCI.Compare(*b.PCI); c != 0 {
			return c
		}
	}
	return strings.Compare(a.Name, b.Name)
}

// namesByFunction looks below the adapters themselves, for a tree without
// /sys/class.
func namesByFunction(fs *host.FS, functions *pci.Inventory) []string {
	var names []string
	for i := range functions.Functions {
		if f := &functions.Functions[i]; f.Kind() == pci.NIC {
			below, err := fs.Names(functionDir(f.Address) + "/infiniband")
			if err == nil {
				names = append(names, below...)
			}
		}
	}
	return names
}

func functionDir(a pci.Address) string { return "sys/bus/pci/devices/" + a.String() }

// describe finds the device's function and what must not be touched.
func describe(fs *host.FS, functions *pci.Inventory, name string, detail pci.Detail) Device {
	d := Device{Name: name}
	d.PCI, d.placed = function(fs, functions, name)
	var f *pci.Function
	if d.PCI != nil {
		f = functions.Find(*d.PCI)
	}
	base := classDir + "/" + name + "/"
	if f != nil && f.NVLinkManagement {
		d.NVLinkManagement = true
	} else if f != nil && f.Kind() == pci.NIC && f.Class>>8 == 0x0207 || detail == pci.Everything {
		d.Board, _ = fs.Line(base + "board_id") // only some drivers have it
		d.NVLinkManagement = slices.Contains(managementBoards[:], d.Board)
	}
	if detail == pci.Everything && !d.NVLinkManagement {
		d.Firmware, _ = fs.Line(base + "fw_ver") // only some drivers have it
		if text, err := fs.Line(base + "node_type"); err == nil {
			_, d.NodeType, _ = strings.Cut(text, ": ")
		}
		if d.PCI != nil {
			d.NetDevs, _ = fs.Names(functionDir(*d.PCI) + "/net") // InfiniBand may have none
			slices.Sort(d.NetDevs)
		}
	}
	return d
}

// managementBoards are the PSIDs of adapters on GPU baseboards (B200, B300) that
// manage the NVLink switches (mstflint's "Canoe" boards; scitix/sichek).
var managementBoards = [...]string{
	"MT_0000001121", "MT_0000001122", "MT_0000001181", "MT_0000001182", "NVD0000000079", "OMN0000000006",
}

// function finds the PCI function in the device's path: its class entry is a
// link into the device tree, .../0000:1a:00.0/infiniband/mlx5_0, or with an
// auxiliary device in between, .../0000:1a:00.0/mlx5_core.sf.2/infiniband/mlx5_2.
func function(fs *host.FS, functions *pci.Inventory, name string) (a *pci.Address, known bool) {
	entry := classDir + "/" + name
	for _, link := range [...]string{entry, entry + "/device"} {
		to, err := fs.Link(link)
		if err != nil {
			continue
		}
		if a := lastAddress(to); a != nil {
			return a, true
		}
		known = known || strings.Contains(to, "devices/virtual/")
	}
	if path, err := fs.Resolve(entry + "/device"); err == nil {
		if a := lastAddress(path); a != nil {
			return a, true
		}
	}
	for i := range functions.Functions {
		f := &functions.Functions[i]
		if f.Kind() != pci.NIC {
			continue
		}
		if ok, err := fs.Exists(functionDir(f.Address) + "/infiniband/" + name); err == nil && ok {
			return &f.Address, true
		}
	}
	return nil, known
}

func lastAddress(path string) *pci.Address {
	parts := strings.Split(path, "/")
	for _, part := range slices.Backward(parts) {
		if a, err := pci.ParseAddress(part); err == nil {
			return &a
		}
	}
	return nil
}

// namespaceMode looks whether devices may be hidden: in exclusive mode a device
// that was moved into a container's network namespace is not seen from here.
func (inv *Inventory) namespaceMode(fs *host.FS, functions *pci.Inventory) {
	for i := range functions.Functions {
		f := &functions.Functions[i]
		if f.Kind() != pci.NIC || f.NVLinkManagement || len(inv.Of(f.Address)) > 0 {
			continue
		}
		if mode, err := fs.Line(netnsMode); err == nil && mode == "N" {
			inv.Exclusive, inv.Complete = true, false
		}
		return
	}
}

// Of gives the devices that belong to a function.
func (inv *Inventory) Of(a pci.Address) []*Device {
	var devices []*Device
	for i := range inv.Devices {
		if d := &inv.Devices[i]; d.PCI != nil && *d.PCI == a {
			devices = append(devices, d)
		}
	}
	return devices
}

// parseState reads "4: ACTIVE" by its number (Documentation/ABI/stable/
// sysfs-class-infiniband; names: InfiniBand Architecture, PortInfo:PortState).
func parseState(text string) (string, error) {
	number, _, ok := strings.Cut(text, ":")
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if !ok || err != nil || n < 0 || n >= len(portStates) {
		return "", fmt.Errorf("%q is not a port state", text)
	}
	return portStates[n], nil
}

var portStates = [...]string{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}

// parseRate reads "400 Gb/sec (4X NDR)" as Gbit/s.
func parseRate(text string) (float64, error) {
	number, rest, ok := strings.Cut(text, " ")
	rate, err := strconv.ParseFloat(number, 64)
	// The comparison is false for NaN too.
	if sane := rate >= 0 && rate < 1e6; !ok || err != nil || !strings.HasPrefix(rest, "Gb/sec") || !sane {
		return 0, fmt.Errorf("%q is not a port rate", text)
	}
	return rate, nil
}
