package verdict

import (
	"slices"
	"sync"

	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// Link is a PCI Express link of the card of an eligible GPU or NIC, or between bridges above it.
type Link struct {
	// Of is the GPU or NIC that has the link, or is below it.
	Of *pci.Function
	// Lower and Upper are its ends; Upper is nil where it is not known. Less is the end that shows
	// what the link lacks.
	Lower, Upper, Less *pci.Function
	// Between: both ends are bridges.
	Between bool
	// Near: a GPU has it on the way to its nearest NICs (topology.Usable).
	Near bool
	// Full: it runs at what both its ends can. Lacks is what it has less of, also where one end does
	// not say what it can (see pci.FullLink).
	Full  tristate.State
	Lacks []pci.LinkLack
}

// links returns the links of the cards of the eligible GPUs and NICs, once each, then those between
// the bridges above the GPUs and their nearest NICs.
func (node *Node) links() []Link {
	near, nearCards := node.nearFunctions(), map[pci.Address]bool{}
	for _, fn := range near {
		card, _ := node.PCI.Slot(fn)
		nearCards[card.Address] = true
	}
	var all []Link
	done := map[pci.Address]bool{}
	for fn := range node.PCI.All() {
		if !fn.GPUEligible() && !fn.NICEligible() || fn.PhysFn != nil {
			continue
		}
		card, port := node.PCI.Slot(fn)
		if done[card.Address] {
			continue
		}
		done[card.Address] = true
		l := Link{Of: fn, Lower: card, Upper: port, Less: card, Near: nearCards[card.Address]}
		l.Full, l.Lacks = pci.FullLink(card, port, fn.NIC != nil)
		all = append(all, l)
	}
	ofMetal := node.Platform.Virtual == tristate.False || node.PCI.CPUPort()
	others := sync.OnceValue(node.besideGPUs)
	for _, fn := range near {
		for _, lower := range node.uplinks(fn) {
			if done[lower.Address] {
				continue
			}
			done[lower.Address] = true
			l := Link{Of: fn, Lower: lower, Upper: node.PCI.Port(lower), Between: true, Near: true}
			if l.Upper != nil && ofMetal { // else the bridges may be those of a hypervisor
				l.between(others()[lower.Address])
			}
			all = append(all, l)
		}
	}
	return all
}

// nearFunctions are the eligible GPUs and their nearest NICs, once each. In the place of a virtual
// function stands its physical one, which has the link.
func (node *Node) nearFunctions() (all []*pci.Function) {
	add := func(fn *pci.Function) {
		if !slices.Contains(all, fn) {
			all = append(all, fn)
		}
	}
	for _, gpu := range node.Matrix.GPUs {
		if !gpu.Counts() {
			continue
		}
		add(gpu.Function)
		for _, fn := range gpu.Near(topology.Usable).Functions {
			add(node.PCI.Place(fn))
		}
	}
	return all
}

// uplinks returns the upstream ports of the switches above a function, each the lower end of
// a link: from the port that the function is plugged into, every second bridge. All traffic that
// does not turn in a switch passes these links, and with ACS redirection or a translating IOMMU
// that between a GPU and its NIC as well. Bridges in any other order, not from a root port on, are
// left out, and so are those of guests: the bridges that hypervisors show have no link, whatever
// their files say (on EC2, one of 8 GT/s above GPUs with one of 32).
func (node *Node) uplinks(fn *pci.Function) (ports []*pci.Function) {
	if node.Guest() || len(fn.Bridges)%2 == 0 {
		return nil
	}
	for i := len(fn.Bridges) - 2; i > 0; i -= 2 {
		if port := node.PCI.Find(fn.Bridges[i]); port != nil {
			ports = append(ports, port)
		}
	}
	return ports
}

// between judges a link between two bridges by what either end shows, with speed how fast it is.
func (l *Link) between(speed bool) {
	for _, ends := range [...][2]*pci.Function{{l.Lower, l.Upper}, {l.Upper, l.Lower}} {
		switch full, lacks := pci.FullLink(ends[0], ends[1], speed); full {
		case tristate.False:
			l.Full, l.Lacks, l.Less = full, lacks, ends[0]
			return
		case tristate.True:
			l.Full = full
		case tristate.Unknown:
		}
	}
}

// besideGPUs are the bridges that have more below them than GPUs, of whose cards other switches may
// be. The driver of an idle GPU may slow down the link above such a switch instead of the GPU's own.
func (node *Node) besideGPUs() map[pci.Address]bool {
	bridges := map[pci.Address]bool{}
	for fn := range node.PCI.All() {
		if fn.Bridge() {
			continue
		}
		first := fn.Address
		first.Function = 0 // its audio and USB functions are beside it
		if gpu := node.PCI.Find(first); gpu == nil || gpu.GPU == nil {
			for _, b := range fn.Bridges {
				bridges[b] = true
			}
		}
	}
	return bridges
}
