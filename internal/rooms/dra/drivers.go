// Package dra takes the attribute by which Kubernetes' Dynamic Resource Allocation can match the
// GPUs of a machine with its NICs (topology.Attribute), and writes the claim that does so. It does no I/O.
//
// DRA drivers publish a device's place in two standard attributes, pcieRoot and numaNode. A
// claim can demand that two devices have the same value of one of them, and nothing nearer:
// what is above the devices in the PCI tree has no attribute.
package dra

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/topology"
)

// Standard attributes of Kubernetes: strings, but for numaNode, which is a number, or from Kubernetes
// 1.36 on a list of numbers (KEP-5491, KEP-6072). A driver leaves out what it cannot find.
// Source: k8s.io/dynamic-resource-allocation v0.37.2, deviceattribute/attribute.go.
const (
	standard = "resource.kubernetes.io/" // what their names begin with
	pciBusID = standard + "pciBusID"     // "0000:1b:00.0"
)

// Name is an attribute's full name, "resource.kubernetes.io/pcieRoot".
func Name(a topology.Attribute) string { return standard + string(a) }

// driver is a DRA driver of GPUs or NICs. Attributes have their full names, with a domain.
type driver struct {
	name     string // also that of its DeviceClass
	gpus     string // the family of the GPUs that it publishes, "" for a driver of NICs
	address  string // the attribute that holds the PCI address
	rdma     string // is true for a NIC with an RDMA device
	virtual  string // is true for a virtual function; "" for a driver that does not tell
	numaNode bool   // it publishes the standard numaNode
	// onlyVirtual: it publishes only virtual functions.
	onlyVirtual bool
}

// The drivers, those of GPUs first. Sources:
//   - gpu.nvidia.com: kubernetes-sigs/dra-driver-nvidia-gpu 9593204 (August 2026),
//     cmd/gpu-kubelet-plugin/deviceinfo.go and mig.go. pciBusID has been standard since January
//     2026; numaNode came in July 2026.
//   - gpu.amd.com: ROCm/k8s-gpu-dra-driver 08bc729, cmd/gpu-kubeletplugin/deviceinfo.go: GPUs
//     and partitions of GPUs. The NUMA node is gpu.amd.com/numaNode.
//   - dra.net: kubernetes-sigs/dranet f258477 (August 2026), pkg/apis/attributes.go,
//     pkg/inventory/db.go: every network device, RDMA or not. numaNode came in August 2026;
//     dra.net/numaNode is older. isSriovVf came in March 2026 (5008a2e), of functions with a
//     network interface. It comes without a DeviceClass; the others with one of their name.
//   - sriovnetwork.k8snetworkplumbingwg.io: k8snetworkplumbingwg/dra-driver-sriov cd9404f
//     (August 2026), pkg/consts/consts.go, pkg/devicestate/discovery.go: an unknown pcieRoot is
//     published as "". The NUMA node is dra.net/numaNode.
var drivers = [...]driver{
	{name: "gpu.nvidia.com", gpus: "nvidia", address: pciBusID, numaNode: true},
	{name: "gpu.amd.com", gpus: "amd", address: pciBusID},
	{name: "dra.net", address: "dra.net/pciAddress", rdma: "dra.net/rdma", virtual: "dra.net/isSriovVf", numaNode: true},
	{
		name: "sriovnetwork.k8snetworkplumbingwg.io", address: pciBusID,
		rdma: "sriovnetwork.k8snetworkplumbingwg.io/rdmaCapable", onlyVirtual: true,
	},
}

// NICDrivers are the names of the DRA drivers of NICs that are known, the default first.
func NICDrivers() []string {
	var all []string
	for _, d := range drivers {
		if d.gpus == "" {
			all = append(all, d.name)
		}
	}
	return all
}

// find returns the driver of a name, nil for one that is not in the table.
func find(name string) *driver {
	i := slices.IndexFunc(drivers[:], func(d driver) bool { return d.name == name })
	if i < 0 {
		return nil
	}
	return &drivers[i]
}

// nicDriverNamed returns a driver; the default for "".
func nicDriverNamed(name string) (*driver, error) {
	all := NICDrivers()
	d := find(cmp.Or(name, all[0]))
	if d == nil || d.gpus != "" {
		return nil, fmt.Errorf("--nic-driver %s: the attributes of this driver are not known, only those of %s", name, strings.Join(all, ", "))
	}
	return d, nil
}

// gpuDriver is the driver of a GPU's family; the zero value for none.
func gpuDriver(gpu *topology.GPU) driver {
	for _, d := range drivers {
		if d.gpus != "" && d.gpus == gpu.GPU.Name {
			return d
		}
	}
	return driver{}
}

// withRDMA is the condition that a device is a NIC of the driver with an RDMA device. A device
// need not have the attribute, of this driver either: one of an older version has none.
func (d *driver) withRDMA() string {
	return fmt.Sprintf("device.driver == %q && %s", d.name, optional(d.rdma, "false"))
}

func (d *driver) publishes(f *pci.Function) bool { return !d.onlyVirtual || f.PhysFn != nil }

// optional is an attribute's value, or another where a device does not have it: that would be
// an error in CEL, which ends the scheduling of a Pod.
func optional(attribute, otherwise string) string {
	domain, name, _ := strings.Cut(attribute, "/")
	return fmt.Sprintf("device.attributes[%q].?%s.orValue(%s)", domain, name, otherwise)
}

// equals is the condition that an attribute has an address.
func equals(attribute string, address pci.Address) string {
	return fmt.Sprintf("%s == %q", optional(attribute, `""`), address.String())
}
