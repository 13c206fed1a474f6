package rdma

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"gdr-features/host"
	"gdr-features/internal/sanitize"
)

// GID is an entry of the GID table of a port, with its files below ports/<number>/.
type GID struct {
	Index int
	// Address is the GID, from gids/<index>. RoCE uses the addresses of network devices;
	// one of IPv4 is written as ::ffff:10.0.0.1.
	Address netip.Addr
	// Type is "IB/RoCE v1" or "RoCE v2", from gid_attrs/types/<index>; "" where it is not
	// known.
	Type string
	// NetDev is the network device that the address belongs to, from
	// gid_attrs/ndevs/<index>; "" where there is none, or none is known.
	NetDev string
}

// RoCEv2 is the Type of entries whose packets are routed, being UDP.
const RoCEv2 = "RoCE v2"

// Directories of a port's GID table, for PortFile.
const (
	GIDFile     = "gids"
	GIDTypeFile = "gid_attrs/types"
	gidDevFile  = "gid_attrs/ndevs"
)

// maxGIDs is more than any NIC has: mlx5 has 256 for each port.
const maxGIDs = 4096

// ReadGIDs reads the entries of a port's GID table that are not empty, by index. The kernel
// shows an empty entry as zeros, and refuses to read its type with EINVAL; where MOFED hides
// the entries of other network namespaces, it does the same with them (kernel
// drivers/infiniband/core/sysfs.c, show_port_gid and _show_port_gid_attr). err is the first
// fact that could not be read; the entries are then those that could.
func (d *Device) ReadGIDs(fs *host.FS, port int) (gids []GID, err error) {
	return readGIDs(fs, d.PortFile(port, "")[1:])
}

func readGIDs(fs *host.FS, dir string) (gids []GID, err error) {
	names, err := fs.Names(dir + GIDFile)
	if err != nil {
		return nil, err
	}
	if len(names) > maxGIDs {
		return nil, host.PathError("read", dir+GIDFile, host.ErrTooLarge)
	}
	for _, name := range names {
		gid, there, failed := readGID(fs, dir, name)
		if there {
			gids = append(gids, gid)
		}
		if err == nil {
			err = failed
		}
	}
	slices.SortFunc(gids, func(a, b GID) int { return a.Index - b.Index })
	return gids, err
}

// readGID reads one entry. there is false for an empty one.
func readGID(fs *host.FS, dir, name string) (gid GID, there bool, err error) {
	gid.Index, err = strconv.Atoi(name)
	if err != nil || gid.Index < 0 || gid.Index >= maxGIDs || strconv.Itoa(gid.Index) != name {
		return gid, false, fmt.Errorf("/%s%s/%s is not an entry", dir, GIDFile, name)
	}
	text, err := fs.Line(dir + GIDFile + "/" + name)
	if errors.Is(err, unix.EINVAL) {
		return gid, false, nil
	}
	if err != nil {
		return gid, false, err
	}
	if gid.Address, err = netip.ParseAddr(text); err != nil || !gid.Address.Is6() || gid.Address.Zone() != "" {
		return gid, false, fmt.Errorf("/%s%s/%s: %.60q is not a GID", dir, GIDFile, name, text)
	}
	if gid.Address.IsUnspecified() {
		return gid, false, nil
	}
	gid.Type, err = fs.Line(dir + GIDTypeFile + "/" + name)
	switch {
	case errors.Is(err, unix.EINVAL): // became empty, or is another namespace's
		return gid, false, nil
	case err != nil:
		return gid, true, err
	case gid.Type != RoCEv2 && gid.Type != "IB/RoCE v1" && gid.Type != "RoCE v1":
		err = fmt.Errorf("/%s%s/%s: %.60q is not a type of GID", dir, GIDTypeFile, name, gid.Type)
		gid.Type = ""
	}
	device, unread := fs.Line(dir + gidDevFile + "/" + name)
	if unread == nil { // an entry without a network device gives EINVAL
		gid.NetDev = sanitize.Terminal(device)
	}
	return gid, true, err
}

// LinkLocal reports whether the address begins with fe80::/64: it is not routed, and the
// same network is not known to be on the other side. NCCL and NVSHMEM do not choose such
// entries (nccl src/transport/net_ib/connect.cc, linkLocalGid).
func (g GID) LinkLocal() bool {
	bytes := g.Address.As16()
	return [8]byte(bytes[:8]) == [8]byte{0xfe, 0x80}
}

// IPv4 reports whether the address is one of IPv4.
func (g GID) IPv4() bool { return g.Address.Is4In6() }

// Routable reports whether other networks can be reached with it.
func (g GID) Routable() bool { return g.Type == RoCEv2 && !g.LinkLocal() }
