package platform

import (
	"errors"

	"gdr-features/host"
	"gdr-features/tristate"
)

// DMIDir is the directory that the names of a machine are read from (kernel:
// drivers/firmware/dmi-id.c).
const DMIDir = "/sys/class/dmi/id"

// Name is one of them. Known is false when it could not be read; an empty name is known.
// Missing: there is no such file. Err says why there is no value.
type Name struct {
	Value          string
	Known, Missing bool
	Err            error
}

// DMI are the names that the firmware gives a machine. Product, Vendor and Board tell its type,
// "p5.48xlarge" of "Amazon EC2".
type DMI struct {
	Product     Name // product_name
	Vendor      Name // sys_vendor
	Board       Name // board_name
	BoardVendor Name // board_vendor
	BIOSVendor  Name // bios_vendor
}

// ReadDMI reads the names. Those that are missing or cannot be read are not known.
func ReadDMI(fs *host.FS) DMI {
	read := func(file string) Name {
		text, err := fs.Line(DMIDir[1:] + "/" + file)
		return Name{Value: text, Known: err == nil || errors.Is(err, host.ErrEmpty), Missing: host.Absent(err), Err: err}
	}
	return DMI{
		Product: read("product_name"), Vendor: read("sys_vendor"), Board: read("board_name"),
		BoardVendor: read("board_vendor"), BIOSVendor: read("bios_vendor"),
	}
}

// Is reports whether the name is one that matches. A name that is empty or not known may be.
func (n Name) Is(matches func(string) bool) tristate.State {
	if n.Value == "" {
		return tristate.Unknown
	}
	return tristate.Of(matches(n.Value))
}
