package expect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// find returns the first type that matches, nil for none. known is false if it cannot
// be determined whether a type matches; the machine's type is not known then.
func (f *File) find(machine *facts) (t *Type, known bool) {
	for i := range f.Types {
		switch machine.matches(&f.Types[i].Match) {
		case tristate.True:
			return &f.Types[i], true
		case tristate.Unknown:
			return nil, false
		case tristate.False:
		}
	}
	return nil, true
}

// MatchesNone reports whether it is proven that no type of the file matches. It needs
// the PCI bus and DMI; a type that depends on a fact that is missing may match.
func (f *File) MatchesNone(node *verdict.Node) bool {
	t, known := f.find(&facts{node})
	return known && t == nil
}

// matches reports whether a machine is what a match describes. A machine without GPU belongs to
// a type only by its name from the firmware.
func (f *facts) matches(m *Match) tristate.State {
	out := tristate.And(
		matches(f.Platform.DMI.Product, m.Product), matches(f.Platform.DMI.Vendor, m.Vendor), matches(f.Platform.DMI.Board, m.Board),
		f.has(isGPU, m.GPU), f.has(isNIC, m.NIC),
	)
	switch {
	case len(m.Topology) == 0:
	case f.Matrix.Origin == "":
		out = tristate.And(out, tristate.Unknown)
	default:
		out = tristate.And(out, tristate.Of(slices.Contains(m.Topology, f.Matrix.Origin)))
	}
	if !m.firmware() {
		out = tristate.And(out, f.has(isGPU, []Pattern{{}}))
	}
	return out
}

// matches compares a name from the firmware with patterns. No patterns match any name.
func matches(name platform.Name, patterns []Pattern) tristate.State {
	switch {
	case len(patterns) == 0:
		return tristate.True
	case !name.Known:
		return tristate.Unknown
	}
	return tristate.Of(matchesAny(patterns, name.Value))
}

// has reports whether a function of a kind, isGPU or isNIC, is one of some products.
func (f *facts) has(kind func(*pci.Function) bool, models []Pattern) tristate.State {
	is := func(fn pci.Function) bool { return kind(&fn) && matchesAny(models, names(&fn)...) }
	switch {
	case len(models) == 0:
		return tristate.True
	case !f.PCIRead:
		return tristate.Unknown
	case slices.ContainsFunc(f.PCI.Functions, is):
		return tristate.True
	case f.PCI.Unidentified():
		return tristate.Unknown
	}
	return tristate.False
}

func isGPU(f *pci.Function) bool { return f.GPU != nil }
func isNIC(f *pci.Function) bool { return f.NIC != nil }

// names are what a pattern may call a function: its product name, and its IDs.
func names(f *pci.Function) []string {
	return []string{f.Name(), fmt.Sprintf("%04x:%04x", f.Vendor, f.Device)}
}

func (f *facts) machine() string {
	var parts []string
	for _, text := range [...]struct {
		key string
		platform.Name
	}{{"product", f.Platform.DMI.Product}, {"vendor", f.Platform.DMI.Vendor}, {"board", f.Platform.DMI.Board}} {
		if text.Known {
			parts = append(parts, fmt.Sprintf("%s %q", text.key, text.Value))
		}
	}
	withoutGPU := len(parts)
	for fn := range f.PCI.All() {
		if part := fmt.Sprintf("gpu %q", cmp.Or(names(fn)...)); isGPU(fn) && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	switch {
	case len(parts) > withoutGPU:
	case f.PCIRead:
		parts = append(parts, "no gpu")
	case len(parts) == 0:
		return "neither its PCI bus nor its name can be read"
	}
	return strings.Join(parts, ", ")
}
