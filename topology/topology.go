package topology

import (
	"cmp"
	"slices"

	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/topology/nccl"
	"gdr-features/tristate"
)

// Origin is what the levels are based on.
type Origin string

// Origins of the levels. It is "" when it is not known whether the machine is
// virtual, and when the machine's topology file cannot be read.
const (
	Physical Origin = "physical" // the PCI tree of bare metal
	Virtual  Origin = "virtual"  // the PCI tree a hypervisor shows
	FromFile Origin = "file"     // an NCCL topology file
)

// GPU is a GPU of a known family.
type GPU struct {
	*pci.Function
	near [numCounted]Nearest // see Near
}

// NIC is an RDMA device, or a NIC function that has none: one that is eligible, that the user
// excludes, or of a family without RDMA driver (family.NIC.Verbs), whose NICs are only listed.
type NIC struct {
	// RDMA is the RDMA device (/sys/class/infiniband), nil when the function has none.
	RDMA *rdma.Device
	// Function is the PCI function, nil for an RDMA device without one.
	Function *pci.Function
	// Role says what the NIC is for, "" where nothing tells.
	Role Role
}

// Counts reports whether the function does, and the RDMA device neither manages NVLink switches
// nor is left out by the user. What is about hardware alone goes by the function.
func (n *NIC) Counts() bool {
	return n.Function != nil && n.Function.NICEligible() && !n.NVLinkManagement() && !n.Excluded()
}

// Excluded reports whether the user takes the NIC out of what is judged.
func (n *NIC) Excluded() bool {
	return n.Function != nil && n.Function.Excluded || n.RDMA != nil && n.RDMA.Excluded
}

// NVLinkManagement reports whether the NIC manages NVLink switches. The RDMA device tells it by
// its PSID, which only a bound driver shows: such a NIC has no usable ports, but stays among the
// nearest NICs and in the counts, which no driver may change.
func (n *NIC) NVLinkManagement() bool {
	return n.Function != nil && n.Function.NVLinkManagement || n.RDMA != nil && n.RDMA.NVLinkManagement
}

// Name is the RDMA device's name, "" without one.
func (n *NIC) Name() string {
	if n.RDMA == nil {
		return ""
	}
	return n.RDMA.Name
}

// Address is the PCI address as text, "" for a device that has none.
func (n *NIC) Address() string {
	if a, ok := n.address(); ok {
		return a.String()
	}
	return ""
}

func (n *NIC) address() (a pci.Address, ok bool) {
	switch {
	case n.Function != nil:
		return n.Function.Address, true
	case n.RDMA != nil && n.RDMA.PCI != nil:
		return *n.RDMA.PCI, true
	}
	return a, false
}

// Pair is a GPU and a NIC, by their indexes in the Matrix, and how near they are.
type Pair struct {
	GPU, NIC int
	// Level is that of nvidia-smi topo -m, NCCL that of NCCL (src/graph/paths.cc).
	Level, NCCL Level
	// Bridge is the deepest bridge above both in sysfs; nil for none or an unknown place.
	Bridge *pci.Address
	// FromFile: the levels are those of a topology file, which has both functions, or the GPU
	// and the RDMA device's name, which does not count for what is about hardware.
	FromFile bool
	// Default reports whether NCCL uses GPUDirect RDMA for the pair with its default
	// settings (NCCL_NET_GDR_LEVEL), judged by their places in the PCI tree.
	Default tristate.State
	// Allowed reports whether the machine's type lets the NIC reach the GPU's memory
	// (family.NIC.NoGPUMemory), and the driver maps it at their places
	// (family.GPU.CommonBridge).
	Allowed tristate.State

	floor Level // the smallest that Level may be where it is Unknown
}

// Reach is what every eligible GPU has among the NICs that count.
type Reach struct {
	// Level is the smallest level that every GPU reaches: that of its nearest NICs, of the GPU whose
	// nearest are farthest.
	Level Level
	// NCCLDefault reports whether every GPU has a NIC with Pair.Default and Pair.Allowed, by the
	// places of functions.
	NCCLDefault tristate.State
}

