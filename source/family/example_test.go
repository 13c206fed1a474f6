package family_test

import (
	"fmt"

	"gdr-features/source/family"
)

// A NIC is looked up by its PCI ids.
func ExampleTable() {
	connectX7 := family.IDs{Vendor: 0x15b3, Device: 0x1021, Class: 0x020700}
	nic := family.Known().NIC(connectX7)
	fmt.Println(nic.Name, nic.Eligible(connectX7), nic.Drivers, nic.DMABuf)
	// Output:
	// mlx5 true [mlx5_core] mlx5_ib_reg_user_mr_dmabuf
}
