package pod

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/source/container"
	"gdr-features/source/rdma"
)

// chosenGID is the index of the entry of a port's GID table that NCCL uses where no variable
// names one. It begins with the entry 0 and takes another one instead that has the wanted
// family, where the one so far has not, or that is valid and of the wanted RoCE version,
// where the one so far is not; so it stays at 0 where none fits (nccl 2.30.7
// src/transport/net_ib/connect.cc, ncclUpdateGidIndex). An empty entry has a family too,
// that of IPv6. gids are the entries that are not empty, by index.
func chosenGID(gids []rdma.GID, wish frameworks.GIDWish) int {
	if len(gids) == 0 {
		return 0
	}
	// Tables are longer than what is in them: those of mlx5 have 256 entries.
	table := make([]rdma.GID, gids[len(gids)-1].Index+2)
	for _, g := range gids {
		table[g.Index] = g
	}
	chosen := 0
	for i := 1; i < len(table); i++ {
		now, next := table[chosen], table[i]
		switch {
		case wish.IPv6 == ipv4Family(next), !inRange(wish.Range, next):
		case ipv4Family(now) != ipv4Family(next),
			ncclValid(next) && (ncclVersion(now) != ncclVersion(next) || !ncclValid(now)) && ncclVersion(next) == wish.Version:
			chosen = i
		}
	}
	return chosen
}

// ipv4Family reports whether NCCL takes an address for one of IPv4 (getGidAddrFamily).
func ipv4Family(g rdma.GID) bool {
	mapped := [12]byte{10: 0xff, 11: 0xff}
	multicast := [12]byte{0: 0xff, 1: 0x0e, 10: 0xff, 11: 0xff}
	bytes := g.Address.As16() // zeros for an empty entry
	return slices.Contains([][12]byte{mapped, multicast}, [12]byte(bytes[:12]))
}

// ncclValid: neither empty nor link-local (validGid).
func ncclValid(g rdma.GID) bool { return g.Address.IsValid() && !g.LinkLocal() }

// ncclVersion is 0 for an empty entry, whose type cannot be read.
func ncclVersion(g rdma.GID) int64 {
	switch g.Type {
	case rdma.RoCEv2:
		return 2
	case "":
		return 0
	}
	return 1
}

// inRange reports whether an address of the wanted family is in a range, which is nil for
// any (matchGidAddrPrefix).
func inRange(of *netip.Prefix, g rdma.GID) bool {
	if of == nil {
		return true
	}
	bytes := g.Address.As16()
	address := netip.AddrFrom16(bytes)
	if of.Addr().Is4() {
		address = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return of.Contains(address)
}

const dropIndex = "remove the variable from spec.containers[].env: NCCL 2.21 or newer, NVSHMEM and UCX " +
	"choose an entry of each port themselves"

// gidIndexFix is what to do about an index that is wrong. To remove it does not help where NCCL or
// NVSHMEM would choose an entry that is no better: on ports with IPv6 addresses alone both stay at
// the entry 0 unless they are told the family, which counts only without an index.
func (f *judged) gidIndexFix() []string {
	var all []string
	for _, v := range frameworks.GIDIndexes(f.Pod.Environment.Variables) {
		chooser, _, _ := strings.Cut(v.Name, "_")
		wish := frameworks.NewGIDWish(chooser, f.Pod.Environment.Variables)
		if !slices.Contains(frameworks.GIDChoosers[:], chooser) || f.choiceUsable(wish) {
			all = append(all, dropIndex)
			continue
		}
		or := ""
		if index := f.commonIndex(); index >= 0 {
			all, or = append(all, fmt.Sprintf("set %s=%d", v.Name, index)), "or "
		}
		if wish.IPv6 = true; f.choiceUsable(wish) {
			all = append(all, fmt.Sprintf("%sset %s_IB_ADDR_FAMILY=AF_INET6 and remove %s: without the "+
				"family, %s would take an entry that is not routable", or, chooser, v.Name, chooser))
		}
	}
	if len(all) == 0 {
		return []string{dropIndex, "see roce-gids for the addresses"}
	}
	return finding.Unique(all)
}

// choiceUsable reports whether on each port whose table was read the choice is usable, where the
// port has any such entry.
func (f *judged) choiceUsable(wish frameworks.GIDWish) bool {
	return !slices.ContainsFunc(f.rocePorts(), func(p *container.GIDTable) bool {
		return !p.Unread && slices.ContainsFunc(p.GIDs, f.usableGID) && !f.usableEntry(entry(p, chosenGID(p.GIDs, wish)))
	})
}

// commonIndex is the lowest index whose entry is usable on all ports; -1 for none.
func (f *judged) commonIndex() int {
	ports := f.rocePorts()
	if len(ports) == 0 {
		return -1
	}
	for _, g := range ports[0].GIDs {
		lacks := func(p *container.GIDTable) bool { return !f.usableEntry(entry(p, g.Index)) }
		if !slices.ContainsFunc(ports, lacks) {
			return g.Index
		}
	}
	return -1
}
