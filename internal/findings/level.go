package findings

import (
	"cmp"
	"fmt"
	"slices"

	"gdr-features/internal/finding"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

const (
	placeUnknown = "the place of a GPU or a NIC is not known"
	virtualTree  = "; this is a hypervisor's PCI tree, which may hide the real one"
)

// giveTopology is advice for a virtual machine.
var giveTopology = []string{
	"give NCCL a topology file (NCCL_TOPO_FILE), and this program with --topology-file",
	"or let the hypervisor show the switches of the hardware (QEMU: pxb-pcie and x3130 ports), with ATS of the " +
		"NICs on",
}

var level = check{
	Name: "level", Sources: []string{pci.Devices, pci.AnyFile(pci.NUMAFile)},
	Codes: []finding.Code{"VirtualTopology", finding.Unreadable, "GPUWithoutNearNIC"},
	Judge: judgeLevel,
}

func judgeLevel(f *judged) finding.Said {
	virtual := f.Matrix.Origin == topology.Virtual
	switch level := f.Matrix.Usable.Level; {
	case level == topology.Unknown:
		return unknownLevel(f, virtual)
	case level == topology.PIX:
		return finding.OK("every GPU has a NIC at PIX")
	case level == topology.PXB:
		return finding.OK("every GPU has a NIC at PXB or nearer")
	case f.Matrix.Usable.NCCLDefault == tristate.True:
		return finding.OK("in the PCI tree a GPU's nearest NIC is at %v; %s %s", level, f.GPU.Help.Library,
			f.GPU.Help.Beyond)
	}
	far := farGPUs(f)
	nearest := fmt.Sprintf("the nearest NIC of a GPU is at %v: %s", f.Matrix.Usable.Level, far)
	if virtual {
		return finding.Warn("VirtualTopology", "%s"+virtualTree, nearest).OfAny(far).Do(giveTopology...)
	}
	return finding.Warn("GPUWithoutNearNIC", "%s", nearest).OfAny(far).
		Do("put a NIC below the GPU's PCIe switch, or expect less bandwidth through the CPU")
}

// unknownLevel says why the places are not known, as far as that is known.
func unknownLevel(f *judged, virtual bool) finding.Said {
	without := functionsWithoutNUMA(f)
	unknown := finding.Unknown(placeUnknown).Of(without)
	switch {
	case virtual:
		return unknown.And(virtualTree).As("VirtualTopology").Do(giveTopology...)
	case without.Any():
		return unknown.Do("the firmware does not give the NUMA node (_PXM): update it, or use a topology file")
	}
	return unknown
}

// mergeNoVFs is what NCCL needs beside a topology file that has virtual functions at their own
// addresses (crusoecloud/solutions-library 6a72945a): by default it takes all functions of a bus
// for one NIC, and looks for that at device 0, function 0 (src/transport/net_ib/init.cc,
// ncclIbGetPciPath, NCCL 2.30.7).
const mergeNoVFs = "set NCCL_IB_MERGE_VFS=0 beside NCCL_TOPO_FILE: NCCL then looks for each virtual " +
	"function itself"

// functionsWithoutNUMA are GPUs and NICs of unknown NUMA node, on a machine that has several.
func functionsWithoutNUMA(f *judged) (without finding.Subjects) {
	for _, fn := range f.functions(eligible) {
		if fn.NearNUMA == pci.None && f.PCI.NUMANodes > 1 && !f.PCI.OneNode() {
			without.Add(f.named(fn), finding.Saw(fn.Address.File(pci.NUMAFile), "-1"))
		}
	}
	return without
}

// farGPUs lists the GPUs whose nearest NIC is beyond PXB, with it, as explain takes them.
func farGPUs(f *judged) (far finding.Subjects) {
	for i, gpu := range f.Matrix.GPUs {
		near := gpu.Near(topology.Usable)
		if !gpu.Counts() || near.Level <= topology.PXB {
			continue
		}
		nearest := &f.Matrix.NICs[near.NICs[0]]
		pair := fmt.Sprintf("GPU%d %s", i, cmp.Or(nearest.Name(), nearest.Address()))
		if near.Level != f.Matrix.Usable.Level {
			pair += " at " + near.Level.String()
		}
		far.Add(pair, sawPlace(gpu.Function), sawPlace(nearest.Function))
	}
	return far
}

var ncclDefault = check{
	Name: NCCLDefault, Sources: []string{pci.Devices},
	Codes: []finding.Code{"TopologyFileRefused", "VirtualTopology", "BeyondNCCLDefault", finding.Unreadable},
	Judge: judgeNCCLDefault,
}

func judgeNCCLDefault(f *judged) finding.Said {
	library := f.GPU.Help.Library
	if err := f.Matrix.FileRefused; err != nil {
		return finding.Warn("TopologyFileRefused", "%s refuses the topology file and does not start: %v", library, err).
			Saw(finding.Saw(f.Matrix.File.Name, err.Error())).
			Do("correct the file", "`gdr-features topo -o nccl-xml` writes one that "+library+" accepts")
	}
	switch isDefault := f.Matrix.Usable.NCCLDefault; {
	case isDefault == tristate.True:
		return finding.OK("the default settings of %s allow GPUDirect RDMA for every GPU", library)
	case isDefault == tristate.Unknown:
		return finding.Unknown("how %s rates the places of GPUs and NICs is not known", library)
	case slices.ContainsFunc(f.Matrix.Pairs, f.Matrix.VFAside):
		return finding.Warn("VirtualTopology", "%s looks for virtual functions at function 00.0 of their bus, "+
			"where the topology file has none", library).
			Saw(sawFar(f)...).Do(mergeNoVFs)
	}
	return beyondDefault(f)
}

// beyondDefault: a GPU has no NIC with which NCCL uses GPUDirect RDMA by itself.
func beyondDefault(f *judged) finding.Said {
	return finding.Warn("BeyondNCCLDefault", "at least one GPU is beyond %s's default limit (%s)",
		f.GPU.Help.Library, f.GPU.Help.Limit).
		Saw(sawFar(f)...).
		Do("set NCCL_NET_GDR_LEVEL=PHB or SYS and measure: it may be slower than without GPUDirect RDMA")
}

// sawFar is evidence of the GPUs that are far from their NICs, or of all where none is.
func sawFar(f *judged) []string {
	if far := farGPUs(f).Evidence; len(far) > 0 {
		return far
	}
	var all []string
	for _, gpu := range f.Matrix.GPUs {
		if !gpu.Counts() {
			continue
		}
		all = append(all, sawPlace(gpu.Function))
		if near := gpu.Near(topology.Usable).Functions; len(near) > 0 {
			all = append(all, sawPlace(near[0]))
		}
	}
	return all
}

var sharedNIC = check{
	Name: "shared-nic", Sources: []string{pci.Devices}, Codes: []finding.Code{"SharedNearNIC"},
	Judge: func(f *judged) finding.Said {
		shared := sharedNearNIC(f)
		return finding.Warn("SharedNearNIC", "NIC %s", shared).OfAny(shared).
			Do("compare with the board's manual and with nodes of the same model: if the board has one NIC for each " +
				"GPU, ask the vendor for firmware of the PCIe switch (some Gen4 switches show virtual bridges that hide " +
				"the real tree)")
	},
}

// sharedNearNIC finds two GPUs with the same nearest NIC, while another NIC of the
// same model is nearest to none and there is one for each GPU: a PCI tree that may
// not be the board's, as some Gen4 switches show with virtual bridges.
func sharedNearNIC(f *judged) (shared finding.Subjects) {
	if f.Matrix.Origin != topology.Physical || !f.Matrix.Complete {
		return shared
	}
	served := map[*pci.Function][]string{} // the GPUs of a NIC that alone is nearest
	nearest := map[*pci.Function]bool{}
	for _, gpu := range f.Matrix.GPUs {
		near := gpu.Near(topology.Usable).Functions
		for _, nic := range near {
			nearest[nic] = true
		}
		if gpu.Counts() && len(near) == 1 && gpu.Near(topology.Usable).Level <= topology.PXB {
			served[near[0]] = append(served[near[0]], f.named(gpu.Function))
		}
	}
	for _, nic := range f.functions(func(fn *pci.Function) bool { return len(served[fn]) > 1 }) {
		if idle := f.idleTwin(nic, nearest); idle != nil {
			shared.Add(fmt.Sprintf("%s is the nearest of %s, while %s, of the same model, is nearest to "+
				"none", f.named(nic), finding.FirstFew(served[nic]), f.named(idle)),
				sawPlace(nic), sawPlace(idle))
			break
		}
	}
	return shared
}

// idleTwin returns a NIC of the same model that is nearest to no GPU, if the machine has at least as
// many of the model as GPUs.
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