// Matrix holds the GPUs and NICs of a machine and how near they are to each other.
type Matrix struct {
	Origin Origin
	// GPUs are sorted by address, NICs by address and then name.
	GPUs []GPU
	NICs []NIC
	// Pairs holds every GPU with every NIC, in their order; see PairsOf.
	Pairs []Pair

	// What follows is about eligible GPUs and NIC functions, with RDMA devices or without.

	// EligibleGPUs and EligibleNICs do not count virtual functions whose physical one is listed.
	// Complete is false when there may be more, among functions that could not be identified.
	EligibleGPUs, EligibleNICs int
	Complete                   bool
	// Hardware and Usable are about the NICs that count so.
	Hardware, Usable Reach
	// Best is the smallest level of any pair, of those that count as Hardware.
	Best Level
	// Reachable reports whether there is a pair with Pair.Allowed.
	Reachable tristate.State
	// DataDirect reports whether there is a data-direct function (ConnectX-8).
	DataDirect bool
	// FileUnread: the topology file cannot be read, so no level is known.
	FileUnread bool
	// FileRefused is why NCCL does not start with the topology file, nil where it does.
	FileRefused error
	// Machine are the names that the firmware gives the machine.
	Machine platform.DMI

	// NCCL are NCCL's ratings, and InNCCL where it looks for NICs, by their indexes.
	NCCL   nccl.Ratings
	InNCCL []nccl.Device
	// File is the topology file, nil without one.
	File *nccl.File
}

// Source is what the levels of pairs rest on: Origin, or FromFile where some are from the
// topology file by a NIC's name, which Origin does not count.
func (m *Matrix) Source() Origin {
	if slices.ContainsFunc(m.Pairs, func(p Pair) bool { return p.FromFile }) {
		return FromFile
	}
	return m.Origin
}

// PairsOf returns the pairs of a GPU with every NIC, in their order.
func (m *Matrix) PairsOf(gpu int) []Pair {
	n := len(m.NICs)
	return m.Pairs[gpu*n : (gpu+1)*n]
}

// Inputs are what a Matrix is built from.
type Inputs struct {
	PCI  *pci.Inventory
	RDMA *rdma.Inventory
	// File is the topology file, nil without one or when it cannot be read (FileUnread).
	File       *nccl.File
	FileUnread bool
	// Platform: whether the system is virtual; which machine it is (family.NIC.NoGPUMemory); the
	// CPU and the BIOS, which RCCL alone uses.
	Platform platform.State
}

// Build rates every pair of GPU and NIC. What the facts leave open is Unknown.
func Build(facts Inputs) Matrix {
	b := builder{
		Inputs: facts, m: Matrix{FileUnread: facts.FileUnread, File: facts.File},
		fileLevels: map[[2]*pci.Function]Level{},
	}
	b.m.Machine = b.Platform.DMI
	b.virtual = b.Platform.Virtual == tristate.True || b.PCI.Hypervisor() != nil
	b.gpus()
	b.nics()
	b.roles()
	b.hardware()
	b.m.Origin = b.origin() // RDMA devices, which come with drivers, do not count
	b.pairs()
	b.m.usable()
	if b.File != nil {
		b.m.FileRefused = cmp.Or(b.File.RefusedFor(b.m.gpuFunctions()), b.m.NCCL.Fault)
	}
	return b.m
}

func (b *builder) pairs() {
	at := make([]nccl.Device, len(b.m.NICs))
	for j := range b.m.NICs {
		at[j] = b.placeOf(&b.m.NICs[j])
	}
	b.rates(at)
	b.m.NCCL, b.m.InNCCL = *b.allNICs(at), at
	b.m.Pairs = make([]Pair, 0, len(b.m.GPUs)*len(b.m.NICs))
	for i := range b.m.GPUs {
		gpu := b.m.GPUs[i].Function
		for j := range b.m.NICs {
			p := Pair{GPU: i, NIC: j}
			if n := &b.m.NICs[j]; n.Function != nil {
				r := b.rate(gpu, n.Function)
				p.Level, p.floor, p.FromFile, p.Bridge = r.level.level, r.level.floor, r.fromFile, r.bridge
				if level, ok := b.byName(gpu, n, at[j]); ok {
					p.Level, p.floor, p.FromFile = level, level, true
				}
				place := b.PCI.Place(n.Function)
				p.NCCL = levelOf[b.m.NCCL.Path(gpu, at[j])]
				p.Default = b.usedByDefault(gpu, place, p.NCCL)
				if b.m.UnmatchedDataDirect(place) {
					p.NCCL = Unknown // it goes by the place of the data-direct function
				}
				p.Allowed = b.allowed(gpu, n.Function)
			}
			b.m.Pairs = append(b.m.Pairs, p)
		}
	}
}

