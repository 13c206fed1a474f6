// Package dra takes the attribute by which Kubernetes' Dynamic Resource Allocation can match the
// GPUs of a machine with its NICs (topology.Attribute), and writes the claim that does so. It does no I/O.
//
// DRA drivers publish a device's place in two standard attributes, pcieRoot and numaNode. A
// claim can demand that two devices have the same value of one of them, and nothing nearer:
// what is above the devices in the PCI tree has no attribute.
package dra

import (
	"gdr-features/internal/rooms/dradriver"
	"gdr-features/topology"
)

// Name is an attribute's full name, "resource.kubernetes.io/pcieRoot".
func Name(a topology.Attribute) string { return dradriver.Standard + string(a) }
