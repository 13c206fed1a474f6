package family

import (
	"slices"
	"strings"
)

// Machines are machines by the names that their firmware gives them.
type Machines struct {
	// Vendor is what /sys/class/dmi/id/sys_vendor has, and Types what product_name has or,
	// with a dot at the end, begins with: "g5." for all sizes of a type.
	Vendor string
	Types  []string
	// Instead says which machines to use, for remedies.
	Instead string
}

// OfVendor reports whether a name of a vendor is theirs.
func (m *Machines) OfVendor(vendor string) bool { return vendor == m.Vendor }

// OfType reports whether a name of a product is one of theirs.
func (m *Machines) OfType(product string) bool {
	return slices.ContainsFunc(m.Types, func(t string) bool {
		return product == t || strings.HasSuffix(t, ".") && strings.HasPrefix(product, t)
	})
}
