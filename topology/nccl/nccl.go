// Package nccl says how NCCL rates the paths between GPUs and NICs, and why it does not start. It
// does what NCCL's code does, mistakes included, since a job's transport follows from them: a
// function here is one of NCCL's, is named after it without "ncclTopo", and its comment names the
// file. xml.go follows src/graph/xml.h and xml.cc, reader.go the reader in xml.cc, topo.go
// src/graph/topo.cc and paths.cc, all of NCCL 2.30.7. test/nccl compares the package with NCCL itself.
//
// It is pure: facts in, paths out.
package nccl

import (
	"slices"
	"strconv"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/source/platform"
)

// Machine is what NCCL finds on a machine.
type Machine struct {
	PCI *pci.Inventory
	// File is the topology file, nil without one.
	File *File
	GPUs []*pci.Function
	CPU  platform.CPU
	// BIOS is its version, and Virtual whether the machine is virtual: RCCL goes by them.
	BIOS    string
	Virtual bool
}

// NIC is a NIC and where NCCL looks for it. Only Write needs its name and number of ports.
type NIC struct {
	*pci.Function
	At    Device
	Name  string
	Ports int
}

// Device is where NCCL looks for a GPU or NIC.
type Device struct {
	// Function is the one whose place counts: a GPU itself, and a NIC itself where NCCL uses
	// it by a plugin; a NIC's data-direct function; or the one with device and function
	// number 0 on its bus. nil where that does not exist, so that NCCL uses the first CPU.
	Function *pci.Function
	// Known is false where that, or its place, cannot be read.
	Known bool
	// NUMA is the NUMA node of the topmost switch, see pci.Function.RootNUMA.
	NUMA int
	// Net is the name by which the topology file has a NIC, whatever Function is; "" for none.
	Net string
	// Mbps is the rate of a NIC's port, by which NCCL chooses among NICs; 0 for the same as others.
	Mbps int
}

// Itself returns the place of a function itself.
func Itself(f *pci.Function) Device {
	return Device{Function: f, Known: f.RootBus != "", NUMA: f.RootNUMA}
}

// GetPCIPath is ncclIbGetPciPath (src/transport/net_ib/init.cc) and what comes before it: where NCCL
// looks for a NIC. That is itself where NCCL uses it by a plugin, its data-direct function where it
// has one, else the one with device and function number 0 on its bus. NCCL takes all functions of a
// bus for ports and virtual functions of one NIC (NCCL_IB_MERGE_VFS=1, its default).
func GetPCIPath(inv *pci.Inventory, f *pci.Function) Device {
	if f.RootBus == "" {
		return Device{}
	}
	if ByPlugin(f) {
		return Itself(f)
	}
	if f.DataDirect != nil {
		if dd := inv.Find(*f.DataDirect); dd != nil {
			return Itself(dd)
		}
	}
	at := f.Address
	at.Device, at.Function = 0, 0
	switch g := inv.Find(at); {
	case g == nil:
		return Device{Known: true}
	case g.RootBus == "":
		return Device{}
	default: // the kernel gives all functions of a bus one NUMA node
		return Device{Function: g, Known: true, NUMA: f.RootNUMA}
	}
}

// ByPlugin reports whether NCCL uses a NIC by a plugin.
func ByPlugin(f *pci.Function) bool {
	return f.NIC != nil && f.NIC.NCCLPlugin != nil || f.Other != nil && f.Other.NCCLPlugin != nil
}

// Ratings are NCCL's ratings of GPUs and NICs by their places.
type Ratings struct {
	// Failed is why NCCL does not start, Fault the same if the topology file lacks something.
	Failed, Fault error

	system *Element
	gpus   map[pci.Address]int
	nics   map[Device]int
	paths  [][]Path // by NIC and GPU; nil where NCCL does not start
	merged []int64  // the switches that NCCL merges into another
}

// Rate rates every GPU with every NIC.
func (m *Machine) Rate(nics []NIC) *Ratings {
	r := &Ratings{gpus: map[pci.Address]int{}, nics: make(map[Device]int, len(nics))}
	for i, gpu := range m.GPUs {
		r.gpus[gpu.Address] = i
	}
	var places []Device
	for _, nic := range nics {
		if _, ok := r.nics[nic.At]; !ok && nic.At.Known {
			r.nics[nic.At] = len(places)
			places = append(places, nic.At)
		}
	}
	switch {
	case len(m.GPUs) == 0:
		return r
	case m.File != nil && m.File.RefusedFor(m.GPUs) != nil:
		r.Failed = m.File.RefusedFor(m.GPUs)
		return r
	}
	r.system = m.getXML(places)
	s := getSystemFromXML(r.system, m.GPUs)
	if s.failed == nil {
		r.paths = s.computePaths(len(places), m.GPUs)
	}
	r.merged, r.Failed, r.Fault = s.merged, s.failed, s.fault
	if r.Failed != nil {
		r.paths = nil
		return r
	}
	r.unread(m)
	r.pathOverride(m, nics)
	return r
}

