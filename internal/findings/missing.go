package findings

import (
	"slices"

	"gdr-features/internal/finding"
	"gdr-features/source/verbs"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// verbsEntry: programs reach RDMA devices through ib_uverbs alone.
var verbsEntry = check{
	Name: "verbs-entry", Sources: []string{verbs.Class}, Codes: []finding.Code{"VerbsEntryMissing"},
	Judge: func(f *judged) finding.Said {
		without := withoutEntry(f)
		return finding.Warn("VerbsEntryMissing", "no program can use %s: a port is ACTIVE, but the kernel made no "+
			"entry in /sys/class/infiniband_verbs", without).
			OfAny(without).
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
		if n.Counts() && !n.Excluded() && verdict.HasActivePort(n) == tristate.True && !slices.Contains(f.advised().Verbs, n.RDMA.Name) {
			devices.Add(n.RDMA.Name, finding.Saw(verbs.Class, "no entry of "+n.RDMA.Name))
		}
	}
	return devices
}
