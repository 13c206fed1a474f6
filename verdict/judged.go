package verdict

import (
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// Judged is what was judged of one family of GPUs and one of NICs, within which all prerequisites
// must be met: a port of one family of NICs does not help the DMA-BUF of another. Judge asks each
// question once; all others read the answers here.
type Judged struct {
	GPU *family.GPU
	NIC *family.NIC

	// Reachable: the driver of some eligible GPU maps its memory for some eligible NIC, as far as
	// their places go.
	Reachable tristate.State
	// AllPassthrough: virtual machines get every eligible GPU. GPUDriven: the driver of the family
	// drives some. Turing: some of these is one that the open modules can drive.
	AllPassthrough, GPUDriven, Turing tristate.State
	// NICDriven: some eligible NIC function is bound to its driver. RDMADevice: some eligible NIC
	// has an RDMA device. ActivePort: some port of those is ACTIVE with a link layer of its family.
	NICDriven, RDMADevice, ActivePort tristate.State
	// OwnMemory: the driver may give NICs the memory of some GPU that it drives. SomeMapped: it maps
	// it as some NIC needs it. PeerToPeer: the kernel lets some NIC reach it.
	OwnMemory, SomeMapped, PeerToPeer tristate.State
	// DevicesSay: some RDMA device said, when it was asked, that it registers DMA-BUF.
	DevicesSay tristate.State
	// Client gives the GPUs' memory to the NICs without DMA-BUF.
	Client Client
	// Needs are what DMA-BUF needs, in the order to name it: hardware before drivers.
	Needs []Prerequisite
	// Lack is what one GPU and one NIC lack together, and Apart are the pairs that lack only this:
	// see judge.apart.
	Lack  Step
	Apart []*topology.Pair
	// Identity and BelowEmulated are doubts about what is in place, and Doubt is the state in which
	// transfers are published to fail; "" for none.
	Identity, BelowEmulated Doubted
	Doubt                   Reason

	// The two ways to GPU memory, whether a GPU and a NIC of the families are here or not.
	peermem, dmabuf tristate.State
	steps           []Step
}

// judge judges one family of GPUs and one of NICs.
type judge struct {
	*Node
	Judged
	gpus   []*pci.Function                  // the eligible ones of the family
	driven map[*pci.Function]tristate.State // whether the driver drives each of these, see drives
}

// asker is a question about a GPU and its family.
type asker func(*Node, *family.GPU, *pci.Function) tristate.State

// judged asks all that is to be judged of two families, each question after those it rests on.
func (node *Node) judged(g *family.GPU, n *family.NIC, drives asker) *Judged {
	j := &judge{Node: node, Judged: Judged{GPU: g, NIC: n}, driven: map[*pci.Function]tristate.State{}}
	for _, gpu := range node.Matrix.GPUs {
		if gpu.Counts() && gpu.GPU == g {
			j.gpus = append(j.gpus, gpu.Function)
			j.driven[gpu.Function] = drives(node, g, gpu.Function)
		}
	}
	j.Reachable = j.reachable()
	j.AllPassthrough, j.Turing = j.allPassthrough(), j.turing()
	j.GPUDriven = j.anyGPU(func(gpu *pci.Function) tristate.State { return j.driven[gpu] })
	j.RDMADevice = j.anyDevice(func(*topology.NIC) tristate.State { return tristate.True })
	j.NICDriven, j.ActivePort = j.nicDriven(), j.anyDevice(HasActivePort)
	j.OwnMemory, j.SomeMapped, j.PeerToPeer = j.ownMemory(), j.someMapped(), j.peerToPeer()
	j.DevicesSay = j.devicesSay()
	j.Client, j.Needs = ClientOf(&node.Kmod, g, n, node.Families.OrDefault()), j.needs()
	j.peermem, j.dmabuf = tristate.And(j.Client.Registered, j.OwnMemory), allMet(j.Needs)
	j.Lack, j.Apart = j.apart()
	j.Identity, j.BelowEmulated = j.identity(), j.belowEmulated()
	j.Doubt = j.doubt()
	j.steps = j.stepsOfAll()
	return &j.Judged
}

// ways counts the ways to GPU memory that are there.
func (j *Judged) ways() (n int) {
	for _, way := range [...]tristate.State{j.peermem, j.dmabuf} {
		if way == tristate.True {
			n++
		}
	}
	return n
}

// Pair is a node with the families that it is judged by, both nil before Judge.
type Pair struct {
	*Node
	GPU *family.GPU
	NIC *family.NIC
}

// Judged is the pair of families that the verdict is about.
func (node *Node) Judged() Pair { return Pair{node, node.Verdict.GPU, node.Verdict.NIC} }
