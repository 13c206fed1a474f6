package pod

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/internal/show"
	"gdr-features/source/container"
	"gdr-features/source/rdma"
)

var gidFiles = []string{rdma.AnyPortFile(rdma.GIDFile), rdma.AnyPortFile(rdma.GIDTypeFile)}

// roceGIDs: a connection over RoCE needs an entry of its port's GID table. Unless variables
// say otherwise, NCCL and NVSHMEM choose one of RoCE v2 with a routable IPv4 address, else one
// of RoCE v1 with such an address, else the entry 0, which is link-local as a rule (chosenGID;
// nvshmem src/modules/transport/common/transport_ib_common.cpp).
var roceGIDs = check{
	Name: "roce-gids", Sources: gidFiles,
	Codes: []finding.Code{"NoRoCEGID", "GIDElsewhere", "LinkLocalGID", "IPv6OnlyGID", "GIDIndexWrong", finding.Unreadable},
	Judge: func(f *judged) finding.Said {
		said := f.wrongGIDs()
		unread := f.portsThat(func(p *container.GIDTable) bool { return p.Unread && !slices.ContainsFunc(p.GIDs, f.usableGID) })
		switch {
		case said.Found():
			return said
		case unread.Any():
			return finding.Unknown("the GIDs cannot be read: %s", unread).Of(unread)
		case len(f.rocePorts()) > 0:
			return finding.OK("RoCE v2 with a routable address: %s", f.firstIndexes())
		}
		return finding.Said{}
	},
}

// wrongGIDs says which tables, or choices of an entry, are wrong.
func (f *judged) wrongGIDs() finding.Said {
	lacks := func(usable func(rdma.GID) bool) func(p *container.GIDTable) bool {
		return func(p *container.GIDTable) bool { return !p.Unread && !slices.ContainsFunc(p.GIDs, usable) }
	}
	noRoutable := lacks(f.usableGID)
	empty := f.portsThat(func(p *container.GIDTable) bool { return len(p.GIDs) == 0 && !p.Unread })
	elsewhere := f.portsThat(func(p *container.GIDTable) bool {
		return noRoutable(p) && slices.ContainsFunc(p.GIDs, rdma.GID.Routable)
	})
	local, onlyIPv6, choices := f.portsThat(noRoutable), f.portsThat(lacks(f.usableIPv4)), f.badChoices()
	switch {
	case empty.Any():
		return finding.Fail("NoRoCEGID", "no GID here: %s", empty).Of(empty).Do(ownNetwork)
	case elsewhere.Any():
		return finding.Fail("GIDElsewhere", "the routable RoCE v2 GIDs belong to another network namespace, "+
			"and MOFED refuses connections with them: %s", elsewhere).
			Of(elsewhere).Do(ownNetwork)
	case local.Any():
		return finding.Warn("LinkLocalGID", "no RoCE v2 GID with a routable address, so that only nodes of "+
			"the same layer 2 network can be reached, if any: %s", local).
			Of(local).Do(ownNetwork)
	case onlyIPv6.Any() && f.wantsIPv4():
		return finding.Warn("IPv6OnlyGID", "the routable RoCE v2 GIDs have IPv6 addresses alone, and NCCL "+
			"and NVSHMEM choose among those of IPv4: %s", onlyIPv6).
			Of(onlyIPv6).Do("set NCCL_IB_ADDR_FAMILY=AF_INET6 and NVSHMEM_IB_ADDR_FAMILY=AF_INET6 in " +
			"spec.containers[].env")
	case choices.Any():
		return finding.Warn("GIDIndexWrong", "variables lead to an entry that is not one of RoCE v2 with a "+
			"routable address: %s", choices).
			Of(choices).Do("remove or correct these variables in spec.containers[].env")
	}
	return finding.Said{}
}

const ownNetwork = "give the Pod a network device of this NIC with an IP address (annotation " +
	"k8s.v1.cni.cncf.io/networks, resources.limits of the SR-IOV or macvlan network), or spec.hostNetwork: true"

// rocePorts are the ports of the NICs that the GPUs in question should use (see frameworkMap).
// Other NICs may be for other things, as storage.
func (f *judged) rocePorts() []*container.GIDTable {
	var ports []*container.GIDTable
	used := f.frameworkMap().Used()
	for i := range f.Pod.Ports {
		p := &f.Pod.Ports[i]
		if slices.ContainsFunc(used, func(nic *assign.NIC) bool { return nic.RDMA == p.Device.Name }) {
			ports = append(ports, p)
		}
	}
	return ports
}

// portsThat names the ports for which something holds, with what they have.
func (f *judged) portsThat(holds func(*container.GIDTable) bool) (ports finding.Subjects) {
	for _, p := range f.rocePorts() {
		if holds(p) {
			ports.Add(portName(p), sawGIDs(p))
		}
	}
	return ports
}

func portName(p *container.GIDTable) string { return p.Device.Name + "/" + strconv.Itoa(p.Number) }

// sawGIDs is evidence of a port's table: the entries without their addresses.
func sawGIDs(p *container.GIDTable) string {
	if len(p.GIDs) == 0 && !p.Unread {
		return finding.Saw(p.File(), "empty")
	}
	entries := finding.Map(p.GIDs, func(g rdma.GID) string {
		return fmt.Sprintf("%d %s %s", g.Index, g.Type, gidKind(g))
	})
	return finding.Saw(p.File(), strings.Join(entries, ", "))
}

