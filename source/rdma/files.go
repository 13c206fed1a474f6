package rdma

import "strconv"

// Files that an Inventory is read from: the directory of all devices, and whether
// devices belong to network namespaces ("N") or to all ("Y").
const (
	Class     = "/" + classDir
	NetnsMode = "/" + netnsMode
)

// Files of a port, for PortFile and AnyPortFile, by the fields of Port.
const (
	StateFile     = "state"
	LinkLayerFile = "link_layer"
	RateFile      = "rate"
)

// FunctionFile is the directory of a PCI function that lists its RDMA devices.
const FunctionFile = "infiniband"

// PortFile is the path of a file of one of the device's ports: of 1 and StateFile,
// "/sys/class/infiniband/mlx5_0/ports/1/state".
func (d *Device) PortFile(port int, name string) string {
	dir := "/" + d.dir
	if d.dir == "" {
		dir = Class + "/" + d.Name
	}
	return dir + "/ports/" + strconv.Itoa(port) + "/" + name
}

// AnyPortFile is the pattern of such files of all devices and ports.
func AnyPortFile(name string) string { return Class + "/*/ports/*/" + name }
