package topology

import (
	"slices"

	"gdr-features/source/pci"
)

// ncclRatings are NCCL's ratings of GPUs and NICs by their places in the PCI tree.
type ncclRatings struct {
	system *element
	gpus   map[pci.Address]int
	nics   map[ncclFunction]int
	// levels by NIC and GPU; nil where NCCL ends with an internal error.
	levels [][]Level
	// merged are the switches that NCCL merges into another.
	merged []int64
	// failed is why NCCL does not start; fault the same where the topology file
	// is to blame.
	failed, fault error
}

// newNCCLRatings rates every GPU with every NIC.
func newNCCLRatings(inv *pci.Inventory, file *File, gpus []*pci.Function, nics []ncclFunction) *ncclRatings {
	r := &ncclRatings{gpus: map[pci.Address]int{}, nics: map[ncclFunction]int{}}
	for i, gpu := range gpus {
		r.gpus[gpu.Address] = i
	}
	var functions []ncclFunction
	for _, at := range nics {
		if _, ok := r.nics[at]; !ok && at.known {
			r.nics[at] = len(functions)
			functions = append(functions, at)
		}
	}
	switch {
	case len(gpus) == 0:
		return r
	case file != nil && file.Refused != nil:
		r.failed = file.Refused
		return r
	}
	r.system = ncclTree(inv, file, gpus, functions)
	g := newNCCLGraph(inv, r.system)
	r.merged = g.merged
	r.rate(g, len(gpus), len(functions))
	r.fault = g.fault
	return r
}

// rate fills in the levels. A GPU or NIC whose CPU is not known is rated only where
// the path leads through switches alone.
func (r *ncclRatings) rate(g *ncclGraph, gpus, nics int) {
	unknownGPUs, unknownNICs := r.onUnknownCPU()
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
				if level > PXB && (unknownNICs[i] || unknownGPUs[j]) {
					level = Unknown
				}
				if levels[i][j] == Unknown || level != Unknown && level < levels[i][j] {
					levels[i][j] = level
				}
			}
		}
	}
	if r.failed = g.failed; g.failed == nil {
		r.levels = levels
	}
}

// onUnknownCPU tells which GPUs and NICs are attached to an unknown CPU, by their indexes.
func (r *ncclRatings) onUnknownCPU() (gpus, nics map[int]bool) {
	gpus, nics = map[int]bool{}, map[int]bool{}
	var mark func(e *element)
	mark = func(e *element) {
		for _, i := range e.gpus {
			gpus[i] = true
		}
		for _, i := range e.nics {
			nics[i] = true
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
	return gpus, nics
}

// knows reports whether a NIC was rated.
func (r *ncclRatings) knows(at ncclFunction) bool {
	_, ok := r.nics[at]
	return ok || !at.known
}

// level returns the rating of a GPU and of the function that stands for a NIC.
func (r *ncclRatings) level(gpu *pci.Function, at ncclFunction) Level {
	i, ok := r.nics[at]
	j, rated := r.gpus[gpu.Address]
	if !ok || !rated || r.levels == nil {
		return Unknown
	}
	return r.levels[i][j]
}

// promote rates PHB as P2C for a GPU that shares memory with the CPU that both are
// attached to, unless a NIC is nearer to it (src/graph/paths.cc, mergePathType).
// NCCL also breaks ties by the speed of ports, which has nothing to do with places
// and is left out.
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
	// Known is false where the place cannot be read.
	Known bool
	// Function is the one whose place counts: a GPU itself, and a NIC itself where NCCL uses
	// it by a plugin; a NIC's data-direct function; or the one with device and function
	// number 0 on its bus. nil where that does not exist, so that NCCL uses the first CPU.
	Function *pci.Function
	// CPU is the NUMA node that it is attached to, as text; "" where that is not known.
	CPU string
	// Net is the name by which NCCL finds a NIC in the topology file; Function does not count
	// then. "" for none.
	Net string
	// Switches are the switches above it, the topmost first, by their upstream
	// ports. Merged are those that NCCL merges with another switch of the same chip.
	Switches, Merged []string
}

// InNCCL finds the place of a GPU or NIC as NCCL does (src/graph/xml.cc).
func (m *Matrix) InNCCL(inv *pci.Inventory, f *pci.Function) NCCLPlace {
	at := ncclFunction{fn: f, known: f.RootBus != ""}
	if f.GPU == nil {
		at = inNCCL(inv, f)
	}
	return m.placeInNCCL(at)
}

// NICInNCCL finds the place of a NIC, by its index, as NCCL does. It is that of its function
// unless the topology file has the name of its RDMA device.
func (m *Matrix) NICInNCCL(inv *pci.Inventory, nic int) NCCLPlace {
	if at := m.places[nic]; at.net != "" {
		return m.placeInNCCL(at)
	}
	return m.InNCCL(inv, m.NICs[nic].Function)
}

func (m *Matrix) placeInNCCL(at ncclFunction) NCCLPlace {
	p := NCCLPlace{Known: at.known, Function: at.fn, Net: at.net}
	if !at.known || m.nccl == nil || m.nccl.system == nil {
		return p
	}
	e := m.nccl.cpuOf(at)
	switch {
	case at.net != "":
		if e = m.nccl.elementOf(at); e != nil && e.tag == "pci" {
			e = e.parent
		}
	case at.fn != nil:
		if e = m.nccl.system.find(at.fn.Address.String()); e != nil {
			e = e.parent
		}
	}
	for ; e != nil; e = e.parent {
		switch {
		case e.tag == "cpu" && e.key != unknownCPU:
			p.CPU = e.key
		case e.tag == "pci" && slices.Contains(m.nccl.merged, busNumber(e.key)):
			p.Merged = append(p.Merged, e.key)
		case e.tag == "pci":
			p.Switches = append(p.Switches, e.key)
		}
	}
	slices.Reverse(p.Switches)
	slices.Reverse(p.Merged)
	return p
}

// cpuOf returns the CPU that a NIC without function is attached to, nil for none.
func (r *ncclRatings) cpuOf(at ncclFunction) *element {
	for _, e := range r.system.below {
		if i, ok := r.nics[at]; ok && slices.Contains(e.nics, i) {
			return e
		}
	}
	return nil
}

// elementOf returns the first element that holds a NIC, nil for none.
func (r *ncclRatings) elementOf(at ncclFunction) *element {
	i, ok := r.nics[at]
	if !ok {
		return nil
	}
	var find func(e *element) *element
	find = func(e *element) *element {
		if slices.Contains(e.nics, i) {
			return e
		}
		for _, c := range e.below {
			if found := find(c); found != nil {
				return found
			}
		}
		return nil
	}
	return find(r.system)
}

// NCCLFails says why NCCL does not start on this machine, or with its topology file;
// nil where it does.
func (m *Matrix) NCCLFails() error {
	if m.nccl == nil {
		return nil
	}
	return m.nccl.failed
}
