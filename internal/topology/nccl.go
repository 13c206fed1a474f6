package topology

import (
	"slices"

	"gdr-features/source/pci"
)

// ncclRatings are NCCL's ratings of GPUs and NICs by their places.
type ncclRatings struct {
	system *element
	gpus   map[pci.Address]int
	nics   map[ncclFunction]int
	// levels by NIC and GPU; nil where NCCL ends with an internal error.
	levels [][]Level
	// taken are the switches that NCCL takes for one with another.
	taken  []int64
	failed bool
}

// newNCCLRatings rates every GPU with every NIC.
func newNCCLRatings(inv *pci.Inventory, file *File, gpus, nics []*pci.Function) *ncclRatings {
	r := &ncclRatings{gpus: map[pci.Address]int{}, nics: map[ncclFunction]int{}}
	for i, gpu := range gpus {
		r.gpus[gpu.Address] = i
	}
	var functions []ncclFunction
	for _, nic := range nics {
		at := inNCCL(inv, nic)
		if _, ok := r.nics[at]; !ok && at.known {
			r.nics[at] = len(functions)
			functions = append(functions, at)
		}
	}
	if len(gpus) == 0 || file != nil && file.count > ncclElements { // NCCL refuses a larger one
		return r
	}
	r.system = ncclTree(file, gpus, functions)
	g := newNCCLGraph(inv, r.system)
	r.taken = g.taken
	r.rate(g, len(gpus), len(functions))
	return r
}

// rate fills in the levels. What hangs on a CPU that is not known is rated only
// where the way leads through switches alone.
func (r *ncclRatings) rate(g *ncclGraph, gpus, nics int) {
	unknown := r.onUnknownCPU(gpus, nics)
	found := map[int][]Level{} // by node
	levels := make([][]Level, nics)
	for i := range levels {
		levels[i] = make([]Level, gpus)
		for _, at := range g.nics[i] {
			if _, done := found[at]; !done {
				found[at] = g.search(node{nicNode, at})
			}
			for j := range levels[i] {
				n, ok := g.gpus[j]
				if !ok {
					continue
				}
				level := found[at][n]
				if level > PXB && (unknown.nics[i] || unknown.gpus[j]) {
					level = Unknown
				}
				if levels[i][j] == Unknown || level != Unknown && level < levels[i][j] {
					levels[i][j] = level
				}
			}
		}
	}
	if r.failed = g.failed; !g.failed {
		r.levels = levels
	}
}

type indexes struct{ gpus, nics []bool }

// onUnknownCPU tells which GPUs and NICs hang on a CPU that is not known.
func (r *ncclRatings) onUnknownCPU(gpus, nics int) indexes {
	set := indexes{make([]bool, gpus), make([]bool, nics)}
	var mark func(e *element)
	mark = func(e *element) {
		for _, i := range e.gpus {
			set.gpus[i] = true
		}
		for _, i := range e.nics {
			set.nics[i] = true
		}
		for _, c := range e.below {
			mark(c)
		}
	}
	for _, e := range r.system.below {
		if e.key == unknownCPU {
			mark(e)
		}
	}
	return set
}

// knows tells whether a NIC was rated.
func (r *ncclRatings) knows(at ncclFunction) bool {
	_, ok := r.nics[at]
	return ok || !at.known
}

// level gives the rating of a GPU and of the function that stands for a NIC.
func (r *ncclRatings) level(gpu *pci.Function, at ncclFunction) Level {
	i, ok := r.nics[at]
	j, there := r.gpus[gpu.Address]
	if !ok || !there || r.levels == nil {
		return Unknown
	}
	return r.levels[i][j]
}

// promote rates PHB as P2C for a GPU that shares memory with the CPU both hang
// on, unless a NIC is nearer to it (src/graph/paths.cc, mergePathType). NCCL
// breaks ties by the ports' speed as well, which is no fact about places and is
// left out.
func (r *ncclRatings) promote(gpu *pci.Function) {
	j := r.gpus[gpu.Address]
	for _, of := range r.levels {
		if of[j] == PIX || of[j] == PXB {
			return
		}
	}
	for _, of := range r.levels {
		if of[j] == PHB {
			of[j] = P2C
		}
	}
}

// NCCLPlace is where NCCL finds a function in the PCI tree.
type NCCLPlace struct {
	// Function is the one whose place counts: an adapter's data-direct function,
	// or the one with device and function number 0 on its bus. nil where that is
	// not there, so that NCCL takes the first CPU.
	Function *pci.Function
	// CPU is the NUMA node that it hangs on, as text; "" where that is not known.
	CPU string
	// Switches are the switches above it, the topmost first, by their upstream
	// ports. Dissolved are those that NCCL takes for one with another of the
	// same chip.
	Switches, Dissolved []string
}

// InNCCL finds a GPU's or adapter's place as NCCL has it.
func (m *Map) InNCCL(inv *pci.Inventory, f *pci.Function) NCCLPlace {
	p := NCCLPlace{Function: f}
	if f.Kind() != pci.GPU {
		p.Function = inNCCL(inv, f).fn
	}
	if p.Function == nil {
		return p
	}
	if m.nccl == nil || m.nccl.system == nil {
		return p
	}
	e := m.nccl.system.find(p.Function.Address.String())
	if e == nil {
		return p
	}
	for e = e.parent; e.tag == "pci"; e = e.parent {
		if slices.Contains(m.nccl.taken, busNumber(e.key)) {
			p.Dissolved = append(p.Dissolved, e.key)
			continue
		}
		p.Switches = append(p.Switches, e.key)
	}
	if e.key != unknownCPU {
		p.CPU = e.key
	}
	slices.Reverse(p.Switches)
	slices.Reverse(p.Dissolved)
	return p
}

// NCCLFails tells whether NCCL ends with an internal error on this machine: where
// it merges Broadcom switches it can lose a link's way back.
func (m *Map) NCCLFails() bool {
	return m.nccl != nil && m.nccl.failed
}
