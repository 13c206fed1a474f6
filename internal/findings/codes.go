package findings

import "gdr-features/verdict"

// Code names what a finding has found, as one stable word. A finding that is not
// OK always has one: the verdict's Reason, or a word that is more exact. Each has
// a page, docs/reasons/<Code>.md.
type Code string

// Codes of findings beyond the verdict's reasons, by the check that finds them.
const (
	// hardware.
	TegraGPU Code = "TegraGPU" // NoGPU: the GPU is part of the processor

	// port.
	PortDown     Code = "PortDown"     // some ports are not ACTIVE
	NearPortDown Code = "NearPortDown" // a GPU's nearest adapter has no active port

	// rdma-device.
	RDMANamespaces Code = "RDMANamespaces" // devices may hide in network namespaces

	// peermem.
	PeermemNotInstalled   Code = "PeermemNotInstalled"   // no module file for this kernel
	PeermemStub           Code = "PeermemStub"           // built without the PeerDirect API
	PeermemUnknownSymbol  Code = "PeermemUnknownSymbol"  // built with an API that the running stack lacks
	PeermemSymbolMismatch Code = "PeermemSymbolMismatch" // the running stack is another one than on disk
	MemoryPeersMissing    Code = "MemoryPeersMissing"    // NCCL before 2.23 does not see the client

	// dmabuf.
	ClosedDriver  Code = "ClosedDriver"
	PreTuring     Code = "PreTuring"
	NoMLX5Device  Code = "NoMLX5Device"
	NoDMABuf      Code = "NoDMABuf"      // the RDMA core or mlx5_ib lacks it
	DMABufRefused Code = "DMABufRefused" // devices that were asked said no

	// rdma-stack.
	LegacyPeerDirect Code = "LegacyPeerDirect"

	// operators, modules.
	OperatorsWait     Code = "OperatorsWait"     // the GPU Operator waits for RDMA drivers
	OperatorRDMAOff   Code = "OperatorRDMAOff"   // the GPU Operator was not told to load peermem
	PeermemSidecar    Code = "PeermemSidecar"    // the operators are done, and it is not loaded
	OFEDReloadBlocked Code = "OFEDReloadBlocked" // peermem keeps the RDMA drivers from a restart

	// level, nccl-default.
	GPUWithoutNearNIC Code = "GPUWithoutNearNIC"
	SharedNearNIC     Code = "SharedNearNIC"
	VirtualTopology   Code = "VirtualTopology"
	BeyondNCCLDefault Code = "BeyondNCCLDefault"
	// NCCL does not start with the machine's topology file.
	TopologyFileRefused Code = "TopologyFileRefused"

	// iommu, acs, data-direct, link, numa, storage.
	IOMMUTranslated Code = "IOMMUTranslated"
	ACSRedirect     Code = "ACSRedirect"
	ACSUnreadable   Code = "ACSUnreadable"
	DataDirectApart Code = "DataDirectApart" // a GPU and the function beside it are in two IOMMU groups
	LinkDegraded    Code = "LinkDegraded"
	NUMABalancing   Code = "NUMABalancing"
	StorageIOMMU    Code = "StorageIOMMU"

	// expected.
	Deviation     Code = "Deviation"     // the machine is not what --expect says
	NoMachineType Code = "NoMachineType" // --expect knows no machine like this
)

// Codes lists every word that a finding can bear, the verdict's reasons first.
func Codes() []Code {
	var all []Code
	for _, r := range [...]verdict.Reason{
		verdict.NoGPU, verdict.GPUUnsupported, verdict.NoNIC, verdict.NICUnsupported, verdict.PlatformForbidsP2P, verdict.GPUPassthrough, verdict.GPUDriverNotLoaded,
		verdict.NICDriverNotLoaded, verdict.NoRDMADevice, verdict.NoActivePort, verdict.PeermemNotLoaded, verdict.NoPeerMemoryPath, verdict.Unreadable,
	} {
		all = append(all, Code(r))
	}
	return append(all,
		TegraGPU, PortDown, NearPortDown, RDMANamespaces,
		PeermemNotInstalled, PeermemStub, PeermemUnknownSymbol, PeermemSymbolMismatch, MemoryPeersMissing,
		ClosedDriver, PreTuring, NoMLX5Device, NoDMABuf, DMABufRefused, LegacyPeerDirect,
		OperatorsWait, OperatorRDMAOff, PeermemSidecar, OFEDReloadBlocked,
		GPUWithoutNearNIC, SharedNearNIC, VirtualTopology, BeyondNCCLDefault, TopologyFileRefused,
		IOMMUTranslated, ACSRedirect, ACSUnreadable, DataDirectApart, LinkDegraded, NUMABalancing, StorageIOMMU,
		Deviation, NoMachineType,
	)
}
