package pci

import (
	"slices"
	"strings"
)

// ScrubVPD gives vital product data that tell the same about the product and
// nothing about the single board. Each value that may identify it is handed to
// replace, which gives another of the same length. The identifier string, part
// number, engineering change and manufacturer stay but for what clean overwrites in
// them, and so does the mark of an adapter that manages NVLink switches. What
// ParseVPD refuses stays refused, and nothing else of it is left.
func ScrubVPD(data []byte, replace func(text string) string, clean func(text []byte)) []byte {
	scrubbed := slices.Clone(data)
	used, checksum := 0, -1
	err := walkVPD(scrubbed, func(tag byte, key string, value []byte) {
		at := cap(scrubbed) - cap(value) // value lies in scrubbed
		used = at + len(value)
		switch key {
		case "":
			if tag == vpdIdentifier {
				clean(value)
				return
			}
			for i := range value {
				value[i] = 0xff // zeros would be keywords
			}
		case "PN", "EC", "MN":
			clean(value)
		case "RV", "RW":
			clear(value)
			if key == "RV" && len(value) > 0 {
				checksum = at
			}
		default:
			scrubValue(value, replace)
		}
	})
	if err != nil {
		return []byte{0}
	}
	if used < len(scrubbed) && scrubbed[used] == vpdEnd {
		scrubbed = scrubbed[:used+1]
	}
	if checksum >= 0 { // all bytes up to it add up to zero
		for _, b := range scrubbed[:checksum] {
			scrubbed[checksum] -= b
		}
	}
	return scrubbed
}

func scrubValue(value []byte, replace func(text string) string) {
	text := ascii(value)
	clear(value)
	switch {
	case text == "":
	case strings.Contains(text, managementMark):
		copy(value, managementMark)
	default:
		copy(value, replace(text))
	}
}

// ScrubConfig overwrites, in configuration space, the registers that hold a serial
// number or a piece of the VPD. at gives what is known from an offset on.
func ScrubConfig(at func(offset int64) []byte) {
	const serialNumber, vitalProductData = 0x0003, 0x03
	if head := at(0); len(head) > 0x34 {
		for next, steps := int64(head[0x34]), 0; next >= 0x40 && steps < 48; steps++ {
			b := at(next &^ 3)
			if len(b) < 2 {
				break
			}
			if b[0] == vitalProductData {
				clear(b[2:min(8, len(b))])
			}
			next = int64(b[1])
		}
	}
	for next, steps := int64(extendedStart), 0; next >= extendedStart && steps < (extendedEnd-extendedStart)/8; steps++ {
		b := at(next)
		if len(b) < 4 {
			break
		}
		if id := uint16(b[0]) | uint16(b[1])<<8; id == serialNumber {
			clear(b[4:min(12, len(b))])
		}
		next = (int64(b[2])>>4 | int64(b[3])<<4) &^ 3
	}
}
