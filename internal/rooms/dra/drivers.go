package dra

import (
	"cmp"
	"fmt"
	"strings"

	"gdr-features/internal/rooms/dradriver"
	"gdr-features/source/pci"
	"gdr-features/topology"
)

// NICDrivers are the names of the DRA drivers of NICs that are known, the default first.
func NICDrivers() []string {
	var all []string
	for d := range dradriver.All() {
		if d.GPUs == "" {
			all = append(all, d.Name)
		}
	}
	return all
}

// nicDriverNamed returns a driver; the default for "".
func nicDriverNamed(name string) (*dradriver.Driver, error) {
	all := NICDrivers()
	d := dradriver.Find(cmp.Or(name, all[0]))
	if d == nil || d.GPUs != "" {
		return nil, fmt.Errorf("--nic-driver %s: the attributes of this driver are not known, only those of %s", name, strings.Join(all, ", "))
	}
	return d, nil
}

// gpuDriver is the driver of a GPU's family, which is also the name of its DeviceClass; the
// zero value for none.
func gpuDriver(gpu *topology.GPU) dradriver.Driver {
	if d := dradriver.OfGPUs(gpu.GPU.Name); d != nil {
		return *d
	}
	return dradriver.Driver{}
}

// rdma is the condition that a device is a NIC of the driver with an RDMA device. A device
// need not have the attribute, of this driver either: one of an older version has none.
func rdma(d *dradriver.Driver) string {
	return fmt.Sprintf("device.driver == %q && %s", d.Name, optional(d.RDMA, "false"))
}

// equals is the condition that an attribute has an address.
func equals(attribute string, address pci.Address) string {
	return fmt.Sprintf("%s == %q", optional(attribute, `""`), address.String())
}

// optional is an attribute's value, or another where a device does not have it: that would be
// an error in CEL, which ends the scheduling of a Pod.
func optional(attribute, otherwise string) string {
	domain, name, _ := strings.Cut(attribute, "/")
	return fmt.Sprintf("device.attributes[%q].?%s.orValue(%s)", domain, name, otherwise)
}

func publishes(d *dradriver.Driver, f *pci.Function) bool { return !d.OnlyVirtual || f.PhysFn != nil }
