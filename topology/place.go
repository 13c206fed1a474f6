package topology

import (
	"slices"

	"gdr-features/source/pci"
)

// placedNIC is a NIC function and where NCCL finds it.
type placedNIC struct {
	*pci.Function
	at ncclFunction
}

// placed finds NIC functions in the PCI tree as NCCL does.
func (b *builder) placed(nics []*pci.Function) []placedNIC {
	list := make([]placedNIC, len(nics))
	for i, nic := range nics {
		list[i] = placedNIC{nic, inNCCL(b.PCI, nic)}
	}
	return list
}

// placeOf finds a NIC as NCCL does: where the topology file has the name of its RDMA device,
// whatever its function (src/graph/xml.cc, ncclTopoFillNet), else by its function. Only the
// ratings of pairs rest on names, no hardware label does: names come with the driver.
func (b *builder) placeOf(n *NIC) ncclFunction {
	if n.Function == nil {
		return ncclFunction{}
	}
	at := inNCCL(b.PCI, n.Function)
	name := n.Name()
	if at.fn != nil && at.fn.DataDirectOf != nil {
		name += "_dma" // src/transport/net_ib/init.cc, ncclIbInitDevices
	}
	switch e, ok := b.File.net(name); {
	case ok && n.RDMA != nil && e != nil && (!byPlugin(n.Function) || e == b.File.find(n.Function)):
		return ncclFunction{net: name, known: true}
	case ok && n.RDMA != nil:
		return ncclFunction{} // a plugin may have a name of its own for the NIC
	case n.RDMA != nil && n.RDMA.Auxiliary:
		return ncclFunction{} // unknown on an auxiliary device, which is no PCI device to NCCL
	}
	return at
}

// byName returns the level by the topology file where the NIC's name, and not its function,
// is in it.
func (b *builder) byName(gpu *pci.Function, n *NIC, at ncclFunction) (Level, bool) {
	if b.FileUnread || at.net == "" || at.net != n.Name() || b.File.find(b.PCI.Place(n.Function)) != nil {
		return Unknown, false
	}
	p, q := b.File.find(b.PCI.Place(gpu)), b.File.nets[at.net]
	if p == nil {
		return Unknown, false
	}
	return p.level(q), true
}

// allNICs rates all NICs at their places: eligible functions, with RDMA devices or without, and
// the functions of all other RDMA devices.
func (b *builder) allNICs(at []ncclFunction) *ncclRatings {
	if !slices.ContainsFunc(b.m.NICs, func(n NIC) bool { return n.Function != nil && !b.nccl.knows(inNCCL(b.PCI, n.Function)) }) &&
		!slices.ContainsFunc(at, func(a ncclFunction) bool { return a.net != "" }) {
		return b.nccl
	}
	var all, named []placedNIC
	byFunction := map[ncclFunction]bool{}
	for i := range b.m.NICs {
		switch f := b.m.NICs[i].Function; {
		case f == nil:
		case at[i].net != "":
			named = append(named, placedNIC{f, at[i]})
		default:
			byFunction[inNCCL(b.PCI, f)] = true
		}
	}
	for _, nic := range b.placed(b.eligibleNICs()) {
		if byFunction[nic.at] {
			all = append(all, nic)
		}
	}
	for i := range b.m.NICs {
		if f := b.m.NICs[i].Function; f != nil && at[i].net == "" && !b.nccl.knows(inNCCL(b.PCI, f)) {
			all = append(all, placedNIC{f, inNCCL(b.PCI, f)})
		}
	}
	return b.rateNCCL(append(all, named...))
}
