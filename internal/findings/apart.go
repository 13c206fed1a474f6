package findings

import (
	"fmt"
	"slices"

	"gdr-features/internal/finding"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// On some CPUs the driver maps GPU memory for some pairs of a GPU and a NIC and not for others.
// What others have does not help those (verdict.Pair.Apart).
const (
	onlyBelow   = "on this CPU the {vendor} driver maps GPU memory only for a NIC that shares a PCIe bridge with the GPU, and such pairs lack "
	orMoveOther = "or move a NIC and a GPU that have what it takes below one PCIe switch"
)

// unreadCPU is the row of a machine that may be such, where no pair is known to be allowed.
var unreadCPU = row{
	status: Undecidable, reason: verdict.Unreadable,
	when: func(f *judged) bool {
		return f.Matrix.EligibleGPUs > 0 && f.Matrix.EligibleNICs > 0 && f.PCI.NeedsCommonBridge(f.GPU) == tristate.Unknown
	},
	text: "the host bridges and root ports cannot all be read, and on some CPUs the {vendor} driver maps GPU memory only for a NIC that shares a PCIe bridge with the GPU",
	fix:  do("see the problems listed below", "mount the host's /sys"),
	evidence: func(f *judged) []string {
		return slices.Concat(f.of(eligibleGPU, sawPlace), f.of(eligibleNIC, sawPlace))
	},
}

// apart is the row of a check where these pairs lack what it asks for, though another GPU or NIC
// has it or may have it: anyHas.
func apart(reason verdict.Reason, anyHas func(*judged) tristate.State, text string, fix, evidence func(*judged) []string) row {
	return row{
		status: Fail, reason: reason, whom: apartPairs(tristate.False, reason),
		when: func(f *judged) bool { return anyHas(f) != tristate.False },
		text: text + ": {about}", evidence: evidence,
		fix: func(f *judged) []string { return append(fix(f), orMoveOther) },
	}
}

// apartPairs lists the pairs that come furthest, if this is what they lack, or may lack.
func apartPairs(met tristate.State, reason verdict.Reason) func(*judged) finding.Subjects {
	return func(f *judged) (found finding.Subjects) {
		lack, pairs := f.Apart()
		if lack.Met != met || lack.Reason != reason {
			return found
		}
		for _, of := range pairs {
			gpu, nic := f.Matrix.GPUs[of.GPU].Function, &f.Matrix.NICs[of.NIC]
			found.Add(fmt.Sprintf("%v and %s", gpu.Address, nicName(nic)), sawPlace(gpu), sawPlace(nic.Function))
		}
		return found
	}
}

// Rows of the checks whose step Apart may say is missing.
var (
	apartGPUs = apart(verdict.GPUDriverNotLoaded, func(f *judged) tristate.State { return f.GPUDriven() },
		onlyBelow+"a GPU that {gpuDriver} drives", do("bind such a GPU to {gpuDriver}, which must not exclude it"), gpuDrivers)
	apartNICs = apart(verdict.NICDriverNotLoaded, func(f *judged) tristate.State { return f.NICDriven() },
		onlyBelow+"a NIC that is bound to {nicDriver}", do("bind such a NIC to {nicDriver}"), nicDrivers)
	apartDevices = apart(verdict.NoRDMADevice, func(f *judged) tristate.State { return f.RDMADevice() },
		onlyBelow+"an RDMA device", loadRDMA, withoutRDMA)
	apartPorts = []row{
		apart(verdict.NoActivePort, func(f *judged) tristate.State { return f.ActivePort() },
			"{activePorts}, but "+onlyBelow+"an ACTIVE port", portFixes, func(f *judged) []string { return idlePorts(f).Evidence }),
		{
			status: Undecidable, reason: verdict.Unreadable, whom: apartPairs(tristate.Unknown, verdict.NoActivePort),
			when:     func(f *judged) bool { return f.ActivePort() == tristate.True },
			text:     "{activePorts}, but not all can be read of what it takes to reach the memory of one GPU through one NIC on this CPU: {about}",
			fix:      do("see the problems listed below", "mount the host's /sys"),
			evidence: func(f *judged) []string { return slices.Concat(gpuDrivers(f), nicDrivers(f)) },
		},
	}
)
