package topology

import (
	"cmp"
	"errors"
	"slices"

	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/topology/nccl"
	"gdr-features/tristate"
)

// placeOf finds a NIC as NCCL does: where the topology file has the name of its RDMA device,
// whatever its function (src/graph/xml.cc, ncclTopoFillNet), else by its function. Only the
// ratings of pairs rest on names, no hardware label does: names come with the driver.
func (b *builder) placeOf(n *NIC) nccl.Device {
	if n.Function == nil {
		return nccl.Device{}
	}
	at := nccl.GetPCIPath(b.PCI, n.Function)
	name := n.Name()
	if at.Function != nil && at.Function.DataDirectOf != nil {
		name += "_dma" // src/transport/net_ib/init.cc, ncclIbInitDevices
	}
	switch e := b.File.Net(name); {
	case e != nil && n.RDMA != nil && (!nccl.ByPlugin(n.Function) || e == b.File.Find(n.Function)):
		return nccl.Device{Net: name, Known: true}
	case e != nil && n.RDMA != nil:
		return nccl.Device{} // a plugin may have a name of its own for the NIC
	case n.RDMA != nil && n.RDMA.Auxiliary:
		return nccl.Device{} // unknown on an auxiliary device, which is no PCI device to NCCL
	}
	return at
}

// byName returns the level by the topology file that has a NIC's name and not its function.
func (b *builder) byName(gpu *pci.Function, n *NIC, at nccl.Device) (Level, bool) {
	if b.FileUnread || at.Net == "" || at.Net != n.Name() || b.File.Find(b.PCI.Place(n.Function)) != nil {
		return Unknown, false
	}
	p, q := b.File.Find(b.PCI.Place(gpu)), b.File.Net(at.Net)
	if p == nil {
		return Unknown, false
	}
	return levelOf[p.Path(q)], true
}

// rates fills in the rates of NICs' ports where NCCL goes by them: where a GPU shares memory with
// its CPU, it uses GPUDirect RDMA with the fastest NICs alone (nccl.setP2C). No hardware label
// rests on them. A NIC without an active port counts as if it had the rate of the fastest.
func (b *builder) rates(at []nccl.Device) {
	if !slices.ContainsFunc(b.m.GPUs, func(g GPU) bool { return g.Coherent() }) {
		return
	}
	mbps := make([]int, len(at))
	for i := range b.m.NICs {
		if rdma := b.m.NICs[i].RDMA; rdma != nil {
			for _, port := range rdma.Ports {
				if port.State == "ACTIVE" {
					mbps[i] = max(mbps[i], int(port.RateGbps*1000))
				}
			}
		}
	}
	for i := range at {
		at[i].Mbps = cmp.Or(mbps[i], slices.Max(mbps))
	}
}

// allNICs rates all NICs that have a function, at their places.
func (b *builder) allNICs(at []nccl.Device) *nccl.Ratings {
	var all []nccl.NIC
	rated := true
	for i := range b.m.NICs {
		f, place := b.m.NICs[i].Function, at[i]
		if f == nil {
			continue
		}
		if place.Net == "" {
			place = nccl.GetPCIPath(b.PCI, f)
			place.Mbps = at[i].Mbps
		}
		all = append(all, nccl.NIC{Function: f, At: place})
		rated = rated && b.nccl.Knows(place)
	}
	if rated {
		return b.nccl
	}
	return b.rateNCCL(all)
}

// ErrFromFile says that no file is written, since the levels are from one already.
var ErrFromFile = errors.New("the levels already come from an NCCL topology file")

// WriteFile returns the machine as an NCCL topology file (nccl.Machine.Write), or ErrFromFile.
func (m *Matrix) WriteFile(inv *pci.Inventory, cpu platform.CPU) ([]byte, error) {
	if m.Origin == FromFile && m.FileRefused == nil {
		return nil, ErrFromFile
	}
	machine := nccl.Machine{PCI: inv, GPUs: m.gpuFunctions(), CPU: cpu, Virtual: m.Origin == Virtual}
	var nics []nccl.NIC
	for i := range m.NICs {
		n := nccl.NIC{Function: m.NICs[i].Function, Name: m.NICs[i].Name()}
		if rdma := m.NICs[i].RDMA; rdma != nil {
			n.Ports = len(rdma.Ports)
		}
		if n.Function != nil {
			nics = append(nics, n)
		}
	}
	return machine.Write(nics)
}

// VFAside reports whether a topology file has a NIC near a GPU, and NCCL finds it there with
// NCCL_IB_MERGE_VFS=0, but by default looks for it at device 0, function 0 of its bus
// (nccl.GetPCIPath).
func (m *Matrix) VFAside(p Pair) bool {
	f := m.NICs[p.NIC].Function
	return f != nil && p.FromFile && p.Default == tristate.False && p.Level <= PXB &&
		m.File.FindUnmerged(f) && m.InNCCL[p.NIC].Net == "" && m.InNCCL[p.NIC].Function != f
}