// unread leaves unknown what rests on facts that could not be read: links between partitions of
// switches, which make pairs PXB, and bandwidths, which decide between P2C and PHB.
func (r *Ratings) unread(m *Machine) {
	for _, of := range r.paths {
		for rank, path := range of {
			if path > PXB && m.PCI.SwitchLinksUnread || m.PCI.LinksUnread && m.GPUs[rank].Coherent() && (path == P2C || path == PHB) {
				of[rank] = Unknown
			}
		}
	}
}

// Knows reports whether a NIC was rated.
func (r *Ratings) Knows(at Device) bool {
	_, ok := r.nics[at]
	return ok || !at.Known
}

// Path returns the rating of a GPU and a NIC.
func (r *Ratings) Path(gpu *pci.Function, at Device) Path {
	i, ok := r.nics[at]
	j, rated := r.gpus[gpu.Address]
	if !ok || !rated || r.paths == nil {
		return Unknown
	}
	return r.paths[i][j]
}

// Place is where NCCL finds a GPU or NIC.
type Place struct {
	Device
	// CPU is the NUMA node that it is attached to, as text; "" where that is not known.
	CPU string
	// Switches are the switches above it, the topmost first, by their upstream
	// ports. Merged are those that NCCL merges with another switch of the same chip.
	Switches, Merged []string
}

// Place returns where NCCL finds a rated GPU or NIC.
func (r *Ratings) Place(of Device) Place {
	p := Place{Device: of}
	name, key := "net", "dev"
	number, ok := r.nics[of]
	if !ok && of.Function != nil {
		name, key = "gpu", "rank"
		number, ok = r.gpus[of.Function.Address]
	}
	if r.system == nil || !of.Known || !ok {
		return p
	}
	leaf := first(r.system.all(), func(e *Element) bool { return e.name == name && e.attr(key) == strconv.Itoa(number) })
	for _, e := range leaf.path() {
		switch id := e.attr("busid"); {
		case e.name == "cpu" && e.attr("numaid") != unknownCPU:
			p.CPU = e.attr("numaid")
		case e.name != "pci" || e.sub("gpu") != nil || e.sub("nic") != nil:
		case slices.Contains(r.merged, busIDToInt64(id)):
			p.Merged = append(p.Merged, id)
		default:
			p.Switches = append(p.Switches, id)
		}
	}
	return p
}

// RCCL, AMD's fork of NCCL, rates as NCCL does, with the exceptions that follow
// (ROCm/rccl src/graph/paths.cc, 6.0 to 7).

// pathOverride is rcclPathOverride and what ncclTopoComputePaths does with it: it rates as PXB the
// pairs that RCCL makes by address under Hyper-V, whose guests see no bridges. RCCL tries three
// distances between domain and bus numbers, and takes the first at which every GPU has a NIC. It
// does so in jobs of more than one machine.
func (r *Ratings) pathOverride(m *Machine, nics []NIC) {
	paired := func(gpu *pci.Function) bool { return gpu.GPU.HyperVPairs.Has(gpu.Device) }
	intel, hyperV := m.CPU.Vendor == "GenuineIntel", strings.HasPrefix(m.BIOS, "Hyper-V UEFI Release")
	if !slices.ContainsFunc(m.GPUs, paired) || !intel && m.CPU.Vendor != "" || !hyperV && (m.BIOS != "" || !m.Virtual) {
		return
	}
	path := PXB
	if !intel || !hyperV { // one of the two cannot be read
		path = Unknown
	}
	for _, distance := range [...]int64{1 << 20, 1 << 12, 0xff << 20} {
		partner := func(gpu *pci.Function, nic NIC) bool {
			d := busIDToInt64(gpu.Address.String()) - busIDToInt64(nic.Address.String())
			return d == distance || d == -distance
		}
		alone := func(gpu *pci.Function) bool {
			return !slices.ContainsFunc(nics, func(nic NIC) bool { return partner(gpu, nic) })
		}
		if slices.ContainsFunc(m.GPUs, alone) {
			continue
		}
		for j, gpu := range m.GPUs {
			for _, nic := range nics {
				switch i, ok := r.nics[nic.At]; {
				case !ok || !partner(gpu, nic):
				case nic.At.Net != "": // RCCL's address is that of another function then
					r.paths[i][j] = Unknown
				default:
					r.paths[i][j] = path
				}
			}
		}
		return
	}
}

// RaisedByRCCL reports whether some version of RCCL uses GPUDirect RDMA for a GPU and a NIC at
// PHB (ncclTopoCheckGdr). That is on EPYC of the second to the fourth generation, if the NIC
// is right below a root port, the GPU is too or is behind the switch of its own card, and
// both bus numbers have the same upper four bits. Versions differ in which GPUs these are.
func RaisedByRCCL(cpu platform.CPU, gpu, nic *pci.Function) bool {
	epyc := cpu.Vendor == "AuthenticAMD" && (cpu.Family == 143 && cpu.Model >= 0x31 || cpu.Family == 175)
	return gpu.GPU.RCCL && (epyc || cpu.Arch == "") &&
		len(nic.Switches()) == 0 && len(gpu.Switches()) <= 1 && gpu.Address.Bus>>4 == nic.Address.Bus>>4
}
