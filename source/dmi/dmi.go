// Package dmi reads the names that the firmware gives a machine.
package dmi

import (
	"errors"

	"gdr-features/host"
	"gdr-features/tristate"
)

// Dir is the directory that they are read from (kernel: drivers/firmware/dmi-id.c).
const Dir = "/sys/class/dmi/id"

// Name is one of them. Known is false when it could not be read; an empty name is known.
// Missing: there is no such file. Err says why there is no value.
type Name struct {
	Value          string
	Known, Missing bool
	Err            error
}

// Names are those that tell the type of a machine, from product_name, sys_vendor and
// board_name in Dir: "p5.48xlarge" of "Amazon EC2".
type Names struct{ Product, Vendor, Board Name }

// Read reads the names. Those that are missing or cannot be read are not known.
func Read(fs *host.FS) Names {
	read := func(file string) Name {
		text, err := fs.Line(Dir[1:] + "/" + file)
		return Name{Value: text, Known: err == nil || errors.Is(err, host.ErrEmpty), Missing: host.Absent(err), Err: err}
	}
	return Names{Product: read("product_name"), Vendor: read("sys_vendor"), Board: read("board_name")}
}

// Is reports whether the name is one that matches. A name that is empty or not known may be.
func (n Name) Is(matches func(string) bool) tristate.State {
	if n.Value == "" {
		return tristate.Unknown
	}
	return tristate.Of(matches(n.Value))
}
