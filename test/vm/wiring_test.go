//go:build vm

package vm

import (
	"fmt"

	"gdr-features/test/vm/mpqemu"
)

// node is the machine of most tests: every level is wired on purpose.
//
//	host 20, node 0: port: switch: GPU A
//	                               NIC a, two functions
//	                               switch: GPU B
//	                                       NIC b
//	                 port: NIC c
//	host 60, node 0: port: GPU C
//	host a0, node 1: port: GPU D
//	                 port: NIC d
func node() *wiring {
	w := &wiring{
		modules: []string{"mlx5_core", "mlx5_ib", "rdma_rxe", "crc32_generic", "dummy", "vfio_pci"},
		levels: `
    a0        a1        b         c         d
A   PIX/PIX   PIX/PIX   PXB/PXB   PHB/PHB   SYS/SYS
B   PXB/PXB   PXB/PXB   PIX/PIX   PHB/PHB   SYS/SYS
C   NODE/PHB  NODE/PHB  NODE/PHB  NODE/PHB  SYS/SYS
D   SYS/SYS   SYS/SYS   SYS/SYS   SYS/SYS   PHB/PHB
`,
	}
	first := w.hostBridge(0x20, 0)
	outer := w.switchBelow(w.rootPort(first), 3)
	w.gpu("A", outer[0])
	w.nic(outer[1], []string{"a0", "a1"}, infiniband, ethernet)
	inner := w.switchBelow(outer[2], 2)
	w.gpu("B", inner[0])
	w.nic(inner[1], []string{"b"}, infiniband)
	w.nic(w.rootPort(first), []string{"c"}, ethernet)
	w.gpu("C", w.rootPort(w.hostBridge(0x60, 0)))
	second := w.hostBridge(0xa0, 1)
	w.gpu("D", w.rootPort(second))
	w.nic(w.rootPort(second), []string{"d"}, infiniband)
	return w
}

// rootPorts are the ports of node that QEMU gives access control services.
const rootPorts = 5

const (
	nvidia, mellanox = 0x10de, 0x15b3
	amazon, broadcom = 0x1d0f, 0x14e4
	pensando, amd    = 0x1dd8, 0x1002
	h100, connectX7  = 0x2330, 0x1021
	controller3D     = 0x030200
	accelerator      = 0x120000
	infiniband       = 0x020700
	ethernet         = 0x020000
)

// families are the program's names, by vendor.
var families = map[uint16]string{
	nvidia: "nvidia", amd: "amd", mellanox: "mlx5", amazon: "efa", broadcom: "bnxt_re", pensando: "ionic",
}

// wiring is a PCI Express hierarchy under construction: QEMU's arguments for it,
// the functions that this program plays, and what a test needs to know of it.
type wiring struct {
	args      []string
	functions []function
	ports     int
	// modules are in the machine's file system, with those that they need.
	modules []string
	// files are more files in it: what each has in it, by name.
	files map[string]string
	// levels are nvidia-smi's word and NCCL's of each pair: a line for a GPU, a column
	// for a NIC.
	levels string
}

// bus is where the next device goes.
type bus struct {
	name       string // QEMU's
	host, node int    // number of the root bus, NUMA node
}

// function is an endpoint. Its subsystem's device number, its place in the list
// from 1 on, tells which one it is: the firmware chooses its address.
type function struct {
	name string
	bus
	mpqemu.Function
}

func (w *wiring) device(format string, args ...any) {
	w.args = append(w.args, "-device", fmt.Sprintf(format, args...))
}

// hostBridge is a root complex of its own, near a NUMA node.
func (w *wiring) hostBridge(number, node int) bus {
	b := bus{fmt.Sprintf("host%x", number), number, node}
	w.device("pxb-pcie,id=%s,bus=pcie.0,bus_nr=%d,numa_node=%d", b.name, number, node)
	return b
}

// rootPort is a port of a host bridge.
func (w *wiring) rootPort(b bus) bus { return w.port("pcie-root-port", b) }

// switchBelow is a switch with so many ports below a port.
func (w *wiring) switchBelow(b bus, ports int) []bus {
	up := bus{fmt.Sprintf("up%d", w.ports), b.host, b.node}
	w.device("x3130-upstream,id=%s,bus=%s", up.name, b.name)
	down := make([]bus, ports)
	for i := range down {
		down[i] = w.port("xio3130-downstream", up)
	}
	return down
}

func (w *wiring) port(kind string, b bus) bus {
	w.ports++
	p := bus{fmt.Sprintf("port%d", w.ports), b.host, b.node}
	w.device("%s,id=%s,bus=%s,chassis=%d,slot=%d", kind, p.name, b.name, w.ports, w.ports)
	return p
}

func (w *wiring) gpu(name string, b bus) {
	w.endpoint(b, 0, name, mpqemu.Function{Vendor: nvidia, Device: h100, Class: controller3D})
}

// nic is a NIC with a function for each class.
func (w *wiring) nic(b bus, names []string, classes ...uint32) {
	for i, class := range classes {
		w.endpoint(b, i, names[i], mpqemu.Function{Vendor: mellanox, Device: connectX7, Class: class, Several: i == 0 && len(classes) > 1})
	}
}

// isNIC reports whether a function is a NIC; the others are GPUs.
func (f function) isNIC() bool { return f.Class>>16 == 0x02 }

// endpoint adds a function. QEMU gets its socket after those of the functions before
// it.
func (w *wiring) endpoint(b bus, number int, name string, f mpqemu.Function) {
	several := "off"
	if f.Several {
		several = "on"
	}
	w.device("x-pci-proxy-dev,bus=%s,addr=0.%d,multifunction=%s,fd=%d", b.name, number, several, firstSocket+len(w.functions))
	f.SubVendor = f.Vendor
	f.SubDevice = uint16(len(w.functions) + 1)
	w.functions = append(w.functions, function{name, b, f})
}
