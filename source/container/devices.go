package container

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/source/verbs"
	"gdr-features/tristate"
)

const (
	nodes     = "dev"
	rdmaNodes = nodes + "/infiniband/"
	drmNodes  = nodes + "/dri/"
	netClass  = "sys/class/net"
)

// Devices are the devices that this process can use, by their nodes in /dev. /sys shows those of
// the whole machine, while a container has the device nodes of some, and a network namespace has
// RDMA and network devices of its own.
type Devices struct {
	// NoDev: there is no /dev, as in a copy of a machine's /sys and /proc.
	NoDev bool
	// GPUs are all GPUs of the machine by their address.
	GPUs map[pci.Address]GPU
	// Complete is false where it is not known of some GPU or RDMA device whether its node is
	// here.
	Complete bool
	// Networks are the names in /sys/class/net; nil where they could not be read.
	Networks []string
	// Problems are the facts that could not be read, one error each.
	Problems []error

	rdma  *rdma.Inventory
	verbs map[string]verbsNode // by the name of the RDMA device
	other tristate.State       // whether the nodes of other RDMA devices are here
}

// verbsNode is what an entry of /sys/class/infiniband_verbs says of an RDMA device.
type verbsNode struct {
	path   string // of the device node
	number int    // in its name
	here   tristate.State
	pci    *pci.Address // nil where it belongs to none, or to none that is known
}

// GPU is what a process sees of a GPU.
type GPU struct {
	// UUID is "GPU-..." as the driver writes it, "" where it is not known.
	UUID string
	// Node is the device node's path, "/dev/nvidia0"; "" where there is none or which it is is
	// not known.
	Node string
	// Visible: the node is there. Unknown also where there is no /dev.
	Visible tristate.State
}

// RDMA reports whether this process can use an RDMA device: it is in the process's network
// namespace, and its node is there. Nodes are not looked at without a /dev.
func (d *Devices) RDMA(name string) tristate.State {
	if d.NoDev {
		return d.InNamespace(name)
	}
	return tristate.And(d.InNamespace(name), d.NodeVisible(name))
}

// RDMANode is the path of an RDMA device's node, "/dev/infiniband/uverbs0", whether it is
// there or not; "" where it is not known which it is.
func (d *Devices) RDMANode(name string) string { return d.verbs[name].path }

// NodeVisible reports whether that node is there; Unknown without a /dev.
func (d *Devices) NodeVisible(name string) tristate.State {
	if v, ok := d.verbs[name]; ok || d.NoDev {
		return v.here
	}
	return d.other
}

// InNamespace reports whether an RDMA device is in this process's network namespace.
func (d *Devices) InNamespace(name string) tristate.State {
	if d.rdma == nil {
		return tristate.Unknown
	}
	return d.rdma.InNamespace(name)
}

// Registered is the place of an RDMA device in the order in which the kernel registered them,
// which is that of libibverbs, from 1 on; 0 where it is not known. It is that of the number of
// its node: a new name does not change it (kernel drivers/infiniband/core/uverbs_main.c,
// ib_uverbs_add_one; rdma-core libibverbs/ibdev_nl.c). Of devices that were registered anew
// beside others, as by binding one driver again, the order may be another.
func (d *Devices) Registered(name string) int {
	if v, ok := d.verbs[name]; ok {
		return v.number + 1
	}
	return 0
}

// Foreign are the RDMA devices of a PCI function that belong to other network namespaces, in
// the order of their nodes. The kernel hides them from /sys/class/infiniband, and from the
// directory of the function, but not from /sys/class/infiniband_verbs (ib_class.ns_type,
// drivers/infiniband/core/device.c).
func (d *Devices) Foreign(of pci.Address) []string {
	var names []string
	for name, v := range d.verbs {
		if v.pci != nil && *v.pci == of && d.InNamespace(name) == tristate.False {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return d.verbs[a].number - d.verbs[b].number })
	return names
}

