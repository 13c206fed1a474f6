package findings

import (
	"fmt"
	"slices"

	"gdr-features/internal/frameworks"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

const (
	placeUnknown = "the place of a GPU or a NIC is not known"
	virtualTree  = "; this is a hypervisor's PCI tree, which may hide the real one"
)

var giveTopology = do("give NCCL a topology file (NCCL_TOPO_FILE), and this program with --topology-file",
	"or let the hypervisor show the switches of the hardware (QEMU: pxb-pcie and x3130 ports), with ATS of the NICs on")

var level = check{name: "level", sources: []string{pci.Devices, pci.AnyFile(pci.NUMAFile)}, rows: []row{
	{
		status: Undecidable, code: "VirtualTopology", when: func(f *judged) bool { return f.Matrix.Level == topology.Unknown && f.Matrix.Origin == topology.Virtual },
		text: placeUnknown + virtualTree, fix: giveTopology,
		evidence: func(f *judged) []string { return f.of(withoutNUMA(f), sawNoNUMA) },
	},
	{
		status: Undecidable, when: func(f *judged) bool { return f.Matrix.Level == topology.Unknown }, which: functionsWithoutNUMA,
		text: placeUnknown, fix: do("the firmware does not give the NUMA node (_PXM): update it, or use a topology file"),
	},
	{status: Undecidable, when: func(f *judged) bool { return f.Matrix.Level == topology.Unknown }, text: placeUnknown},
	{status: OK, when: func(f *judged) bool { return f.Matrix.Level == topology.PIX }, text: "every GPU has a NIC at PIX"},
	{status: OK, when: func(f *judged) bool { return f.Matrix.Level == topology.PXB }, text: "every GPU has a NIC at PXB or nearer"},
	{
		status: OK, when: func(f *judged) bool { return f.Matrix.NCCLDefault == tristate.True },
		text: "in the PCI tree a GPU's nearest NIC is at {worstLevel}; {library} {libraryBeyond}",
	},
	{status: Warn, code: "VirtualTopology", when: func(f *judged) bool { return f.Matrix.Origin == topology.Virtual }, which: farGPUs, text: nearestIsFar + virtualTree, fix: giveTopology},
	{
		status: Warn, code: "GPUWithoutNearNIC", which: farGPUs,
		text: nearestIsFar,
		fix:  do("put a NIC below the GPU's PCIe switch, or expect less bandwidth through the CPU"),
	},
}}

// mergeNoVFs is what NCCL needs beside a topology file that has virtual functions at their own
// addresses (crusoecloud/solutions-library 6a72945a): by default it takes all functions of a bus
// for one NIC, and looks for that at device 0, function 0 (src/transport/net_ib/init.cc,
// ncclIbGetPciPath, NCCL 2.30.7).
var mergeNoVFs = do("set NCCL_IB_MERGE_VFS=0 beside NCCL_TOPO_FILE: NCCL then looks for each virtual function itself")

func vfsAside(f *judged) bool { return slices.ContainsFunc(f.Matrix.Pairs, f.Matrix.VFAside) }

// vfsUnmerged: the environment of a container has that variable.
func vfsUnmerged(f *judged) bool {
	return f.Pod != nil && frameworks.Zero(f.Pod.Environment.Variables[frameworks.MergeVFs])
}

// nearUnmerged: with it, every GPU has a NIC with which NCCL uses GPUDirect RDMA by default.
func nearUnmerged(f *judged) bool {
	far := func(gpu int) bool {
		near := func(p topology.Pair) bool { return p.Default == tristate.True || f.Matrix.VFAside(p) }
		return f.Matrix.GPUs[gpu].Eligible && !slices.ContainsFunc(f.Matrix.PairsOf(gpu), near)
	}
	for gpu := range f.Matrix.GPUs {
		if far(gpu) {
			return false
		}
	}
	return vfsUnmerged(f)
}

const nearestIsFar = "the nearest NIC of a GPU is at {worstLevel}: {about}"

// guest: this is a virtual machine, as the CPU, the firmware or the PCI tree shows.
func guest(f *judged) bool { return f.Guest() }

// withoutNUMA are GPUs and NICs of unknown NUMA node, on a machine that has several.
func withoutNUMA(f *judged) func(*pci.Function) bool {
	return func(fn *pci.Function) bool {
		return eligible(fn) && fn.NearNUMA == pci.None && f.PCI.NUMANodes > 1 && !f.PCI.OneNode()
	}
}

func sawNoNUMA(fn *pci.Function) string { return saw(fn.Address.File(pci.NUMAFile), "-1") }

func functionsWithoutNUMA(f *judged) subjects {
	return subjects{f.of(withoutNUMA(f), address), f.of(withoutNUMA(f), sawNoNUMA)}
}

func address(fn *pci.Function) string { return fn.Address.String() }

// farGPUs lists the GPUs whose nearest NIC is beyond PXB, with it, as explain takes them.
func farGPUs(f *judged) (far subjects) {
	for i, gpu := range f.Matrix.GPUs {
		if !gpu.Eligible || gpu.Level <= topology.PXB {
			continue
		}
		nearest := gpu.Nearest[0]
		pair := fmt.Sprintf("GPU%d %s", i, nicOf(f, nearest))
		if gpu.Level != f.Matrix.Level {
			pair += " at " + gpu.Level.String()
		}
		far.add(pair, sawPlace(gpu.Function), sawPlace(nearest))
	}
	return far
}

// nicOf is what topo calls the NIC of a function.
func nicOf(f *judged, of *pci.Function) string {
	for i := range f.Matrix.NICs {
		if nic := &f.Matrix.NICs[i]; nic.Function == of {
			return nicName(nic)
		}
	}
	return of.Address.String()
}

var ncclDefault = check{name: "nccl-default", sources: []string{pci.Devices}, rows: []row{
	{
		status: Warn, code: "TopologyFileRefused", which: refusedFile,
		text: "{library} refuses the topology file and does not start: {about}",
		fix:  do("correct the file", "gdr-features topo -o nccl-xml writes one that {library} accepts"),
	},
	{status: OK, when: func(f *judged) bool { return f.Matrix.NCCLDefault == tristate.True }, text: "{library} uses GPUDirect RDMA for every GPU with its default settings"},
	{
		status: OK, when: func(f *judged) bool { return f.Matrix.NCCLDefault == tristate.False && vfsAside(f) && nearUnmerged(f) },
		text: "{library} looks for each virtual function where the topology file has it, because of " + frameworks.MergeVFs + "=0",
		evidence: func(f *judged) []string {
			return []string{saw(frameworks.MergeVFs, f.Pod.Environment.Variables[frameworks.MergeVFs])}
		},
	},
	{
		status: Warn, code: "VirtualTopology", when: func(f *judged) bool { return f.Matrix.NCCLDefault == tristate.False && vfsAside(f) && !vfsUnmerged(f) },
		text:     "{library} looks for virtual functions at function 00.0 of their bus, where the topology file has none",
		fix:      mergeNoVFs,
		evidence: sawFar,
	},
	{
		status: Warn, code: "BeyondNCCLDefault", when: func(f *judged) bool { return f.Matrix.NCCLDefault == tristate.False },
		text:     "at least one GPU is beyond {library}'s default limit ({libraryLimit})",
		fix:      do("set NCCL_NET_GDR_LEVEL=PHB or SYS and measure: it may be slower than without GPUDirect RDMA"),
		evidence: sawFar,
	},
	{status: Undecidable, text: "how {library} rates the places of GPUs and NICs is not known"},
}}

func refusedFile(f *judged) (why subjects) {
	if err := f.Matrix.FileRefused; err != nil {
		why.add(err.Error(), saw(f.Matrix.FileName, err.Error()))
	}
	return why
}

// sawFar is evidence of the GPUs that are far from their NICs; where none is in the
// PCI tree, of where all are.
func sawFar(f *judged) []string {
	if far := farGPUs(f).evidence; len(far) > 0 {
		return far
	}
	var all []string
	for _, gpu := range f.Matrix.GPUs {
		if !gpu.Eligible {
			continue
		}
		all = append(all, sawPlace(gpu.Function))
		if len(gpu.Nearest) > 0 {
			all = append(all, sawPlace(gpu.Nearest[0]))
		}
	}
	return all
}

var sharedNIC = check{name: "shared-nic", sources: []string{pci.Devices}, rows: []row{{
	status: Warn, code: "SharedNearNIC", which: sharedNearNIC,
	text: "NIC {about}",
	fix:  do("compare with the board's manual and with nodes of the same model: if the board has one NIC for each GPU, ask the vendor for firmware of the PCIe switch (some Gen4 switches show virtual bridges that hide the real tree)"),
}}}

// sharedNearNIC finds two GPUs with the same nearest NIC, while another NIC of the
// same model is nearest to none and there is one for each GPU: a PCI tree that may
// not be the board's, as some Gen4 switches show with virtual bridges.
func sharedNearNIC(f *judged) (shared subjects) {
	if f.Matrix.Origin != topology.Physical || !f.Matrix.Complete {
		return shared
	}
	served := map[*pci.Function][]string{} // the GPUs of a NIC that alone is nearest
	nearest := map[*pci.Function]bool{}
	for i, gpu := range f.Matrix.GPUs {
		near := f.Matrix.NearFunctions(i)
		for _, nic := range near {
			nearest[nic] = true
		}
		if gpu.Eligible && len(near) == 1 && gpu.Level <= topology.PXB {
			served[near[0]] = append(served[near[0]], gpu.Address.String())
		}
	}
	for _, nic := range f.functions(func(fn *pci.Function) bool { return len(served[fn]) > 1 }) {
		if idle := f.idleTwin(nic, nearest); idle != nil {
			shared.add(fmt.Sprintf("%v is the nearest of the GPUs %s, while %v, of the same model, is nearest to none", nic.Address, firstFew(served[nic]), idle.Address),
				sawPlace(nic), sawPlace(idle))
			break
		}
	}
	return shared
}

// idleTwin returns a NIC of the same model that is nearest to no GPU, where there are
// as many of the model as there are GPUs.
func (f *judged) idleTwin(nic *pci.Function, nearest map[*pci.Function]bool) *pci.Function {
	twins := f.functions(func(fn *pci.Function) bool {
		return eligibleNIC(fn) && fn.PhysFn == nil && fn.Device == nic.Device && fn.Class == nic.Class && fn.Address.Function == 0
	})
	idle := slices.IndexFunc(twins, func(fn *pci.Function) bool { return !nearest[fn] })
	if idle < 0 || len(twins) < f.Matrix.EligibleGPUs {
		return nil
	}
	return twins[idle]
}
