package sample

import (
	"gdr-features/source/family"
	"gdr-features/source/pci"
)

// Families are the known ones, and a made-up one of NICs, "example", that is only listed:
// whichever real family is judged one day, this one is not.
func Families() family.Table {
	t := family.Known()
	t.Others = append(t.Others, &family.NIC{
		Name: "example", Vendor: 0x1fff, Devices: family.DeviceRanges{{0x0001, 0x0001}}, Classes: []uint16{0x0200},
		Drivers: []string{"example"}, Module: "example_rdma", DMABuf: "example_reg_user_mr_dmabuf", LinkLayers: []string{"Ethernet"},
	})
	return t
}

// NotJudged makes a NIC one of the made-up family.
func NotJudged(nic *pci.Function) { nic.Vendor, nic.Device, nic.Class = 0x1fff, 0x0001, 0x020000 }
