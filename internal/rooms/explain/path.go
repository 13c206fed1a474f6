package explain

import (
	"cmp"
	"fmt"

	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/topology"
	"gdr-features/topology/nccl"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Hop is one device on the path from a GPU to a NIC.
type Hop struct {
	// Role is "GPU", "NIC", "data direct", "root port", "upstream port",
	// "downstream port", "bridge", "host bridge" or "CPU". The role of a port
	// follows from its place in the chain, as in NCCL.
	Role string
	// Name is a PCI address, a root bus ("pci0000:15"), or "NUMA node 0".
	Name string
	// Function is the PCI function, nil where there is none or it could not be read.
	Function *pci.Function
	// PCI says that Name is the address of a PCI function.
	PCI bool
	// IOMMU is the type of the function's IOMMU group, "" for unknown.
	IOMMU string
	// Turn says that the path leads up to here and down from here.
	Turn bool
	// Narrowest says that no link on the path carries less, and some link carries more.
	Narrowest bool
}

// Path is a GPU, a NIC and the path between them.
type Path struct {
	GPU, NIC     int
	Level, NCCL  topology.Level
	Hops         []Hop
	Why, NCCLWhy string
	// Default reports whether NCCL uses GPUDirect RDMA here with its default settings,
	// once drivers are in place. DefaultWhy says why, and what would change it.
	Default    tristate.State
	DefaultWhy string
	// DataDirect is the path to the NIC's data-direct function, nil for none.
	DataDirect []Hop
	// Notes are what else to know about this path, a sentence each.
	Notes []string
}

// PathOf explains one pair of GPU and NIC.
func PathOf(r *verdict.Node, gpu, nic int) Path {
	p := Path{GPU: gpu, NIC: nic}
	pair := r.Matrix.PairsOf(gpu)[nic]
	p.Level, p.NCCL = pair.Level, pair.NCCL
	w := path{r: r, pair: pair, gpu: r.Matrix.GPUs[gpu].Function, nic: &r.Matrix.NICs[nic]}
	if w.nic.Function == nil {
		p.Why = "the RDMA device has no PCI function on this machine"
		p.NCCLWhy, p.DefaultWhy = p.Why, "not known"
		return p
	}
	w.g, w.n = r.PCI.Place(w.gpu), r.PCI.Place(w.nic.Function)
	p.Hops = w.hops(w.n, "NIC")
	p.Why, p.NCCLWhy = w.why(), w.ncclWhy()
	p.Default, p.DefaultWhy = w.byDefault()
	if at := nccl.GetPCIPath(&r.PCI, w.nic.Function).Function; at != nil && at.DataDirectOf != nil {
		p.DataDirect = w.hops(at, "data direct")
	}
	p.Notes = w.notes(p.Hops)
	return p
}

// path is a pair whose NIC has a function.
type path struct {
	r    *verdict.Node
	pair topology.Pair
	gpu  *pci.Function
	nic  *topology.NIC
	// g and n are the functions whose places count: see pci.Inventory.Place.
	g, n *pci.Function
}

// hops lists the hops from the GPU to a function: up to the deepest common bridge, or
// to the root bus and over the NUMA nodes, and down again.
func (w *path) hops(to *pci.Function, role string) []Hop {
	hops := []Hop{w.hop("GPU", w.g.Address)}
	common := w.g.CommonBridges(to)
	for i := len(w.g.Bridges) - 1; i >= max(common-1, 0); i-- {
		hop := w.hop(portRole(i, len(w.g.Bridges)), w.g.Bridges[i])
		hop.Turn = i == common-1
		hops = append(hops, hop)
	}
	if common == 0 {
		hops = append(hops, w.overRoot(to)...)
	}
	for i := common; i < len(to.Bridges); i++ {
		hops = append(hops, w.hop(portRole(i, len(to.Bridges)), to.Bridges[i]))
	}
	hops = append(hops, w.hop(role, to.Address))
	markNarrowest(hops)
	return hops
}

func (w *path) overRoot(to *pci.Function) []Hop {
	from := rootHop(w.g)
	if w.g.RootBus == to.RootBus {
		from.Turn = w.g.RootBus != ""
		return []Hop{from}
	}
	hops := []Hop{from, nodeHop(w.g)}
	if w.g.NearNUMA != to.NearNUMA {
		hops = append(hops, nodeHop(to))
	}
	return append(hops, rootHop(to))
}

func rootHop(f *pci.Function) Hop {
	return Hop{Role: "host bridge", Name: cmp.Or(f.RootBus, "not readable")}
}

func nodeHop(f *pci.Function) Hop {
	name := "NUMA node unknown"
	if f.NearNUMA >= 0 {
		name = fmt.Sprintf("NUMA node %d", f.NearNUMA)
	}
	return Hop{Role: "CPU", Name: name}
}

// portRole names bridge i of n above a function: a root port, then an upstream and a downstream
// port for each switch. The roles are not known where one bridge is left over.
func portRole(i, n int) string {
	switch {
	case i == 0:
		return "root port"
	case n%2 == 0:
		return "bridge"
	case i%2 == 1:
		return "upstream port"
	}
	return "downstream port"
}

func (w *path) hop(role string, a pci.Address) Hop {
	h := Hop{Role: role, Name: a.String(), Function: w.r.PCI.Find(a), PCI: true}
	if f := h.Function; f != nil && f.IOMMUGroup >= 0 {
		h.IOMMU = w.r.Platform.IOMMU.Types[f.IOMMUGroup]
	}
	return h
}

// markNarrowest marks the links, at both ends, that carry least, unless all carry the same. Left
// out are that of an upstream port at the turn and of bridges of unknown role.
func markNarrowest(hops []Hop) {
	rates := make([]float64, len(hops))
	least, most := 0.0, 0.0
	for i := range hops {
		h := &hops[i]
		if h.Function == nil || h.Function.Link == nil || h.Role == "bridge" || h.Turn && h.Role == "upstream port" {
			continue
		}
		rates[i] = rate(hops, i)
		if rates[i] > 0 && (least == 0 || rates[i] < least) {
			least = rates[i]
		}
		most = max(most, rates[i])
	}
	for i := range hops {
		hops[i].Narrowest = rates[i] == least && least < most
	}
}

// rate is what the link of a hop carries in Gbit/s, 0 for unknown, to compare hops. An idle GPU
// lowers the speed of its link, so there the most that both ends can do counts.
func rate(hops []Hop, i int) float64 {
	l := *hops[i].Function.Link
	if i == 0 || i == 1 && ends(hops[1]) {
		var other *pci.Function
		if o := hops[1-i]; i == 1 || ends(o) {
			other = o.Function
		}
		l.Speed, _ = pci.MostOf(hops[i].Function, other)
	}
	return l.Carries()
}

// ends reports whether a hop is a port whose link is the one below it.
func ends(h Hop) bool { return h.Role == "root port" || h.Role == "downstream port" }

// Files are the files that the facts of a hop are read from, below
// /sys/bus/pci/devices/ADDRESS where they do not begin with a slash.
var Files = [...]struct {
	Fact  string
	Names []string
}{
	{"path", []string{"(the symbolic link itself)"}},
	{"product", []string{pci.ModaliasFile}},
	{"link", []string{pci.LinkSpeedFile, pci.LinkWidthFile, pci.MaxLinkSpeedFile, pci.MaxLinkWidthFile}},
	{"NUMA", []string{pci.NUMAFile}},
	{"IOMMU group", []string{pci.IOMMUGroupFile, platform.Groups + "/NUMBER/type"}},
	{"ACS", []string{pci.ConfigFile}},
}

// Nearest are the NICs nearest to a GPU.
type Nearest struct {
	// NICs are those of topology.Usable.
	NICs []int
	// Path is the one to the first of them; without any, only its GPU is set.
	Path
}

// NearestNICs returns the nearest NICs of every GPU.
func NearestNICs(r *verdict.Node) []Nearest {
	list := make([]Nearest, len(r.Matrix.GPUs))
	for gpu := range list {
		near := &list[gpu]
		near.GPU, near.NICs = gpu, r.Matrix.GPUs[gpu].Near(topology.Usable).NICs
		if len(near.NICs) > 0 {
			near.Path = PathOf(r, gpu, near.NICs[0])
		}
	}
	return list
}
