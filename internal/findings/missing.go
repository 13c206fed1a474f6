package findings

import (
	"slices"

	"gdr-features/internal/finding"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/source/verbs"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// A NIC that lacks what others of the machine have. One is enough for the verdict, and the GPUs near
// the other lose it.

// forGPUs are the NICs of the judged family that are for GPUs. What a virtual function lacks is up to
// whoever it is for.
func (f *judged) forGPUs() (nics []*topology.NIC) {
	for i := range f.Matrix.NICs {
		n := &f.Matrix.NICs[i]
		if n.Eligible && n.Aside() == "" && n.Function.NIC == f.NIC && n.Function.PhysFn == nil {
			nics = append(nics, n)
		}
	}
	return nics
}

// unboundNICs are those without any driver: one that VFIO has is meant for virtual machines. A driver
// that fails on one card leaves it so (scitix/sichek PR#118: mlx5_core's probe failed at boot).
func unboundNICs(f *judged) (nics finding.Subjects) {
	for _, n := range f.forGPUs() {
		if n.Function.DriverKnown && n.Function.Driver == "" {
			nics.Add(nicName(n), sawDriver(n.Function))
		}
	}
	return nics
}

// nicsWithoutRDMA are those with a driver and no RDMA device. Ports of one card may share a device
// (RoCE LAG), and those of containers may be hidden.
func nicsWithoutRDMA(f *judged) (nics finding.Subjects) {
	if !f.RDMA.Complete {
		return nics
	}
	for _, n := range f.forGPUs() {
		if n.RDMA == nil && f.NIC.Drives(n.Function.Driver) && !f.cardHasRDMA(n.Function) {
			nics.Add(nicName(n), sawNoRDMA(n.Function.Address))
		}
	}
	return nics
}

// cardHasRDMA reports whether some function of the same card has an RDMA device.
func (f *judged) cardHasRDMA(fn *pci.Function) bool {
	card := func(a pci.Address) pci.Address { a.Function = 0; return a }
	return slices.ContainsFunc(f.RDMA.Devices,
		func(d rdma.Device) bool { return d.PCI != nil && card(*d.PCI) == card(fn.Address) })
}

// verbsEntry: programs reach RDMA devices through ib_uverbs alone.
var verbsEntry = check{
	Name: "verbs-entry", Sources: []string{verbs.Class}, Codes: []finding.Code{"VerbsEntryMissing"},
	Judge: func(f *judged) finding.Said {
		without := withoutEntry(f)
		if !without.Any() {
			return finding.Said{}
		}
		return finding.Warn("VerbsEntryMissing", "no program can use %s: a port is ACTIVE, but the kernel made no "+
			"entry in /sys/class/infiniband_verbs", without).
			Of(without).
			Do("`dmesg | grep uverbs` says why",
				"when no job uses the NIC, write its address to unbind and then to bind in "+
					"/sys/bus/pci/drivers/"+f.NIC.Drivers[0]+", or reboot")
	},
}

// withoutEntry are the RDMA devices with an ACTIVE port that the kernel made no entry for, so that
// libibverbs does not find them (NVIDIA/NVSentinel ibdevnode.go@49b9c56 compares the two). Not judged
// where there is no entry at all: drivers need ib_uverbs, so that a part of the tree is missing.
func withoutEntry(f *judged) (devices finding.Subjects) {
	if len(f.advised().Verbs) == 0 {
		return devices
	}
	for i := range f.Matrix.NICs {
		n := &f.Matrix.NICs[i]
		if n.Eligible && !n.Excluded() && verdict.HasActivePort(n) == tristate.True && !slices.Contains(f.advised().Verbs, n.RDMA.Name) {
			devices.Add(n.RDMA.Name, finding.Saw(verbs.Class, "no entry of "+n.RDMA.Name))
		}
	}
	return devices
}
