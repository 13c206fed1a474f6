package dra_test

import (
	"slices"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"gdr-features/internal/rooms/dra"
	"gdr-features/topology"
)

// TestShort: a claim stays Pending where one NIC too few is free. kube-scheduler's allocator tries
// all combinations first; the log shows how the time grows with the pairs.
func TestShort(t *testing.T) {
	described(t, func(t *testing.T, s *subject) {
		for n := 2; n <= 5; n++ {
			_, template, err := s.claim(t, n)
			if err != nil || template == nil {
				return
			}
			start := time.Now()
			if got := s.allocate(t, template, s.allNICsBut(n-1)); got != nil {
				t.Errorf("%d pairs with %d NICs: %v", n, n-1, got)
			}
			t.Logf("%d pairs: %v", n, time.Since(start))
		}
	})
}

// allNICsBut are the NICs that are in use when so many are free.
func (s *subject) allNICsBut(free int) sets.Set[structured.DeviceID] {
	used := sets.New[structured.DeviceID]()
	for _, slice := range s.slices {
		if slice.Spec.Driver != dranet {
			continue
		}
		for _, d := range slice.Spec.Devices {
			switch rdma := d.Attributes["dra.net/rdma"].BoolValue; {
			case rdma == nil || !*rdma:
			case free > 0 && d.Name != "bond0": // it has no place
				free--
			default:
				used.Insert(structured.MakeDeviceID(dranet, node, d.Name))
			}
		}
	}
	return used
}

// driverOf are the DRA drivers of families of GPUs.
var driverOf = map[string]string{"nvidia": "gpu.nvidia.com", "amd": "gpu.amd.com"}

// TestEveryGPU: the claim by the attribute of the label can be met for each eligible GPU when
// it alone is free; by a narrower attribute some GPU stays without.
func TestEveryGPU(t *testing.T) {
	each(t, func(t *testing.T, s *subject) {
		claim, template, err := s.claim(t, 1)
		if err != nil || template == nil || pending(claim, template) {
			return
		}
		for _, a := range [...]topology.Attribute{topology.PCIeRoot, topology.NUMANode} {
			served, eligible := 0, 0
			for _, gpu := range s.report.Matrix.GPUs {
				if !gpu.Counts() {
					continue
				}
				eligible++
				if s.allocate(t, matching(a, driverOf[gpu.GPU.Name]), s.allButEligible(gpu.Address.String())) != nil {
					served++
				}
			}
			switch {
			case a == claim.Attribute:
				if served != eligible {
					t.Errorf("gdr.align=%s, but it serves %d of %d GPUs", a, served, eligible)
				}
				return
			case served == eligible:
				t.Errorf("gdr.align=%s, but %s serves every GPU", claim.Attribute, a)
			}
		}
	})
}

// matching is a claim by one attribute, whatever the machine.
func matching(a topology.Attribute, gpuClass string) *resourceapi.ResourceClaimTemplate {
	request := func(name, class, condition string) resourceapi.DeviceRequest {
		return resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: class, Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: condition}}},
		}}
	}
	var template resourceapi.ResourceClaimTemplate
	template.Spec.Spec.Devices = resourceapi.DeviceClaim{
		Requests: []resourceapi.DeviceRequest{
			request("gpu-0", gpuClass, "true"), request("nic-0", dranet, `device.attributes["dra.net"].?rdma.orValue(false)`),
		},
		Constraints: []resourceapi.DeviceConstraint{{MatchAttribute: new(resourceapi.FullyQualifiedName(dra.Name(a)))}},
	}
	return &template
}

// allButEligible are the devices that are in use when one GPU and all eligible NICs are free,
// but for those with a role beside others.
func (s *subject) allButEligible(gpu string) sets.Set[structured.DeviceID] {
	free := map[string]bool{gpu: true}
	nics := s.report.Matrix.NICs
	others := slices.ContainsFunc(nics, func(n topology.NIC) bool { return n.Counts() && n.Role == "" })
	for _, nic := range nics {
		if nic.Counts() && (nic.Role == "" || !others) {
			free[nic.Address()] = true
		}
	}
	used := sets.New[structured.DeviceID]()
	for _, slice := range s.slices {
		for _, d := range slice.Spec.Devices {
			if !free[s.address[slice.Spec.Driver+"/"+d.Name]] {
				used.Insert(structured.MakeDeviceID(slice.Spec.Driver, node, d.Name))
			}
		}
	}
	return used
}
