package findings

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/show"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

var link = check{
	Name: "link",
	Sources: []string{
		pci.AnyFile(pci.LinkWidthFile), pci.AnyFile(pci.MaxLinkWidthFile),
		pci.AnyFile(pci.LinkSpeedFile), pci.AnyFile(pci.MaxLinkSpeedFile),
	},
	Codes: []finding.Code{"LinkDegraded"},
	Judge: judgeLinks,
}

func judgeLinks(f *judged) finding.Said {
	if slow := degraded(f); slow.Any() {
		warning := finding.Warn("LinkDegraded", "%s", slow).Of(slow)
		if guest(f) {
			return warning.Do("look on the hypervisor, which shows the real link: there, "+reseat, coldBoot)
		}
		return warning.Do(reseat, coldBoot)
	}
	if links := len(f.links()); links > 0 {
		return finding.OK("%s of GPUs and NICs at full width, NICs at full speed", show.Count(links, "PCIe link"))
	}
	return finding.Said{}
}

const reseat = "reseat the card or its riser, look for AER errors in dmesg and at the slot's settings in " +
	"the firmware"

const coldBoot = "a cold boot trains the link again"

// cardLink is the PCI Express link of a card: its own end, the GPU or NIC on it, and
// what the link lacks.
type cardLink struct {
	card, port, fn *pci.Function
	lacks          []pci.LinkLack
}

// links returns the link of the card of each eligible GPU and NIC, once each, as far as
// it can be judged.
func (f *judged) links() []cardLink {
	var all []cardLink
	for _, fn := range f.functions(eligible) {
		card, port := f.PCI.Slot(fn)
		if fn.PhysFn != nil || slices.ContainsFunc(all, func(l cardLink) bool { return l.card == card }) {
			continue
		}
		if full, lacks := pci.FullLink(card, port, fn.NIC != nil); full != tristate.Unknown || len(lacks) > 0 {
			all = append(all, cardLink{card, port, fn, lacks})
		}
	}
	return all
}

// degraded lists what has fewer lanes, or is slower, than both ends can do: the links of
// cards, then those of the bridges above them.
func degraded(f *judged) (links finding.Subjects) {
	cards := f.links()
	for _, l := range cards {
		if len(l.lacks) > 0 {
			links.Add(f.named(l.fn)+" runs at "+left(l.card, l.port, l.lacks), sawLacks(l.card, l.lacks)...)
		}
	}
	for _, l := range f.bridgeLinks(cards) {
		links.Add(fmt.Sprintf("the link between %v and %v above %s runs at %s", l.upper.Address, l.lower.Address,
			f.named(l.below), left(l.lower, l.upper, l.lacks)), sawLacks(l.less, l.lacks)...)
	}
	return links
}

// left is "x4 of x16, which leaves 126 of 504 Gbit/s".
func left(lower, upper *pci.Function, lacks []pci.LinkLack) string {
	text := strings.Join(finding.Map(lacks, pci.LinkLack.String), " and ")
	if now, most := pci.Bandwidth(lower, upper, lacks); now > 0 {
		text += fmt.Sprintf(", which leaves %.0f of %.0f Gbit/s", now, most)
	}
	return text
}

// sawLacks is evidence of what the link of a function has, and of what the function can do.
func sawLacks(fn *pci.Function, lacks []pci.LinkLack) (seen []string) {
	for _, l := range lacks {
		seen = append(seen, finding.Saw(fn.Address.File(l.NowFile), l.Value(l.Now)),
			finding.Saw(fn.Address.File(l.OwnFile), l.Value(l.Own)))
	}
	return seen
}

// bridgeLink is a PCI Express link between two bridges, less the one of them that shows
// less than both can do.
type bridgeLink struct {
	upper, lower, less *pci.Function
	below              *pci.Function // the GPU or NIC
	lacks              []pci.LinkLack
}

// bridgeLinks returns the links that are proven to lack something between the bridges above
// the eligible GPUs and their nearest NICs, up to the root port: all traffic of theirs that
// does not turn in a switch passes them, and with ACS redirection or a translating IOMMU that
// between the two as well. Only bare metal is judged: the bridges that hypervisors show have
// no link, whatever their files say (on EC2, one of 8 GT/s above GPUs with one of 32).
func (f *judged) bridgeLinks(cards []cardLink) []bridgeLink {
	if guest(f) || f.Platform.Virtual != tristate.False && !f.PCI.CPUPort() {
		return nil
	}
	done := map[pci.Address]bool{}
	for _, l := range cards { // of a NIC with a switch of its own
		done[l.card.Address] = true
	}
	var all []bridgeLink
	for _, gpu := range f.Matrix.GPUs {
		if !gpu.Eligible {
			continue
		}
		for _, fn := range append([]*pci.Function{gpu.Function}, gpu.Near(topology.Usable).Functions...) {
			for _, lower := range f.uplinks(fn) {
				if done[lower.Address] {
					continue
				}
				done[lower.Address] = true
				if l := f.lacking(lower); l != nil {
					l.below = fn
					all = append(all, *l)
				}
			}
		}
	}
	return all
}

// uplinks returns the upstream ports of the switches above a function, each the lower end of
// a link: from the port that the function is plugged into, every second bridge. Bridges in
// any other order, not from a root port on, are left out.
func (f *judged) uplinks(fn *pci.Function) (ports []*pci.Function) {
	for i := len(fn.Bridges) - 2; i > 0 && len(fn.Bridges)%2 == 1; i -= 2 {
		if port := f.PCI.Find(fn.Bridges[i]); port != nil {
			ports = append(ports, port)
		}
	}
	return ports
}

// lacking judges the link above an upstream port by what either end shows; nil where
// nothing is proven to lack.
func (f *judged) lacking(lower *pci.Function) *bridgeLink {
	upper := f.PCI.Port(lower)
	if upper == nil {
		return nil
	}
	speed := !f.onlyGPUs(lower)
	for _, ends := range [...][2]*pci.Function{{lower, upper}, {upper, lower}} {
		if full, lacks := pci.FullLink(ends[0], ends[1], speed); full == tristate.False {
			return &bridgeLink{upper: upper, lower: lower, less: ends[0], lacks: lacks}
		}
	}
	return nil
}

// onlyGPUs: below a switch are only GPUs, of whose card it may be. The driver of an idle GPU
// may slow down the link above such a switch instead of the GPU's own.
func (f *judged) onlyGPUs(bridge *pci.Function) bool {
	below := f.functions(func(fn *pci.Function) bool {
		return !fn.Bridge() && slices.Contains(fn.Bridges,
			bridge.Address)
	})
	return !slices.ContainsFunc(below, func(fn *pci.Function) bool {
		first := fn.Address
		first.Function = 0 // its audio and USB functions are beside it
		gpu := f.PCI.Find(first)
		return gpu == nil || gpu.GPU == nil
	})
}
