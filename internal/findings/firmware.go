package findings

import (
	"path"

	"gdr-features/internal/finding"
	"gdr-features/source/rdma"
)

// firmware: releases of a NIC's firmware with which GPUs cannot start its transfers themselves.
// What the CPU starts works with them, so that this is no matter of the verdict.
var firmware = check{
	Name: "firmware", Codes: []finding.Code{"FirmwareWithoutIBGDA"},
	Judge: func(f *judged) finding.Said {
		if f.NIC.NoIBGDA == nil {
			return finding.Said{}
		}
		var without finding.Subjects
		for _, n := range f.ForGPUs() {
			if n.RDMA != nil && f.NIC.NoIBGDA.Has(n.RDMA.Firmware) {
				file := path.Join(rdma.Class, n.RDMA.Name, "fw_ver")
				without.Add(n.RDMA.Name+" ("+n.RDMA.Firmware+")", finding.Saw(file, n.RDMA.Firmware))
			}
		}
		return finding.Warn("FirmwareWithoutIBGDA", "GPUs cannot start transfers of %s (IBGDA), as MORI "+
			"does: the firmware is too old for it; those that the CPU starts, as NCCL's and RCCL's, work", without).
			OfAny(without).
			Do("update the firmware to " + f.NIC.NoIBGDA.Need + " or newer, with the vendor's program, then power cycle")
	},
}
