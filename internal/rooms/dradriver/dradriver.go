// Package dradriver has a table of the DRA drivers that publish GPUs and NICs: which
// attributes of a device in their ResourceSlices say what. It imports nothing of this
// project.
package dradriver

import (
	"iter"
	"slices"
)

// Standard attributes of Kubernetes: strings, but for numaNode, which is a number, or from
// Kubernetes 1.36 on a list of numbers (KEP-5491, KEP-6072). A driver leaves out what it
// cannot find.
// Source: k8s.io/dynamic-resource-allocation v0.37.2, deviceattribute/attribute.go.
const (
	Standard = "resource.kubernetes.io/" // what their names begin with
	PCIeRoot = Standard + "pcieRoot"     // "pci0000:15"
	NUMANode = Standard + "numaNode"
	PCIBusID = Standard + "pciBusID" // "0000:1b:00.0"
)

// Driver is a DRA driver of GPUs or NICs. Attributes have their full names, with a domain.
type Driver struct {
	Name string
	// GPUs is the family of the GPUs that it publishes, "" for a driver of NICs.
	GPUs string
	// Addresses are the attributes that may hold the PCI address, the first that a device has counts.
	Addresses []string
	// RDMA is true for a NIC with an RDMA device, RDMADevice its name.
	RDMA, RDMADevice string
	// Virtual is true for a virtual function with a network interface; "" for a driver that
	// does not tell.
	Virtual string
	// NUMANode: it publishes the standard numaNode.
	NUMANode bool
	// Type is an attribute that has the value Whole for the devices of the DeviceClass of the
	// driver's name; both "" where all devices are of that class.
	Type, Whole string
	// OnlyVirtual: it publishes only virtual functions.
	OnlyVirtual bool
}

// The drivers, those of GPUs first. Sources:
//   - gpu.nvidia.com: kubernetes-sigs/dra-driver-nvidia-gpu 9593204 (August 2026),
//     cmd/gpu-kubelet-plugin/deviceinfo.go and mig.go. pciBusID has been standard since January
//     2026 and was pcieBusID before; numaNode came in July 2026. GPUs, MIG devices and GPUs for
//     vfio differ in type (types.go), and each type has a DeviceClass (deployments/helm,
//     deviceclass-gpu.yaml).
//   - gpu.amd.com: ROCm/k8s-gpu-dra-driver 08bc729, cmd/gpu-kubeletplugin/deviceinfo.go: GPUs
//     and partitions of GPUs. In October 2025 (2622427) the addresses were pciAddr and
//     parentPciAddr. The NUMA node is gpu.amd.com/numaNode.
//   - dra.net: kubernetes-sigs/dranet f258477 (August 2026), pkg/apis/attributes.go,
//     pkg/inventory/db.go: every network device, RDMA or not. numaNode came in August 2026;
//     dra.net/numaNode is older. isSriovVf came in March 2026 (5008a2e). It comes without a DeviceClass; the others with one of their
//     name.
//   - sriovnetwork.k8snetworkplumbingwg.io: k8snetworkplumbingwg/dra-driver-sriov cd9404f
//     (August 2026), pkg/consts/consts.go, pkg/devicestate/discovery.go: an unknown pcieRoot is
//     published as "". The NUMA node is dra.net/numaNode.
var drivers = [...]*Driver{
	{
		Name: "gpu.nvidia.com", GPUs: "nvidia", NUMANode: true, Addresses: []string{PCIBusID, "gpu.nvidia.com/pcieBusID"},
		Type: "gpu.nvidia.com/type", Whole: "gpu",
	},
	{Name: "gpu.amd.com", GPUs: "amd", Addresses: []string{PCIBusID, "gpu.amd.com/pciAddr", "gpu.amd.com/parentPciAddr"}},
	{Name: "dra.net", NUMANode: true, Addresses: []string{"dra.net/pciAddress"}, RDMA: "dra.net/rdma", RDMADevice: "dra.net/rdmaDevice", Virtual: "dra.net/isSriovVf"},
	{
		Name: "sriovnetwork.k8snetworkplumbingwg.io", Addresses: []string{PCIBusID},
		RDMA: "sriovnetwork.k8snetworkplumbingwg.io/rdmaCapable", OnlyVirtual: true,
	},
}

// All returns the drivers, those of GPUs first.
func All() iter.Seq[*Driver] { return slices.Values(drivers[:]) }

// OfGPUs returns the driver of the GPUs of a family, nil for none.
func OfGPUs(family string) *Driver {
	for _, d := range drivers {
		if family != "" && d.GPUs == family {
			return d
		}
	}
	return nil
}

// Find returns the driver of a name, nil for one that is not in the table.
func Find(name string) *Driver {
	for _, d := range drivers {
		if d.Name == name {
			return d
		}
	}
	return nil
}
