package dra

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/assign"
	"gdr-features/source/pci"
)

// nicDriver is a DRA driver that publishes NICs.
type nicDriver struct {
	// name is also that of its DeviceClass.
	name string
	// isRDMA is the attribute that is true for NICs with an RDMA device, which all devices of
	// the driver have, and address the optional one with the PCI address, both in CEL.
	isRDMA, address string
	// numaNode: it publishes resource.kubernetes.io/numaNode.
	numaNode bool
	// virtual: it publishes virtual functions alone.
	virtual bool
}

// nicDrivers are those that are known:
//   - dra.net, kubernetes-sigs/dranet (f258477, August 2026: pkg/apis/attributes.go,
//     pkg/inventory/db.go). It comes without a DeviceClass. rdma is set for every device.
//   - k8snetworkplumbingwg/dra-driver-sriov (cd9404f, August 2026: pkg/consts/consts.go,
//     pkg/devicestate/discovery.go). Its NUMA node is dra.net/numaNode.
var nicDrivers = [...]nicDriver{
	{
		name: "dra.net", numaNode: true,
		isRDMA: `device.attributes["dra.net"].rdma`, address: `device.attributes["dra.net"].?pciAddress`,
	},
	{
		name: "sriovnetwork.k8snetworkplumbingwg.io", virtual: true,
		isRDMA: `device.attributes["sriovnetwork.k8snetworkplumbingwg.io"].rdmaCapable`, address: standardAddress,
	},
}

// NICDrivers are the names of the DRA drivers of NICs that are known, the default first.
func NICDrivers() []string {
	var all []string
	for _, d := range nicDrivers {
		all = append(all, d.name)
	}
	return all
}

// nicDriverNamed returns a driver; the default for "".
func nicDriverNamed(name string) (*nicDriver, error) {
	if name == "" {
		return &nicDrivers[0], nil
	}
	i := slices.IndexFunc(nicDrivers[:], func(d nicDriver) bool { return d.name == name })
	if i < 0 {
		return nil, fmt.Errorf("--nic-driver %s: the attributes of this driver are not known, only those of %s", name, strings.Join(NICDrivers(), ", "))
	}
	return &nicDrivers[i], nil
}

// rdma is the condition that a device is a NIC of the driver with an RDMA device. A device of
// another driver in the same class need not have the attribute.
func (d *nicDriver) rdma() string { return fmt.Sprintf("device.driver == %q && %s", d.name, d.isRDMA) }

// publishes reports whether the driver publishes a function.
func (d *nicDriver) publishes(f *pci.Function) bool { return !d.virtual || f.PhysFn != nil }

// allows tells assign which NICs the driver publishes, nil for all.
func (d *nicDriver) allows() func(*assign.NIC) bool {
	if !d.virtual {
		return nil
	}
	return func(n *assign.NIC) bool { return n.Virtual }
}
