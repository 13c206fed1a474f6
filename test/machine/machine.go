// Package machine reads descriptions of whole machines, in a text that people can
// read and extend, and writes them as the /sys and /proc that a kernel would show. It
// serves tests, benchmarks and the example of `make run`; the product does not
// use it.
//
// A description is a tree of PCI functions, each indented below the bridge or root
// bus that it is on:
//
//	title  Two GPUs and a NIC on one switch
//	source where the facts are from
//	evidence real tree, published matrix
//	nodes  2
//	dmi    Example Inc. | Example 9000 | Example BIOS 1.0
//	cpu    143 Intel(R) Xeon(R) Platinum 8480+
//	flags  tdx_guest
//	kernel 6.8.0-45-generic
//	dwords PeerMappingOverride=1;
//
//	pci0000:15 numa=0
//	  0000:15:01.0 port 8086:352a
//	    0000:16:00.0 switch 1000:c030 sub=1000:0000
//	      0000:17:00.0 port 1000:c030 acs=001d
//	        0000:18:00.0 gpu 10de:2330 name=GPU0
//	      0000:17:01.0 port 1000:c030
//	        0000:19:00.0 ib 15b3:1021 rdma=mlx5_0
//
//	matrix      mlx5_0
//	  GPU0      PIX
//
// The evidence is that of the tree (real, part-real, synthesised) and that of the matrix (published,
// derived, statement); a machine that is made up has no such line. A matrix has the names of the tree.
//
// The word after the address is the class: port and switch (PCI bridge, 0604),
// gpu (0302), vga (0300), accel (1200), ib (0207), eth (0200), dma (0801), or a class
// of six digits. Then come vendor:device and attributes:
//
//	numa=N       numa_node (inherited from the line above; -1 without any)
//	sub=V:D      subsystem ids
//	name=GPU0    what the matrix calls a GPU
//	rdma=A,B     RDMA devices
//	net=A        network interface
//	aux=NAME     the RDMA devices are below an auxiliary device of this name
//	physfn=ADDR  this is a virtual function of ADDR
//	driver=NAME  bound whatever the state says; "none" for unbound
//	port=STATE   "DOWN", "INIT", ... whatever the state says
//	rate=N       Gbit/s of the ports (that of the product without)
//	layer=WORD   link layer of the ports, whatever family and class say
//	acs=HEX      ACS control register; its absence means no ACS capability, and
//	             acs=denied that this process may not read it
//	ats=WORD     "on", "off", or "none" for no ATS capability; not readable without
//	width=N      max_link_width
//	group=N      IOMMU group (one for each function without); "none" for no group
//	vpd=TEXT     a VPD with this product name, or KEY:TEXT for a keyword
//	vram=N       GiB of a GPU's memory, which AMD's driver shows
//	bar=N        MiB of the BAR that a GPU's memory is reached through
//	resize=HEX   sizes that this BAR can be given (resourceN_resize)
//	link=A,B     upstream ports that this one has a link to inside a partitioned switch
//	gts=N        GT/s of the link (32.0 without)
//	path=DIR     directory between the root bus's parent and this root bus
package machine

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"gdr-features/source/family"
)

// Machine is the hardware of one machine.
type Machine struct {
	Name, Title, Source string
	// Evidence says where tree and matrix are from, "real tree, published
	// matrix"; "" for a machine that is made up.
	Evidence string
	// Nodes is the number of NUMA nodes.
	Nodes int
	// Virtual: a hypervisor's guest. Arm: not x86.
	Virtual, Arm bool
	// CPU is the model and the name of an Intel CPU, "198 Intel(R) Core(TM) Ultra 9 285K".
	CPU string
	// Dwords are RegistryDwords of NVIDIA's driver; nil where its parameters cannot be read.
	Dwords *string
	// Override is GrdmaPciTopoCheckOverride of NVIDIA's driver, "" for its default.
	Override string
	// Flags are further flags of the CPU, and Kernel the release of the kernel in place of that of
	// the state; "" for none.
	Flags, Kernel string
	// Vendor, Product and BIOS are what its firmware calls the machine and itself, "" for
	// made-up ones.
	Vendor, Product, BIOS string
	Functions             []Function
	// Matrix is the level by GPU name and RDMA device, as published.
	Matrix map[string]map[string]string
}

// Function is one PCI function of a Machine.
type Function struct {
	Address string
	// Path is the directory in sysfs: devices/pci0000:15/0000:15:01.0/...
	Path           string
	Class          string
	Vendor, Device string
	SubVendor, Sub string
	NUMA           int
	Attrs          map[string]string
}

// classes by their word.
var classes = map[string]string{
	"port": "060400", "switch": "060400", "gpu": "030200", "vga": "030000", "accel": "120000",
	"ib": "020700", "eth": "020000", "dma": "080100",
}

// Load reads a description from a file.
func Load(name string) (*Machine, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	m, err := parse(string(text), name+":%d: %w", true)
	if err != nil {
		return nil, err
	}
	base := name[strings.LastIndexByte(name, '/')+1:]
	m.Name = strings.TrimSuffix(base, ".txt")
	return m, nil
}

// IsGPU reports whether this is a GPU of a family that is known.
func (f *Function) IsGPU() bool { return f.gpu() != nil }

// IsNIC reports whether this is a NIC of a family that is known, counted or not.
func (f *Function) IsNIC() bool { return f.nic() != nil }

func (f *Function) gpu() *family.GPU { return written.GPU(f.ids()) }

func (f *Function) nic() *family.NIC {
	t := written
	if n := t.NIC(f.ids()); n != nil {
		return n
	}
	return t.Other(f.ids())
}

func (f *Function) ids() family.IDs {
	n := func(s string) uint32 {
		n, _ := strconv.ParseUint(s, 16, 24) // what is no number is of no family
		return uint32(n)
	}
	return family.IDs{
		Vendor: uint16(n(f.Vendor)), Device: uint16(n(f.Device)),
		SubVendor: uint16(n(f.SubVendor)), SubDevice: uint16(n(f.Sub)), Class: n(f.Class),
	}
}

// size returns a size of memory; 0 for none.
func (f *Function) size(attr string) uint64 {
	n, _ := strconv.ParseUint(f.Attrs[attr], 10, 32) // what is no number is no size
	return n
}

// families returns those of which the machine has functions. A machine without GPUs, or
// without NICs, has the software of the first family of the table.
func (m *Machine) families() family.Table {
	known, t := written, family.Table{}
	for _, g := range known.GPUs {
		if slices.ContainsFunc(m.Functions, func(f Function) bool { return g.Of(f.ids()) }) {
			t.GPUs = append(t.GPUs, g)
		}
	}
	of := func(all []*family.NIC) (some []*family.NIC) {
		for _, n := range all {
			if slices.ContainsFunc(m.Functions, func(f Function) bool { return n.Of(f.ids()) }) {
				some = append(some, n)
			}
		}
		return some
	}
	t.NICs, t.Others = of(known.NICs), of(known.Others)
	if len(t.GPUs) == 0 {
		t.GPUs = known.GPUs[:1]
	}
	if len(t.NICs)+len(t.Others) == 0 {
		t.NICs = known.NICs[:1]
	}
	return t
}

// IsBridge reports whether this is a PCI-to-PCI bridge.
func (f *Function) IsBridge() bool { return strings.HasPrefix(f.Class, "0604") }
