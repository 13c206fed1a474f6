package pci

import "strings"

// Devices is the directory of all functions.
const Devices = "/" + devicesDir

// Files of a function, for File and AnyFile, by what Function has from them. Which
// file the ids are from is in Function.IDFile.
const (
	DriverFile       = "driver"
	NUMAFile         = "numa_node"
	IOMMUGroupFile   = "iommu_group"
	ConfigFile       = "config" // ACS; ReadATS
	ResourceFile     = "resource"
	LinkSpeedFile    = "current_link_speed"
	LinkWidthFile    = "current_link_width"
	MaxLinkSpeedFile = "max_link_speed"
	MaxLinkWidthFile = "max_link_width"
)

// Files of a function that its ids are read from: all of them from the first, or else
// from the second and others beside it.
const (
	ModaliasFile = "modalias"
	VendorFile   = "vendor"
)

// File is the path of a file of a function: of DriverFile,
// "/sys/bus/pci/devices/0000:1a:00.0/driver". Without a name it is the directory.
func (a Address) File(name string) string { return strings.TrimSuffix("/"+a.dir()+"/"+name, "/") }

// dir is the directory of a function, as a name for host.FS.
func (a Address) dir() string { return devicesDir + "/" + a.String() }

// AnyFile is the pattern of such files of all functions.
func AnyFile(name string) string { return Devices + "/*/" + name }
