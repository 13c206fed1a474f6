package rdma

import (
	"fmt"
	"path"
	"strconv"

	"gdr-features/host"
)

// RoCE is what an active RoCE port uses where no variable of a framework says otherwise.
type RoCE struct {
	// GIDIndex is the first entry of the GID table that has an IPv4 address and the type
	// RoCE v2, which NCCL and NVSHMEM choose by themselves (nccl 2.30.7
	// src/transport/net_ib/connect.cc, ncclUpdateGidIndex). Nil where none of the first
	// entries is one, or they cannot be read.
	GIDIndex *int
	// MTU is the active MTU in bytes of payload, 256 to 4096, as it follows from the mtu of
	// the port's network device; 0 where it is not known.
	MTU int
}

// firstGIDs are how many entries of a GID table are searched. The kernel fills the first
// that is free, and a table has up to 256 (drivers/infiniband/core/cache.c, find_gid).
const firstGIDs = 32

// readRoCE reads what the port in a directory uses. net is the directory of the network
// devices of its function, "" where the MTU does not follow from theirs. err is the first
// fact that could not be read; files that are not there, or not in a snapshot, are none.
func readRoCE(fs *host.FS, dir, net string) (r RoCE, err error) {
	keep := func(failed error) {
		if err == nil && host.Unread(failed) {
			err = failed
		}
	}
	for i := range firstGIDs {
		gid, there, failed := readGID(fs, dir, strconv.Itoa(i))
		keep(failed)
		if host.Absent(failed) && !there { // the table ends here
			break
		}
		if !there {
			continue
		}
		if i == 0 && net != "" && gid.NetDev != "" { // the entry of the port's own network device
			mtu, failed := readMTU(fs, net, gid.NetDev)
			keep(failed)
			r.MTU = ibMTU(mtu)
		}
		if failed == nil && gid.Type == RoCEv2 && gid.IPv4() {
			r.GIDIndex = &i
			break
		}
	}
	return r, err
}

// readMTU reads the mtu of a network device of a function, or of the bond that one of them
// is in. In any other place there may be another device of that name, as the network
// namespace of a container has its own.
func readMTU(fs *host.FS, net, device string) (int, error) {
	in := fs.In(net)
	defer in.Close()
	mtu, err := attribute(in, net+"/"+device+"/mtu", parseMTU)
	if !host.Absent(err) {
		return mtu, err
	}
	names, unread := in.Names(net)
	if unread != nil {
		return 0, unread
	}
	for _, name := range names {
		if master, none := in.Link(net + "/" + name + "/master"); none == nil && path.Base(master) == device {
			return attribute(in, net+"/"+name+"/master/mtu", parseMTU)
		}
	}
	return 0, err
}

func parseMTU(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%.60q is not an mtu", text)
	}
	return int(n), nil
}

// roceHeaders are the bytes that the kernel leaves to headers in the mtu of a network device:
// GRH, UDP, BTH, XRC, atomic and ICRC (include/rdma/ib_addr.h, iboe_get_mtu).
const roceHeaders = 40 + 8 + 12 + 4 + 28 + 4

// ibMTU is the largest MTU of InfiniBand that fits into the mtu of a network device, as the
// kernel's iboe_get_mtu computes it: 1024 of 1500, 4096 of 9000, 0 where none fits.
func ibMTU(mtu int) int {
	for ib := 4096; ib >= 256; ib /= 2 {
		if mtu-roceHeaders >= ib {
			return ib
		}
	}
	return 0
}
