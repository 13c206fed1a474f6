package pci

// Devices is the directory of all functions.
const Devices = "/" + devicesDir

// File is the path of a file of a function: of "driver",
// "/sys/bus/pci/devices/0000:1a:00.0/driver". Without a name it is the directory.
func (a Address) File(name string) string {
	if name == "" {
		return Devices + "/" + a.String()
	}
	return Devices + "/" + a.String() + "/" + name
}

// AnyFile is the pattern of such files of all functions.
func AnyFile(name string) string { return Devices + "/*/" + name }
