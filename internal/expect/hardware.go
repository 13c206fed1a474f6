package expect

import (
	"cmp"
	"fmt"
	"strings"

	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
)

// members lists the eligible GPUs or NICs of a group as the labels gdr.gpus and
// gdr.nics count them: without virtual functions whose physical function is listed.
func (f *facts) members(g *Group, eligible func(*pci.Function) bool) []*pci.Function {
	var all []*pci.Function
	for fn := range f.PCI.All() {
		if eligible(fn) && f.PCI.Physical(fn) == nil && (len(g.Model) == 0 || matchesAny(g.Model, names(fn)...)) {
			all = append(all, fn)
		}
	}
	return all
}

// unidentified counts functions that may be members of any group, -1 for a PCI bus not read.
func (f *facts) unidentified() int {
	if !f.PCIRead {
		return -1
	}
	n := 0
	for fn := range f.PCI.All() {
		if fn.Unidentified() {
			n++
		}
	}
	return n
}

func (f *facts) group(key, what string, g *Group, eligible func(*pci.Function) bool) []Check {
	members := f.members(g, eligible)
	all := []Check{f.count(key, what, g, members)}
	if g.FullLink {
		all = append(all, f.fullLink(key, g, members))
	}
	if g.ActivePorts.text != "" {
		all = append(all, f.activePorts(g, members))
	}
	if g.LinkLayer != "" {
		all = append(all, f.linkLayer(g, members))
	}
	if g.Rate.text != "" {
		all = append(all, f.rate(g, members))
	}
	if g.Firmware.text != "" {
		all = append(all, f.firmware(g, members))
	}
	return all
}

// suffix names the members' models, to follow "GPUs" or "NICs".
func (g *Group) suffix() string {
	if len(g.Model) == 0 {
		return ""
	}
	return " " + join(g.Model)
}

func (f *facts) count(key, what string, g *Group, members []*pci.Function) Check {
	fix := "compare lspci with a healthy machine; a device that fell off the bus (dmesg) may come back after a power cycle"
	if len(members) > g.Count.Max {
		fix = "find out which device was added, or correct the file"
	}
	return Check{
		Name: key + ".count", State: g.Count.Holds(len(members), f.unidentified()),
		Expected: g.Count.String() + " " + what + g.suffix(), Found: fmt.Sprint(len(members)),
		Fix: []string{fix}, Sources: []string{pci.Devices},
	}
}

// help is what the family of the first member that says something says, or otherwise.
func help(members []*pci.Function, of func(family.Help) string, otherwise string) string {
	for _, fn := range members {
		if text := of(fn.NIC.Help); text != "" {
			return text
		}
	}
	return otherwise
}

// fullLink judges the PCI Express link of each member's card to its slot.
func (f *facts) fullLink(key string, g *Group, members []*pci.Function) Check {
	t := f.tally()
	for _, fn := range members {
		card, port := f.PCI.Slot(fn)
		state, lacks := pci.FullLink(card, port, fn.NIC != nil)
		words := []string{fn.Address.String()}
		for i, l := range lacks {
			if i > 0 {
				words = append(words, "and")
			}
			words = append(words, l.String())
		}
		if card != fn {
			words = append(words, "at "+card.Address.String())
		}
		t.add(state, strings.Join(words, " "))
	}
	return Check{
		Name: key + ".pcie", State: t.state(), Expected: "full PCIe links of all " + key + g.suffix(), Found: t.found("none"),
		Fix:     []string{"lspci -vv -s ADDRESS (LnkCap, LnkSta)", "reseat the card, try another slot or riser, then replace it"},
		Sources: []string{pci.AnyFile(pci.LinkWidthFile), pci.AnyFile(pci.LinkSpeedFile)},
	}
}

// firmware compares the firmware of each member. The functions of a card share one, also where
// only some have an RDMA device (a bond has one for two).
func (f *facts) firmware(g *Group, members []*pci.Function) Check {
	cardOf := func(fn *pci.Function) pci.Address { card := fn.Address; card.Function = 0; return card }
	own, known := map[pci.Address]string{}, map[pci.Address]string{}
	for _, fn := range members {
		for _, d := range f.RDMA.Of(fn.Address) {
			if d.Firmware != "" {
				own[fn.Address], known[cardOf(fn)] = d.Firmware, d.Firmware
			}
		}
	}
	t := f.tally()
	for _, fn := range members {
		version := cmp.Or(own[fn.Address], known[cardOf(fn)])
		t.add(g.Firmware.Holds(version), version+" on "+fn.Address.String())
	}
	return Check{
		Name: "nics.firmware", State: t.state(), Expected: "firmware " + g.Firmware.String() + " of all NICs" + g.suffix(), Found: t.found("none"),
		Fix:     []string{help(members, func(h family.Help) string { return h.Firmware }, "ethtool -i INTERFACE shows it; update it with the program of the NIC's vendor, then power cycle")},
		Sources: []string{rdma.Class + "/*/fw_ver"},
	}
}