// VerbsFile is the file that names an RDMA device beside its node,
// "/sys/class/infiniband_verbs/uverbs0/ibdev".
func (d *Devices) VerbsFile(name string) string {
	return verbs.Class + "/uverbs" + strconv.Itoa(d.verbs[name].number) + "/ibdev"
}

// ReadDevices finds out which devices of a machine this process can use, until ctx ends.
func ReadDevices(ctx context.Context, fs *host.FS, functions *pci.Inventory, devices *rdma.Inventory) Devices {
	d, err := deadline.Async(func() (Devices, error) { return readDevices(fs, functions, devices), nil })(ctx)
	if err != nil {
		d.Problems = append(d.Problems, fmt.Errorf("device nodes: %w", err))
	}
	return d
}

func readDevices(fs *host.FS, functions *pci.Inventory, devices *rdma.Inventory) Devices {
	// Where the RDMA devices cannot be listed, their reader has named this problem.
	d := Devices{Complete: devices.Listed, GPUs: map[pci.Address]GPU{}, rdma: devices, verbs: map[string]verbsNode{}}
	dev, err := fs.Exists(nodes)
	d.NoDev = err != nil || !dev
	for f := range functions.All() {
		if f.GPU != nil {
			d.GPUs[f.Address] = d.gpu(fs, f.GPU, f.Address)
		}
	}
	d.verbsNodes(fs)
	d.Networks, err = fs.Names(netClass)
	if err != nil && !host.Absent(err) {
		d.Networks, d.Problems = nil, append(d.Problems, err)
	}
	return d
}

// problem notes that it is not known whether some device node is here.
func (d *Devices) problem(err error) {
	d.Problems, d.Complete = append(d.Problems, err), false
}

func (d *Devices) exists(fs *host.FS, node string) tristate.State {
	if d.NoDev {
		return tristate.Unknown
	}
	there, err := fs.Exists(node)
	if err != nil {
		d.problem(err)
		return tristate.Unknown
	}
	return tristate.Of(there)
}

func (d *Devices) gpu(fs *host.FS, of *family.GPU, address pci.Address) GPU {
	none := tristate.False
	if d.NoDev {
		none = tristate.Unknown
	}
	if of.Information == "" {
		return d.renderNode(fs, address, none)
	}
	information, err := platform.ReadInformation(fs, of, address)
	switch {
	case host.Absent(err): // the driver does not have this GPU, or the container does not
		return GPU{Visible: none}
	case err != nil:
		d.problem(err)
		return GPU{}
	case information.Minor < 0:
		d.problem(host.PathError("read", platform.InformationFile(of, address)[1:], errors.New("no line \"Device Minor\" with a number")))
		return GPU{UUID: information.UUID}
	}
	node := of.Nodes + strconv.Itoa(information.Minor)
	return GPU{UUID: information.UUID, Node: "/" + node, Visible: d.exists(fs, node)}
}

// renderNode finds the node that sysfs names below the GPU's drm directory.
func (d *Devices) renderNode(fs *host.FS, address pci.Address, none tristate.State) GPU {
	names, err := fs.Names(strings.TrimPrefix(address.File("drm"), "/"))
	if err != nil && !host.Absent(err) {
		d.problem(err)
		return GPU{}
	}
	for _, name := range names {
		if strings.HasPrefix(name, "renderD") {
			return GPU{Node: "/" + drmNodes + name, Visible: d.exists(fs, drmNodes+name)}
		}
	}
	return GPU{Visible: none}
}

func (d *Devices) verbsNodes(fs *host.FS) {
	listed, err := verbs.List(fs)
	d.other = tristate.False
	if err != nil && !host.Absent(err) {
		d.problem(err)
		d.other = tristate.Unknown
	}
	for _, node := range listed {
		if node.Err != nil {
			d.problem(node.Err)
			d.other = tristate.Unknown
			continue
		}
		target, _ := fs.Link(verbs.Class[1:] + "/" + node.Node) // a link into the device tree
		address, _ := pci.LastAddress(target)
		d.verbs[node.Device] = verbsNode{"/" + rdmaNodes + node.Node, node.Number, d.exists(fs, rdmaNodes+node.Node), address}
	}
}