// rateNCCL returns NCCL's ratings of all GPUs and some NICs, none for an unread file.
func (b *builder) rateNCCL(nics []nccl.NIC) *nccl.Ratings {
	if b.FileUnread {
		return &nccl.Ratings{}
	}
	m := nccl.Machine{PCI: b.PCI, File: b.File, GPUs: b.m.gpuFunctions(), CPU: b.Platform.CPU, BIOS: b.Platform.BIOS, Virtual: b.virtual}
	return m.Rate(nics)
}

func (m *Matrix) gpuFunctions() []*pci.Function {
	functions := make([]*pci.Function, len(m.GPUs))
	for i := range m.GPUs {
		functions[i] = m.GPUs[i].Function
	}
	return functions
}

type builder struct {
	Inputs
	m    Matrix
	nccl *nccl.Ratings // of eligible NICs
	// fileLevels are those of pairs in the topology file, Unknown where it lacks one of the two.
	fileLevels map[[2]*pci.Function]Level

	virtual      bool                           // the PCI tree is a hypervisor's
	fromFile     bool                           // some level is from the topology file
	commonBridge map[*family.GPU]tristate.State // GPUs of a family reach only NICs under a common bridge
}

// rating is what is known of the level of a GPU and a NIC function.
type rating struct {
	level    bound
	bridge   *pci.Address // as Pair.Bridge
	fromFile bool
}

func (b *builder) origin() Origin {
	switch {
	case b.FileUnread:
	case b.fromFile:
		return FromFile
	case b.virtual:
		return Virtual
	case b.Platform.Virtual == tristate.False || b.PCI.CPUPort():
		return Physical
	}
	return ""
}

func (b *builder) gpus() {
	for i := range b.PCI.Functions {
		f := &b.PCI.Functions[i]
		if f.GPU != nil && !f.Unidentified() && b.PCI.Physical(f) == nil {
			b.m.GPUs = append(b.m.GPUs, GPU{Function: f})
		}
	}
}

// nics lists the RDMA devices and the functions without one that NIC names, by address.
func (b *builder) nics() {
	has := make(map[pci.Address]bool, len(b.RDMA.Devices))
	b.m.NICs = make([]NIC, 0, len(b.RDMA.Devices))
	for i := range b.RDMA.Devices {
		n := NIC{RDMA: &b.RDMA.Devices[i]}
		if a := n.RDMA.PCI; a != nil {
			has[*a] = true
			n.Function = b.PCI.Find(*a)
		}
		b.m.NICs = append(b.m.NICs, n)
	}
	for i := range b.PCI.Functions {
		f := &b.PCI.Functions[i]
		onlyListed := f.Other != nil && !f.Other.Verbs()
		if (f.NICEligible() || f.Excluded || onlyListed) && !has[f.Address] {
			b.m.NICs = append(b.m.NICs, NIC{Function: f})
		}
	}
	slices.SortStableFunc(b.m.NICs, func(a, b NIC) int {
		x, _ := a.address() // the smallest one for a device that has none
		y, _ := b.address()
		return x.Compare(y)
	})
}

// rate returns the level of a GPU and a NIC function. A virtual function has the place
// of its physical function.
func (b *builder) rate(gpu, nic *pci.Function) rating {
	gpu, nic = b.PCI.Place(gpu), b.PCI.Place(nic)
	r := rating{level: sysfsLevel(gpu, nic, b.PCI.OneNode()), bridge: gpu.CommonBridge(nic)}
	if nic.OverC2C() {
		r.bridge = nil
	}
	if b.FileUnread {
		r.level = atLeast(PIX)
	} else if level, ok := b.inFile(gpu, nic); ok {
		b.fromFile = true
		r.level, r.fromFile = exactly(level), true
	}
	return r
}

// inFile returns the level that the topology file gives two functions, if it has both. Virtual
// functions share the places of their physical ones, so that each pair is looked up once.
func (b *builder) inFile(gpu, nic *pci.Function) (level Level, ok bool) {
	if b.File == nil {
		return Unknown, false
	}
	key := [2]*pci.Function{gpu, nic}
	level, done := b.fileLevels[key]
	if !done {
		if p, q := b.File.Find(gpu), b.File.Find(nic); p != nil && q != nil {
			level = levelOf[p.Path(q)]
		}
		b.fileLevels[key] = level
	}
	return level, level != Unknown
}
