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
		without := withoutIBGDA(f)
		return finding.Warn("FirmwareWithoutIBGDA", "GPUs cannot start transfers of %s (IBGDA), as MORI "+
			"does: the firmware is too old for it; those that the CPU starts, as NCCL's and RCCL's, work", without).
			OfAny(without).
			Do("update the firmware to " + f.NIC.NoIBGDA.Need + " or newer, with the vendor's program, then power cycle")
	},
}

// withoutIBGDA are the NICs for GPUs with such firmware.
func withoutIBGDA(f *judged) (nics finding.Subjects) {
	for _, n := range f.ForGPUs() {
		if n.RDMA != nil && f.NIC.NoIBGDA.Has(n.RDMA.Firmware) {
			nics.Add(n.RDMA.Name+" ("+n.RDMA.Firmware+")", finding.Saw(path.Join(rdma.Class, n.RDMA.Name, "fw_ver"), n.RDMA.Firmware))
		}
	}
	return nics
}