func gidKind(g rdma.GID) string {
	switch {
	case g.LinkLocal():
		return "link-local"
	case g.IPv4():
		return "IPv4"
	}
	return "IPv6"
}

func (f *judged) usableGID(g rdma.GID) bool {
	return assign.Here{Node: f.Node, Visible: f.Pod.Visible}.UsableGID(g)
}

func (f *judged) usableEntry(g *rdma.GID) bool { return g != nil && f.usableGID(*g) }

func (f *judged) usableIPv4(g rdma.GID) bool { return f.usableGID(g) && g.IPv4() }

// wantsIPv4: no variable tells NCCL or NVSHMEM which entry to use.
func (f *judged) wantsIPv4() bool {
	asked := func(chooser string) bool { return frameworks.NewGIDWish(chooser, f.Pod.Environment.Variables).IPv6 }
	return !slices.ContainsFunc(frameworks.GIDChoosers[:], asked) && len(frameworks.GIDIndexes(f.Pod.Environment.Variables)) == 0
}

// entry is the one of an index, nil where it is empty.
func entry(p *container.GIDTable, index int) *rdma.GID {
	if at := slices.IndexFunc(p.GIDs, func(g rdma.GID) bool { return g.Index == index }); at >= 0 {
		return &p.GIDs[at]
	}
	return nil
}

// badChoices names the variables with which a framework that is not told the index chooses an entry
// that is not usable.
func (f *judged) badChoices() (bad finding.Subjects) {
	indexes := frameworks.GIDIndexes(f.Pod.Environment.Variables)
	for _, chooser := range frameworks.GIDChoosers {
		wish := frameworks.NewGIDWish(chooser, f.Pod.Environment.Variables)
		told := slices.ContainsFunc(indexes, func(i frameworks.GIDIndex) bool { return strings.HasPrefix(i.Name, chooser+"_") })
		if len(wish.Given) == 0 || told {
			continue
		}
		for _, p := range f.rocePorts() {
			index, what := chosenGID(p.GIDs, wish), "empty"
			g := entry(p, index)
			if p.Unread || f.usableEntry(g) {
				continue
			}
			if g != nil {
				what = g.Type + " " + gidKind(*g)
			}
			bad.Add(fmt.Sprintf("%s on %s: %s takes the entry %d (%s)",
				strings.Join(wish.Given, " "), portName(p), chooser, index, what),
				append(slices.Clone(wish.Given), sawGIDs(p))...)
		}
	}
	return bad
}

// firstIndexes are the indexes of the entries that NCCL chooses, or of the first usable ones
// where a variable names another, with the ports that have them.
func (f *judged) firstIndexes() string {
	var texts []string
	ports := map[string]int{}
	for _, p := range f.rocePorts() {
		g := entry(p, chosenGID(p.GIDs, frameworks.NewGIDWish(frameworks.GIDChoosers[0], f.Pod.Environment.Variables)))
		if !f.usableEntry(g) {
			g = &p.GIDs[slices.IndexFunc(p.GIDs, f.usableGID)]
		}
		text := fmt.Sprintf("GID index %d (%s)", g.Index, gidKind(*g))
		if ports[text]++; ports[text] == 1 {
			texts = append(texts, text)
		}
	}
	for i, text := range texts {
		texts[i] = text + " on " + show.Count(ports[text], "port")
	}
	return strings.Join(texts, ", ")
}

// gidIndex: an index in a variable is for the ports of all nodes, and not all tables are alike.
var gidIndex = check{
	Name: "gid-index", Sources: gidFiles, Codes: []finding.Code{"GIDIndexWrong"},
	Judge: func(f *judged) finding.Said {
		none := f.indexesThat(func(g *rdma.GID) bool { return g == nil })
		wrong := f.indexesThat(func(g *rdma.GID) bool { return g != nil && !f.usableGID(*g) })
		given := len(frameworks.GIDIndexes(f.Pod.Environment.Variables)) > 0
		unread := func(p *container.GIDTable) bool { return p.Unread }
		switch {
		case none.Any():
			return finding.Fail("GIDIndexWrong", "no GID has this index: %s", none).Of(none).
				Do(f.gidIndexFix()...)
		case wrong.Any():
			return finding.Warn("GIDIndexWrong", "this index is not one of RoCE v2 with a routable address: "+
				"%s", wrong).
				Of(wrong).Do(f.gidIndexFix()...)
		case given && len(f.rocePorts()) > 0 && !slices.ContainsFunc(f.rocePorts(), unread):
			return finding.OK("RoCE v2 with a routable address on all ports")
		}
		return finding.Said{}
	},
}

// indexesThat names the variables with ports whose entry of that index, or nil, is as asked for.
func (f *judged) indexesThat(is func(*rdma.GID) bool) (variables finding.Subjects) {
	for _, v := range frameworks.GIDIndexes(f.Pod.Environment.Variables) {
		for _, p := range f.rocePorts() {
			g := entry(p, int(min(v.Index, math.MaxInt32)))
			if !p.Unread && is(g) {
				variables.Add(v.Name+"="+v.Value+" on "+portName(p), finding.Saw(v.Name, v.Value), sawGIDs(p))
			}
		}
	}
	return variables
}
