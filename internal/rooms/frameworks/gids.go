package frameworks

import (
	"fmt"
	"net/netip"
	"strings"
)

var gidIndexes = [...]string{"NCCL_IB_GID_INDEX", "NVSHMEM_IB_GID_INDEX", "UCX_IB_GID_INDEX", "MC_GID_INDEX"}

// GIDIndex is a variable that names one entry of the GID tables of all RoCE ports.
type GIDIndex struct {
	Name, Value string
	Index       int64
}

// GIDIndexes returns the variables that name an entry: a number; NCCL and NVSHMEM choose
// where it is negative, UCX with "auto" (nccl src/transport/net_ib/connect.cc,
// ncclIbGetGidIndex; nvshmem src/modules/transport/common/transport_ib_common.h,
// ib_get_gid_index; ucx src/uct/ib/base/ib_iface.c, uct_ib_iface_init_roce_gid_info). Mooncake
// takes its own variable, else NCCL's (Mooncake mooncake-transfer-engine/src/config.cpp).
func GIDIndexes(variables map[string]string) []GIDIndex {
	var all []GIDIndex
	for _, name := range gidIndexes {
		value := variables[name]
		if value == "" || strings.Trim(value, " +-0123456789xabcdefABCDEF") != "" {
			continue
		}
		if n, ok := cNumber(value); ok && n >= 0 {
			all = append(all, GIDIndex{name, value, n})
		}
	}
	return all
}

// GIDWish is which entry of the GID table of a RoCE port NCCL or NVSHMEM prefers.
type GIDWish struct {
	IPv6    bool
	Version int64 // of RoCE
	// Range has the addresses to choose among: nil for all of the family; a prefix that is not
	// valid for none.
	Range *netip.Prefix
	// Given are the variables that are set, "NCCL_IB_ADDR_FAMILY=AF_INET6".
	Given []string
}

// GIDChoosers are the beginnings of the names of the variables of the frameworks that choose
// in this way. NVSHMEM's code was made from NCCL's.
var GIDChoosers = [...]string{"NCCL", "NVSHMEM"}

const addrFamily, addrRange, roceVersion = "_IB_ADDR_FAMILY", "_IB_ADDR_RANGE", "_IB_ROCE_VERSION_NUM"

// NewGIDWish reads the variables of one of GIDChoosers (nccl 2.30.7
// src/transport/net_ib/connect.cc, envIbAddrFamily, envIbAddrRange, ncclParamIbRoceVersionNum;
// nvshmem src/modules/transport/common/transport_ib_common.cpp).
func NewGIDWish(chooser string, variables map[string]string) GIDWish {
	wish := GIDWish{Version: 2, IPv6: variables[chooser+addrFamily] == "AF_INET6"}
	for _, name := range [...]string{addrFamily, addrRange, roceVersion} {
		if value := variables[chooser+name]; value != "" {
			wish.Given = append(wish.Given, chooser+name+"="+value)
		}
	}
	if n, ok := cNumber(variables[chooser+roceVersion]); ok && variables[chooser+roceVersion] != "" {
		wish.Version = n
	}
	wish.Range = gidRange(variables[chooser+addrRange], wish.IPv6)
	return wish
}

// gidRange reads a range as NCCL does: one of another form, of another family or with too
// many bits stands for all, and one with fewer than none for no address.
func gidRange(text string, ipv6 bool) *netip.Prefix {
	text, mask, found := strings.Cut(text, "/")
	address, err := netip.ParseAddr(text)
	if !found || err != nil || address.Is6() != ipv6 || address.Zone() != "" {
		return nil
	}
	bits := 0
	_, _ = fmt.Sscanf(mask, "%d", &bits) // as C's strtol: what follows the digits does not matter
	if bits == 0 || bits > address.BitLen() {
		return nil
	}
	prefix := netip.PrefixFrom(address, bits) // not valid for fewer bits than none
	return &prefix
}
