// Package visible tells which devices of a machine this process can use. /sys shows those
// of the whole machine, while a container has the device nodes of some, and a network
// namespace has RDMA and network devices of its own.
package visible

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"gdr-features/host"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	uverbs "gdr-features/source/verbs"
	"gdr-features/tristate"
)

const (
	nodes     = "dev"
	rdmaNodes = nodes + "/infiniband/"
	drmNodes  = nodes + "/dri/"
	rdmaClass = "sys/class/infiniband"
	netClass  = "sys/class/net"
)

// Devices are the devices that this process can use.
type Devices struct {
	// NoDev: there is no /dev, as in a copy of a machine's /sys and /proc. Device nodes are
	// not looked at then.
	NoDev bool
	// GPUs are all GPUs of the machine by their address.
	GPUs map[pci.Address]GPU
	// Complete is false where it is not known of some GPU or RDMA device whether its node is
	// here.
	Complete bool
	// Networks are the names of the network devices, from /sys/class/net; nil where they
	// could not be read.
	Networks []string
	// Problems are the facts that could not be read, one error each.
	Problems []error

	class, nodes listing          // by the name of the RDMA device
	verbs        map[string]verbs // likewise
}

// verbs is what an entry of /sys/class/infiniband_verbs says of an RDMA device.
type verbs struct {
	node   string       // path of the device node
	number int          // in its name
	pci    *pci.Address // nil where it belongs to none, or to none that is known
}

// GPU is what a process sees of a GPU.
type GPU struct {
	// UUID is "GPU-..." as the driver writes it, "" where it is not known.
	UUID string
	// Node is the device node's path, "/dev/nvidia0"; "" where there is none, or where it is
	// not known which it is.
	Node string
	// Visible reports whether the node is there. It is Unknown where that could not be read,
	// and where there is no /dev.
	Visible tristate.State
}

// listing says of names whether they are there.
type listing struct {
	known map[string]tristate.State
	other tristate.State // of every other name
}

func (l listing) of(name string) tristate.State {
	if state, ok := l.known[name]; ok {
		return state
	}
	return l.other
}

// RDMA reports whether this process can use an RDMA device: it is in the process's network
// namespace, and its node /dev/infiniband/uverbsN is there. Nodes are not looked at without a /dev.
func (d *Devices) RDMA(name string) tristate.State {
	if d.NoDev {
		return d.class.of(name)
	}
	return tristate.And(d.class.of(name), d.nodes.of(name))
}

// RDMANode is the path of an RDMA device's node, "/dev/infiniband/uverbs0", whether it is
// there or not; "" where it is not known which it is.
func (d *Devices) RDMANode(name string) string { return d.verbs[name].node }

// NodeVisible reports whether an RDMA device's node is there. It is Unknown where there is no
// /dev.
func (d *Devices) NodeVisible(name string) tristate.State {
	if d.NoDev {
		return tristate.Unknown
	}
	return d.nodes.of(name)
}

// InNamespace reports whether an RDMA device is in this process's network namespace.
func (d *Devices) InNamespace(name string) tristate.State { return d.class.of(name) }

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
// the order of their nodes: those that /sys/class/infiniband_verbs lists and
// /sys/class/infiniband does not. The kernel hides them from /sys/class/infiniband, and from
// the directory of the function (ib_class.ns_type, drivers/infiniband/core/device.c).
func (d *Devices) Foreign(of pci.Address) []string {
	var names []string
	for name, v := range d.verbs {
		if v.pci != nil && *v.pci == of && d.class.of(name) == tristate.False {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return d.verbs[a].number - d.verbs[b].number })
	return names
}

// VerbsFile is the file that names an RDMA device beside its node,
// "/sys/class/infiniband_verbs/uverbs0/ibdev".
func (d *Devices) VerbsFile(name string) string {
	return uverbs.Class + "/uverbs" + strconv.Itoa(d.verbs[name].number) + "/ibdev"
}

// Scan finds out which devices of a machine this process can use. inv has its GPUs.
func Scan(fs *host.FS, inv *pci.Inventory) Devices {
	s := scanner{fs: fs, Devices: Devices{Complete: true, GPUs: map[pci.Address]GPU{}, verbs: map[string]verbs{}}}
	dev, err := fs.Exists(nodes)
	s.NoDev = err != nil || !dev
	for i := range inv.Functions {
		if f := &inv.Functions[i]; f.GPU != nil {
			s.GPUs[f.Address] = s.gpu(f.GPU, f.Address)
		}
	}
	s.class = s.classNames()
	s.nodes = s.verbsNodes()
	s.Networks, err = fs.Names(netClass)
	if err != nil && !host.Absent(err) {
		s.Networks, s.Problems = nil, append(s.Problems, err)
	}
	return s.Devices
}

