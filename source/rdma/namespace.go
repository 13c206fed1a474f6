package rdma

import (
	"fmt"
	"strings"

	"gdr-features/host"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// namespaceMode finds out whether devices may be hidden: in exclusive mode a device
// that was moved into a container's network namespace is not seen from here.
func (inv *Inventory) namespaceMode(fs *host.FS, functions *pci.Inventory) {
	for f := range functions.All() {
		if f.NIC == nil || f.NVLinkManagement || len(inv.Of(f.Address)) > 0 {
			continue
		}
		switch mode, err := fs.Line(netnsMode); {
		case host.Absent(err), mode == "Y":
		case mode == "N":
			inv.Exclusive, inv.Complete = true, false
		default:
			if err == nil {
				err = fmt.Errorf("/%s: %q is neither Y nor N", netnsMode, mode)
			}
			inv.Complete = false
			inv.problem(err)
		}
		return
	}
}

// InNamespace reports whether the device of a name is in this process's network namespace. The
// kernel lists no others.
func (inv *Inventory) InNamespace(name string) tristate.State {
	for i := range inv.Devices {
		if d := &inv.Devices[i]; d.Name == name && strings.HasPrefix(d.dir, classDir) {
			return tristate.True
		}
	}
	if inv.Listed {
		return tristate.False
	}
	return tristate.Unknown
}
