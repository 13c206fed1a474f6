package verbs

import (
	"strconv"
	"strings"

	"gdr-features/host"
)

// Class is the directory in which the kernel lists the device nodes of RDMA devices
// (kernel: drivers/infiniband/core/uverbs_main.c, ib_uverbs_add_one).
const Class = "/" + class

// Listed is a device node of an RDMA device.
type Listed struct {
	Node   string // "uverbs0"
	Number int    // that of the name, in the order in which devices were registered; -1 for none
	Device string // "mlx5_0", from the file ibdev; "" where Err says why not
	Err    error
}

// List lists the nodes in the order of their names. Devices that are gone meanwhile are left
// out.
func List(fs *host.FS) ([]Listed, error) {
	names, err := fs.Names(class)
	all := make([]Listed, 0, len(names))
	for _, name := range names {
		if name == "abi_version" { // of the class itself
			continue
		}
		number, bad := strconv.ParseInt(strings.TrimPrefix(name, "uverbs"), 10, 32)
		if bad != nil {
			number = -1
		}
		device, failed := fs.Line(class + "/" + name + "/ibdev")
		if !host.Absent(failed) {
			all = append(all, Listed{name, int(number), device, failed})
		}
	}
	return all, err
}