type scanner struct {
	fs *host.FS
	Devices
}

// problem notes that it is not known whether some device node is here.
func (s *scanner) problem(err error) {
	s.Problems, s.Complete = append(s.Problems, err), false
}

// exists reports whether a device node is there.
func (s *scanner) exists(node string) tristate.State {
	if s.NoDev {
		return tristate.Unknown
	}
	there, err := s.fs.Exists(node)
	if err != nil {
		s.problem(err)
		return tristate.Unknown
	}
	return tristate.Of(there)
}

// gpu finds the node of a GPU.
func (s *scanner) gpu(of *family.GPU, address pci.Address) GPU {
	if of.Information == "" {
		return s.renderNode(address)
	}
	name := of.Information + "/" + address.String() + "/information"
	text, err := s.fs.Bytes(name, maxInformation)
	switch {
	case host.Absent(err): // the driver does not have this GPU, or the container does not
		return GPU{Visible: s.none()}
	case err != nil:
		s.problem(err)
		return GPU{}
	}
	uuid, minor := ParseInformation(text)
	if minor < 0 {
		s.problem(host.PathError("read", name, errNoMinor))
		return GPU{UUID: uuid}
	}
	node := of.Nodes + strconv.Itoa(minor)
	return GPU{UUID: uuid, Node: "/" + node, Visible: s.exists(node)}
}

// none says that a GPU has no node.
func (s *scanner) none() tristate.State {
	if s.NoDev {
		return tristate.Unknown
	}
	return tristate.False
}

// renderNode finds the node that sysfs names below the GPU's drm directory.
func (s *scanner) renderNode(address pci.Address) GPU {
	names, err := s.fs.Names(strings.TrimPrefix(address.File("drm"), "/"))
	if err != nil && !host.Absent(err) {
		s.problem(err)
		return GPU{}
	}
	for _, name := range names {
		if strings.HasPrefix(name, "renderD") {
			return GPU{Node: "/" + drmNodes + name, Visible: s.exists(drmNodes + name)}
		}
	}
	return GPU{Visible: s.none()}
}

// classNames lists the RDMA devices of this network namespace. Where they cannot be listed
// it is not known which are.
func (s *scanner) classNames() listing {
	names, err := s.fs.Names(rdmaClass)
	l := listing{known: map[string]tristate.State{}, other: tristate.False}
	if err != nil && !host.Absent(err) {
		l.other, s.Complete = tristate.Unknown, false // the reader of RDMA devices has named this problem
	}
	for _, name := range names {
		l.known[name] = tristate.True
	}
	return l
}

// verbsNodes finds the device nodes of RDMA devices.
func (s *scanner) verbsNodes() listing {
	listed, err := uverbs.List(s.fs)
	l := listing{known: map[string]tristate.State{}, other: tristate.False}
	if err != nil && !host.Absent(err) {
		s.problem(err)
		l.other = tristate.Unknown
	}
	for _, node := range listed {
		if node.Err != nil {
			s.problem(node.Err)
			l.other = tristate.Unknown
			continue
		}
		l.known[node.Device] = s.exists(rdmaNodes + node.Node)
		s.verbs[node.Device] = verbs{"/" + rdmaNodes + node.Node, node.Number, s.functionOf(uverbs.Class[1:] + "/" + node.Node)}
	}
	return l
}

// functionOf is the PCI function in the path of a device, the last; nil for none.
func (s *scanner) functionOf(device string) *pci.Address {
	target, err := s.fs.Link(device)
	if err != nil {
		return nil
	}
	for _, part := range slices.Backward(strings.Split(target, "/")) {
		if a, err := pci.ParseAddress(part); err == nil {
			return &a
		}
	}
	return nil
}

// maxInformation is several times the size of such a file, in bytes.
const maxInformation = 4096

var errNoMinor = errors.New("no line \"Device Minor\" with a number")

// ParseInformation reads the file "information" that NVIDIA's driver has for each GPU: its
// UUID, "" where it has none yet, and the number of its device node, -1 where there is none
// (open-gpu-kernel-modules kernel-open/nvidia/nv-procfs.c, nv_procfs_read_gpu_info).
func ParseInformation(text []byte) (uuid string, minor int) {
	minor = -1
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "GPU UUID":
			uuid = value
		case "Device Minor":
			minor = -1
			if n, err := strconv.ParseUint(value, 10, 16); err == nil {
				minor = int(n)
			}
		}
	}
	return uuid, minor
}
