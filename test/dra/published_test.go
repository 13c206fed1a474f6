// Package dra_test holds what this project says about Dynamic Resource Allocation against
// Kubernetes' own code: the library with which DRA drivers read a device's attributes, the
// environment in which selectors are compiled, and the allocator of kube-scheduler.
package dra_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
	"k8s.io/dynamic-resource-allocation/structured"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/test/machine"
)

const (
	machinesDir = "../../testdata/machines"
	goldenDir   = "../../testdata/golden"

	dranet = "dra.net"
	node   = "node"
)

// gpuDrivers are the DRA drivers by the vendor of the GPUs.
var gpuDrivers = map[string]string{"10de": "gpu.nvidia.com", "1002": "gpu.amd.com"}

// subject is a machine, what this project says of it, and what DRA drivers publish of it.
type subject struct {
	*machine.Machine
	report report.Report
	slices []*resourceapi.ResourceSlice
	// address is the PCI address of a device by its pool and name.
	address map[string]string
	// attributes are the standard ones of a function, by its address.
	attributes map[string]map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
}

// each runs a test on every machine, also on those that are made up.
func each(t *testing.T, test func(t *testing.T, s *subject)) {
	t.Helper()
	described(t, test)
	for seed := range uint64(madeUp) {
		m := makeUp(t, seed)
		t.Run(m.Name, func(t *testing.T) { test(t, published(t, m)) })
	}
}

// described runs a test on every machine of testdata.
func described(t *testing.T, test func(t *testing.T, s *subject)) {
	t.Helper()
	for _, m := range machine.All(t, machinesDir) {
		t.Run(m.Name, func(t *testing.T) { test(t, published(t, m)) })
	}
}

// published reads a machine.
func published(t *testing.T, m *machine.Machine) *subject {
	t.Helper()
	dir := m.Tree(t, m.Ready())
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	s := &subject{
		Machine: m, report: report.Collect(t.Context(), fs, report.ForEnv),
		address: map[string]string{}, attributes: map[string]map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{},
	}
	for i := range m.Functions {
		f := &m.Functions[i]
		s.attributes[f.Address] = standard(dir+"/sys", f.Address)
		switch {
		case f.IsGPU():
			s.publish(gpuDrivers[f.Vendor], f)
		case strings.HasPrefix(f.Class, "02"):
			s.publish(dranet, f)
		}
	}
	s.add(dranet, "bond0", map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"dra.net/rdma": {BoolValue: new(true)}})
	s.add(dranet, "veth0", map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"dra.net/rdma": {BoolValue: new(false)}})
	s.add(dranet, "older0", nil) // a condition on an attribute that is not there is an error, which ends the allocation
	return s
}

// standard are the attributes that deviceattribute reads from a tree.
func standard(sysfs, address string) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	tree := deviceattribute.WithFSFromRoot(sysfs)
	all := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
	add := func(a deviceattribute.DeviceAttribute, err error) {
		if err == nil {
			all[a.Name] = a.Value
		}
	}
	add(deviceattribute.GetPCIeRootAttributeByPCIBusID(address, tree))
	add(deviceattribute.GetNUMANodeAttributeByPCIBusID(address, deviceattribute.ScalarAttribute, tree))
	add(deviceattribute.GetPCIBusIDAttribute(address))
	return all
}

// publish adds a function as its driver publishes it: NVIDIA's and AMD's only with a
// pciBusID, AMD's without the standard numaNode, and dranet's with its own address.
func (s *subject) publish(driver string, f *machine.Function) {
	attributes := maps.Clone(s.attributes[f.Address])
	switch driver {
	case dranet:
		attributes["dra.net/rdma"] = resourceapi.DeviceAttribute{BoolValue: new(f.Attrs["rdma"] != "")}
		if f.Attrs["physfn"] != "" {
			attributes["dra.net/isSriovVf"] = resourceapi.DeviceAttribute{BoolValue: new(true)}
		}
		attributes["dra.net/pciAddress"] = resourceapi.DeviceAttribute{StringValue: &f.Address}
		delete(attributes, deviceattribute.StandardDeviceAttributePCIBusID)
	case "gpu.amd.com":
		attributes["numaNode"] = resourceapi.DeviceAttribute{IntValue: new(int64(f.NUMA))}
		delete(attributes, deviceattribute.StandardDeviceAttributeNUMANode)
		fallthrough
	default:
		if _, ok := attributes[deviceattribute.StandardDeviceAttributePCIBusID]; !ok {
			return
		}
		attributes["type"] = resourceapi.DeviceAttribute{StringValue: new("gpu")}
	}
	name := strings.NewReplacer(":", "-", ".", "-").Replace(f.Address)
	s.add(driver, name, attributes)
	s.address[driver+"/"+name] = f.Address
}

// add adds a device to the ResourceSlice of its driver.
func (s *subject) add(driver, name string, attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute) {
	i := slices.IndexFunc(s.slices, func(r *resourceapi.ResourceSlice) bool { return r.Spec.Driver == driver })
	if i < 0 {
		i = len(s.slices)
		s.slices = append(s.slices, &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: driver},
			Spec: resourceapi.ResourceSliceSpec{
				Driver: driver, NodeName: new(node), Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1},
			},
		})
	}
	s.slices[i].Spec.Devices = append(s.slices[i].Spec.Devices, resourceapi.Device{Name: name, Attributes: attributes})
}

// classes are the DeviceClasses that come with the drivers, and one for dranet, which comes
// without.
type classes struct{}

func (classes) List() ([]*resourceapi.DeviceClass, error) { return nil, nil }

func (classes) Get(name string) (*resourceapi.DeviceClass, error) {
	expressions := map[string]string{
		"gpu.nvidia.com": "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'",
		"gpu.amd.com":    "device.driver == 'gpu.amd.com'",
		dranet:           `device.driver == "dra.net"`,
	}
	expression, ok := expressions[name]
	if !ok {
		return nil, fmt.Errorf("no DeviceClass %q", name)
	}
	return &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{
			{CEL: &resourceapi.CELDeviceSelector{Expression: expression}},
		}},
	}, nil
}

// allocate has kube-scheduler's allocator choose devices for a claim among those not yet
// used, and marks them as used. It returns their addresses by request, nil where the claim
// stays Pending.
func (s *subject) allocate(t *testing.T, template *resourceapi.ResourceClaimTemplate, used sets.Set[structured.DeviceID]) map[string]string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	state := structured.AllocatedState{
		AllocatedDevices: used, AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}
	allocator, err := structured.NewAllocator(ctx, structured.Features{}, state, classes{}, s.slices, cel.NewCache(32, cel.Features{}))
	if err != nil {
		t.Fatal(err)
	}
	claim := &resourceapi.ResourceClaim{ObjectMeta: template.ObjectMeta, Spec: *template.Spec.Spec.DeepCopy()}
	for i := range claim.Spec.Devices.Requests { // as the API server's defaults do
		exactly := claim.Spec.Devices.Requests[i].Exactly
		exactly.AllocationMode, exactly.Count = resourceapi.DeviceAllocationModeExactCount, 1
	}
	results, err := allocator.Allocate(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, []*resourceapi.ResourceClaim{claim})
	if err != nil {
		t.Fatal(err)
	}
	if len(results) == 0 {
		return nil
	}
	addresses := map[string]string{}
	for _, d := range results[0].Devices.Results {
		addresses[d.Request] = s.address[d.Driver+"/"+d.Device]
		used.Insert(structured.MakeDeviceID(d.Driver, d.Pool, d.Device))
	}
	return addresses
}
