package family

// unlisted is the family of the NICs that stand in no row. Such a NIC is listed and never judged:
// nothing is known of its driver, and no table says that it cannot reach GPU memory.
var unlisted = NIC{Name: "other"}

// Unlisted returns the family of the NICs that are in no row of a table.
func Unlisted() *NIC { return &unlisted }

// Fabric reports whether a function has the class of an InfiniBand (0207) or fabric controller
// (0208): a NIC with RDMA, whoever made it (PCI Code and ID Assignment Specification, 1.3).
func Fabric(id IDs) bool { return id.subclass() == 0x0207 || id.subclass() == 0x0208 }
