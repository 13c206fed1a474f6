package dra

import (
	"fmt"
	"strings"

	"gdr-features/internal/rooms/assign"
)

// derivedName is the attribute that a claim derives. No driver publishes any of this domain
// (k8s.io/api v0.37.2, resource/v1, DeviceDerivedAttribute).
const derivedName = "derived/pair"

// derived makes a claim in which a GPU and a NIC match where env pairs them: an attribute that is
// the GPU's address, of a GPU its own, and of a NIC that of its GPU. Devices that are in no pair
// have values that no other has. Derived attributes are alpha in Kubernetes 1.37 (KEP-6080,
// feature gate DRADerivedAttributes).
func (c *claimant) derived(pairs []assign.Choice) {
	of := make([]string, len(pairs))
	for i, p := range pairs {
		of[i] = fmt.Sprintf("%q: %q", p.NIC.Address, p.GPU.Address)
	}
	ofGPU := optional(pciBusID, `"no GPU"`)
	ofNIC := fmt.Sprintf("{%s}[?%s].orValue(%q)", strings.Join(of, ", "), optional(c.driver.address, `""`), "no pair")
	devices := c.begin(worstOf(pairs))
	for i := range c.Pairs {
		gpu, nic := names(i)
		devices.request(gpu, c.GPUClass, c.ofGPUDriver()).derive(ofGPU)
		devices.request(nic, c.NICClass, c.driver.withRDMA()).derive(ofNIC)
		devices.Constraints = append(devices.Constraints, Constraint{Requests: []string{gpu, nic}, Attribute: derivedName})
	}
	c.note("This claim derives an attribute, which is alpha: Kubernetes 1.37 with the feature gate DRADerivedAttributes, in API server and scheduler. It can be met on nodes with the same addresses, which have %d such pairs.", len(pairs))
}
