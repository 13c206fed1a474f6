package pci

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Exclusion names NICs that are not to be judged. The zero value names none.
type Exclusion struct {
	// Devices are names of RDMA devices.
	Devices []string

	addresses []Address
	ids       [][]uint16 // vendor and device, or these and those of the subsystem
}

// ParseExclusion reads a list whose entries are PCI addresses ("0000:18:00.0", "18:00.0"),
// PCI ids in hexadecimal digits ("15b3:1021", "15b3:a2dc:15b3:0009") or names of RDMA devices.
// The error names the first entry that is none of these.
func ParseExclusion(list []string) (Exclusion, error) {
	var e Exclusion
	for _, entry := range list {
		switch colons := strings.Count(entry, ":"); {
		case colons > 0 && strings.Contains(entry, "."):
			if colons == 1 {
				entry = "0000:" + entry
			}
			a, err := ParseAddress(entry)
			if err != nil {
				return Exclusion{}, err
			}
			e.addresses = append(e.addresses, a)
		case colons > 0:
			ids, err := parseIDs(entry)
			if err != nil {
				return Exclusion{}, err
			}
			e.ids = append(e.ids, ids)
		case entry == "" || strings.ContainsAny(entry, "/ \t\n"):
			return Exclusion{}, fmt.Errorf("%q is no PCI address, no vendor:device and no name of an RDMA device", entry)
		default:
			e.Devices = append(e.Devices, entry)
		}
	}
	return e, nil
}

func parseIDs(entry string) ([]uint16, error) {
	parts := strings.Split(entry, ":")
	ids := make([]uint16, len(parts))
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 16, 16)
		if err != nil || len(part) > 4 || len(parts) != 2 && len(parts) != 4 {
			return nil, fmt.Errorf("%q is not of the form vendor:device or vendor:device:subvendor:subdevice in hexadecimal digits", entry)
		}
		ids[i] = uint16(n)
	}
	return ids, nil
}

func (e *Exclusion) has(f *Function) bool {
	ids := [...]uint16{f.Vendor, f.Device, f.SubVendor, f.SubDevice}
	return slices.Contains(e.addresses, f.Address) || slices.ContainsFunc(e.ids, func(want []uint16) bool {
		return slices.Equal(want, ids[:len(want)])
	})
}

// Exclude marks the NICs that e names by address or ids, and their virtual functions. They are
// not eligible then.
func (inv *Inventory) Exclude(e Exclusion) {
	for f := range inv.All() {
		if f.KnownNIC() == nil {
			continue
		}
		physical := inv.Physical(f)
		if e.has(f) || physical != nil && e.has(physical) {
			f.Excluded = true
			f.rule(LeftOut)
		}
	}
}
