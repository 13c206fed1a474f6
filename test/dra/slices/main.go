// Command slices prints what the DRA drivers of GPUs and NICs publish of a machine, as
// ResourceSlices in JSON:
//
//	slices /tmp/dell node-1
//
// The machine is a directory with its sys. Standard attributes are read from there by the library
// with which the drivers read them; the others are those that schedulers and this project use.
//
//   - gpu.nvidia.com: kubernetes-sigs/dra-driver-nvidia-gpu 9593204, cmd/gpu-kubelet-plugin,
//     deviceinfo.go and nvlib.go. One slice for each GPU. A GPU without pciBusID is an error there.
//   - gpu.amd.com: ROCm/k8s-gpu-dra-driver 08bc729, cmd/gpu-kubeletplugin/deviceinfo.go.
//   - dra.net: kubernetes-sigs/dranet f258477, pkg/inventory/db.go: network devices that
//     their kernel driver has not given away.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: slices MACHINE NODE")
		os.Exit(2)
	}
	list, err := published(os.Args[1], os.Args[2])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(list)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "slices:", err)
		os.Exit(1)
	}
}

type attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute

// function is a PCI function of the machine.
type function struct {
	address, vendor, class, driver string
	rdma                           string // the name of its RDMA device
	virtual                        bool   // a virtual function
	standard                       attributes
}

// published returns the slices of all drivers.
func published(tree, node string) (*resourcev1.ResourceSliceList, error) {
	sysfs := filepath.Join(tree, "sys")
	entries, err := os.ReadDir(filepath.Join(sysfs, "bus/pci/devices"))
	if err != nil {
		return nil, err
	}
	of := map[string][][]resourcev1.Device{} // slices by driver
	var nics []resourcev1.Device
	for _, e := range entries {
		f := read(sysfs, e.Name())
		switch {
		case f.vendor == "0x10de" && strings.HasPrefix(f.class, "0x03") && f.driver == "nvidia":
			gpu, err := f.nvidia(len(of["gpu.nvidia.com"]))
			if err != nil {
				return nil, err
			}
			of["gpu.nvidia.com"] = append(of["gpu.nvidia.com"], []resourcev1.Device{gpu})
		case f.vendor == "0x1002" && f.driver == "amdgpu":
			if of["gpu.amd.com"] == nil {
				of["gpu.amd.com"] = make([][]resourcev1.Device, 1)
			}
			of["gpu.amd.com"][0] = append(of["gpu.amd.com"][0], f.amd(len(of["gpu.amd.com"][0])))
		case strings.HasPrefix(f.class, "0x02") && f.driver != "" && f.driver != "vfio-pci":
			nics = append(nics, f.nic())
		}
	}
	if len(nics) > 0 {
		of["dra.net"] = [][]resourcev1.Device{nics}
	}
	list := &resourcev1.ResourceSliceList{}
	for driver, devices := range of {
		for i := range devices {
			list.Items = append(list.Items, resourcev1.ResourceSlice{
				TypeMeta:   metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "ResourceSlice"},
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%d", node, driver, i)},
				Spec: resourcev1.ResourceSliceSpec{
					Driver: driver, NodeName: &node, Devices: devices[i],
					Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(len(devices))},
				},
			})
		}
	}
	return list, nil
}

// read reads a function. What cannot be read is "".
func read(sysfs, address string) function {
	dir := filepath.Join(sysfs, "bus/pci/devices", address)
	text := func(name string) string {
		content, _ := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // the files of a test
		return strings.TrimSpace(string(content))
	}
	f := function{address: address, vendor: text("vendor"), class: text("class"), standard: attributes{}}
	if target, err := os.Readlink(filepath.Join(dir, "driver")); err == nil {
		f.driver = filepath.Base(target)
	}
	if devices, err := os.ReadDir(filepath.Join(dir, "infiniband")); err == nil && len(devices) > 0 {
		f.rdma = devices[0].Name()
	}
	_, err := os.Readlink(filepath.Join(dir, "physfn"))
	f.virtual = err == nil
	tree := deviceattribute.WithFSFromRoot(sysfs)
	add := func(a deviceattribute.DeviceAttribute, err error) {
		if err == nil {
			f.standard[a.Name] = a.Value
		}
	}
	add(deviceattribute.GetPCIeRootAttributeByPCIBusID(address, tree))
	add(deviceattribute.GetNUMANodeAttributeByPCIBusID(address, deviceattribute.ScalarAttribute, tree))
	return f
}

func text(value string) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{StringValue: &value}
}

// nvidia is the GPU with a minor number.
func (f *function) nvidia(minor int) (resourcev1.Device, error) {
	id, err := deviceattribute.GetPCIBusIDAttribute(f.address)
	if err != nil {
		return resourcev1.Device{}, err
	}
	f.standard[id.Name] = id.Value
	f.standard["type"], f.standard["uuid"], f.standard["productName"] = text("gpu"), text("GPU-"+f.address), text("NVIDIA GPU")
	return resourcev1.Device{Name: fmt.Sprintf("gpu-%d", minor), Attributes: f.standard}, nil
}

// amd is the GPU with a card number.
func (f *function) amd(card int) resourcev1.Device {
	f.standard["type"] = text("amdgpu")
	numa := f.standard[deviceattribute.StandardDeviceAttributeNUMANode]
	if numa.IntValue == nil {
		numa.IntValue = new(int64(-1))
	}
	f.standard["numaNode"] = numa
	delete(f.standard, deviceattribute.StandardDeviceAttributeNUMANode)
	if id, err := deviceattribute.GetPCIBusIDAttribute(f.address); err == nil {
		f.standard[id.Name] = id.Value
	}
	return resourcev1.Device{Name: fmt.Sprintf("gpu-%d-%d", card, 128+card), Attributes: f.standard}
}

func (f *function) nic() resourcev1.Device {
	rdma := f.rdma != ""
	f.standard["dra.net/pciAddress"], f.standard["dra.net/rdma"] = text(f.address), resourcev1.DeviceAttribute{BoolValue: &rdma}
	if rdma {
		f.standard["dra.net/rdmaDevice"] = text(f.rdma)
	}
	if f.virtual {
		f.standard["dra.net/isSriovVf"] = resourcev1.DeviceAttribute{BoolValue: &f.virtual}
	}
	return resourcev1.Device{Name: "pci-" + strings.NewReplacer(":", "-", ".", "-").Replace(f.address), Attributes: f.standard}
}
