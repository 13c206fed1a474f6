package verdict

import (
	"slices"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// Doubt says what a published state means for a machine in which everything else is in place.
type Doubt int

// Doubts, the worst last.
const (
	NoDoubt  Doubt = iota
	Suspect        // it may be that state: a warning
	Unproven       // it is that state: readiness is unknown
)

// Doubted is what a doubt is about.
type Doubted struct {
	Doubt Doubt
	// GPUs and Pairs that the doubt is about, those of Judged.Identity or Judged.BelowEmulated.
	GPUs  []*pci.Function
	Pairs []*topology.Pair
}

// doubt names the state of the pair in which transfers are published to fail while every
// prerequisite is met; "" for none. A transfer alone proves the contrary.
func (j *judge) doubt() Reason {
	switch {
	case j.Platform.Confidential != "" && j.OwnMemory == tristate.Unknown:
		return ConfidentialGuest
	case j.Identity.Doubt == Unproven && j.BeforePASID() == tristate.True:
		return SMMUPassthrough
	case j.Identity.Doubt == Unproven, j.identityUnread(): // which kernel this is, or what the SMMU does, cannot be read
		return Unreadable
	case j.BelowEmulated.Doubt == Unproven:
		return EmulatedSwitch
	}
	return ""
}

// identity doubts GPUs that share memory with their CPU, behind an Arm SMMU that passes their
// addresses through. With ACS on, nvidia_uvm binds each process to such a GPU by PASID, and
// before Linux 6.11 arm-smmu-v3 attaches no PASID to an identity domain: no program gets a CUDA
// context (NVIDIA/nodewright-packages#122). NVIDIA's own kernels may carry a patch for it
// (NVIDIA/NV-Kernels#22). Without ACS on the whole way to the root the kernel enables no PASID
// (drivers/pci/ats.c, pci_enable_pasid), and nothing is bound by it.
func (j *judge) identity() Doubted {
	var d Doubted
	before := j.BeforePASID()
	if before == tristate.False {
		return d
	}
	for _, gpu := range j.byPASID() {
		if j.Platform.IOMMU.Types[gpu.IOMMUGroup] == "identity" {
			d.GPUs = append(d.GPUs, gpu)
		}
	}
	switch {
	case len(d.GPUs) == 0:
	case j.Platform.Kernel == "" && !j.Platform.KernelUnread, strings.Contains(j.Platform.Kernel, "-nvidia"):
		d.Doubt = Suspect
	default:
		d.Doubt = Unproven
	}
	return d
}

// byPASID are the GPUs to which nvidia_uvm binds processes by PASID.
func (j *judge) byPASID() (gpus []*pci.Function) {
	for _, gpu := range j.gpus {
		if gpu.Coherent() && j.driven[gpu] != tristate.False && j.mayRedirect(gpu) {
			gpus = append(gpus, gpu)
		}
	}
	return gpus
}

// identityUnread: the type of such a GPU's IOMMU group cannot be read, and may be the doubted one.
func (j *judge) identityUnread() bool {
	open := func(gpu *pci.Function) bool {
		return gpu.IOMMUGroup != pci.None && j.Platform.IOMMU.Types[gpu.IOMMUGroup] == ""
	}
	return j.BeforePASID() == tristate.True && !strings.Contains(j.Platform.Kernel, "-nvidia") &&
		slices.ContainsFunc(j.byPASID(), open)
}

// BeforePASID reports whether the kernel is one whose arm-smmu-v3 attaches no PASID to an
// identity domain (drivers/iommu/arm/arm-smmu-v3/arm-smmu-v3.c; since 6.11 it sets
// STRTAB_STE_1_S1DSS_BYPASS). False for other architectures. Every kernel gives its release: a
// tree without that file is a copy that lacks it, and identity only warns there.
func (node *Node) BeforePASID() tristate.State {
	before := platform.KernelBefore(node.Platform.Kernel, 6, 11)
	switch node.Platform.CPU.Arch {
	case "arm64":
		return before
	case "": // CPUFile could not be read
		return tristate.And(before, tristate.Unknown)
	}
	return tristate.False
}

// mayRedirect: ACS sends what a GPU sends up to the root complex, or it cannot be read.
func (node *Node) mayRedirect(gpu *pci.Function) bool {
	return slices.ContainsFunc(gpu.Bridges, func(bridge pci.Address) bool {
		acs := node.ACS[bridge]
		return acs == nil || acs.Redirect()
	})
}

// belowEmulated doubts GPUs and NICs of a virtual machine that share a switch which the
// hypervisor emulates. They were passed through, and what one sends to the other carries
// addresses of the guest, which only the IOMMU of the host translates, or the NIC itself by ATS.
// Without ATS exactly such pairs failed, and programs went on with garbage
// (ai-dynamo/dynamo#12463).
func (j *judge) belowEmulated() Doubted {
	var d Doubted
	for _, of := range j.EmulatedPairs() {
		gpu, nic := j.Matrix.GPUs[of.GPU], j.Matrix.NICs[of.NIC]
		if gpu.GPU != j.GPU || nic.Function.NIC != j.NIC {
			continue
		}
		doubt := j.DoubtATS(nic.Function)
		if doubt > d.Doubt {
			d = Doubted{Doubt: doubt}
		}
		if doubt == d.Doubt && doubt != NoDoubt {
			d.Pairs = append(d.Pairs, of)
		}
	}
	return d
}

// DoubtATS is what the ATS of a NIC means where it shares an emulated switch with a GPU.
func (node *Node) DoubtATS(nic *pci.Function) Doubt {
	switch node.ATS[nic.Address] {
	case tristate.True:
		return NoDoubt
	case tristate.False:
		return Unproven
	default:
		return Suspect
	}
}

// EmulatedPairs are the eligible GPUs and NICs with RDMA devices of a virtual machine whose
// deepest common bridge is emulated. None on clouds whose guests are published to do it.
func (node *Node) EmulatedPairs() []*topology.Pair {
	if !node.Guest() || node.provenCloud() {
		return nil
	}
	var pairs []*topology.Pair
	for i := range node.Matrix.Pairs {
		of := &node.Matrix.Pairs[i]
		if gpu, nic := &node.Matrix.GPUs[of.GPU], &node.Matrix.NICs[of.NIC]; gpu.Counts() && nic.Counts() && nic.RDMA != nil && node.emulatedAbove(gpu.Function, nic.Function) {
			pairs = append(pairs, of)
		}
	}
	return pairs
}

func (node *Node) emulatedAbove(gpu, nic *pci.Function) bool {
	a, b := node.PCI.Place(gpu), node.PCI.Place(nic)
	common := a.CommonBridges(b)
	return common > 0 && node.Emulated(a.Bridges[common-1])
}

// Emulated reports whether a bridge of a virtual machine is its hypervisor's.
func (node *Node) Emulated(bridge pci.Address) bool {
	fn := node.PCI.Find(bridge)
	return fn != nil && node.Guest() && fn.EmulatedBridge()
}

// Guest reports whether this is a virtual machine, as the CPU, the firmware or the PCI tree shows.
func (node *Node) Guest() bool {
	return node.Platform.Virtual == tristate.True || node.Matrix.Origin == topology.Virtual
}

// provenClouds are clouds whose virtual machines are published to do GPUDirect RDMA, by what
// their firmware says of vendor and product. Oracle's are left out: its shapes with RDMA are bare
// metal (oracle-quickstart/oci-hpc-oke).
var provenClouds = []struct{ vendor, product string }{
	{"Amazon EC2", ""},                           // aws/aws-ofi-nccl src/platform-aws.cpp: it requires GPUDirect RDMA of its P types
	{"Google", "Google Compute Engine"},          // kubernetes-sigs/dranet site/content/docs/user/gke-rdma.md: NCCL tests of A3 Ultra and A4
	{"Microsoft Corporation", "Virtual Machine"}, // Azure/azhpc-images, whose tests run NCCL over InfiniBand on ND sizes
}

func (node *Node) provenCloud() bool {
	for _, cloud := range provenClouds {
		if node.Platform.DMI.Vendor.Value == cloud.vendor && (cloud.product == "" || node.Platform.DMI.Product.Value == cloud.product) {
			return true
		}
	}
	return false
}
