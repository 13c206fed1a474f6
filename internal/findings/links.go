package findings

import (
	"fmt"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/show"
	"gdr-features/source/pci"
	"gdr-features/tristate"
	"gdr-features/verdict"
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
	var slow finding.Subjects // the links of cards, then those of the bridges above them
	for _, l := range f.Verdict.Links {
		if len(l.Lacks) > 0 {
			slow.Add(nameOf(f, &l)+" runs at "+left(&l), sawLacks(l.Less, l.Lacks)...)
		}
	}
	if slow.Any() {
		warning := finding.Warn("LinkDegraded", "%s", slow).Of(slow)
		if f.Guest() {
			return warning.Do("look on the hypervisor, which shows the real link: there, "+reseat, coldBoot)
		}
		return warning.Do(reseat, coldBoot)
	}
	full, unread := 0, finding.Subjects{}
	for _, l := range f.Verdict.Links {
		switch {
		case l.Near && l.Full == tristate.Unknown && !f.Guest(): // a guest's links need not be real
			unread.Add(nameOf(f, &l))
		case l.Full == tristate.True && !l.Between:
			full++
		}
	}
	switch {
	case unread.Any():
		return finding.Unknown("whether these run at full width and speed cannot be read: %s", unread).Of(unread)
	case full > 0:
		return finding.OK("%s of GPUs and NICs at full width, NICs at full speed", show.Count(full, "PCIe link"))
	}
	return finding.Said{}
}

const reseat = "reseat the card or its riser, look for AER errors in dmesg and at the slot's settings in " +
	"the firmware"

const coldBoot = "a cold boot trains the link again"

// nameOf names the card that has a link, or the bridges that it is between.
func nameOf(f *judged, l *verdict.Link) string {
	name := f.named(l.Of)
	switch {
	case !l.Between:
		return name
	case l.Upper == nil:
		return fmt.Sprintf("the link of %v above %s", l.Lower.Address, name)
	}
	return fmt.Sprintf("the link between %v and %v above %s", l.Upper.Address, l.Lower.Address, name)
}

// left is "x4 of x16, which leaves 126 of 504 Gbit/s".
func left(l *verdict.Link) string {
	text := strings.Join(finding.Map(l.Lacks, pci.LinkLack.String), " and ")
	if now, most := pci.Bandwidth(l.Lower, l.Upper, l.Lacks); now > 0 {
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
