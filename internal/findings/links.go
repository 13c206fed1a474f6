package findings

import (
	"fmt"

	"gdr-features/internal/finding"
	"gdr-features/internal/show"
	"gdr-features/source/pci"
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
	links := 0
	for _, l := range f.Verdict.Links {
		if !l.Between && l.Full == tristate.True {
			links++
		}
	}
	if links > 0 {
		return finding.OK("%s of GPUs and NICs at full width, NICs at full speed", show.Count(links, "PCIe link"))
	}
	return finding.Said{}
}

const reseat = "reseat the card or its riser, look for AER errors in dmesg and at the slot's settings in " +
	"the firmware"

const coldBoot = "a cold boot trains the link again"

// degraded lists what has fewer lanes, or is slower, than both ends can do: the links of
// cards, then those of the bridges above them.
func degraded(f *judged) (links finding.Subjects) {
	for _, l := range f.Verdict.Links {
		for _, lack := range l.Lacks {
			name := fmt.Sprintf("NIC %v", l.Of.Address)
			switch {
			case l.Between:
				name = fmt.Sprintf("the link between %v and %v above %v", l.Upper.Address, l.Lower.Address, l.Of.Address)
			case isGPU(l.Of):
				name = fmt.Sprintf("GPU %v", l.Of.Address)
			}
			links.Add(fmt.Sprintf("%s runs at %v", name, lack), sawLack(l.Less, lack)...)
		}
	}
	return links
}

// sawLack is evidence of what the link of a function has, and of what the function can do.
func sawLack(fn *pci.Function, l pci.LinkLack) []string {
	return []string{
		finding.Saw(fn.Address.File(l.NowFile), l.Value(l.Now)),
		finding.Saw(fn.Address.File(l.OwnFile), l.Value(l.Own)),
	}
}
