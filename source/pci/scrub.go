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
// number or a piece of the VPD, and nothing that ReadACS looks at. at gives what is
// known from an offset on.
func ScrubConfig(at func(offset int64) []byte) {
	const serialNumber, vitalProductData = 0x0003, 0x03
	const first, legacyStart = 0x34, 0x40
	legacy := []int64{extendedStart} // behind all of them
	if head := at(0); len(head) > first {
		for next := int64(head[first]) &^ 3; next >= legacyStart && len(legacy) < 48; {
			b := at(next)
			if len(b) < 2 {
				break
			}
			legacy = append(legacy, next)
			next = int64(b[1]) &^ 3
		}
	}
	for _, start := range legacy[1:] {
		if b := at(start); b[0] == vitalProductData {
			clearRegisters(b, 2, 8, start, legacy)
		}
	}
	var extended []int64
	for next := int64(extendedStart); next >= extendedStart && len(extended) < (extendedEnd-extendedStart)/8; {
		b := at(next)
		if len(b) < 4 {
			break
		}
		extended = append(extended, next)
		next = (int64(b[2])>>4 | int64(b[3])<<4) &^ 3
	}
	for _, start := range extended {
		if b := at(start); uint16(b[0])|uint16(b[1])<<8 == serialNumber {
			clearRegisters(b, 4, 12, start, extended)
		}
	}
}

// clearRegisters clears those of the capability that begins at start, as far as they
// are known and no other capability begins.
func clearRegisters(b []byte, from, to, start int64, starts []int64) {
	to = min(to, int64(len(b)))
	for _, other := range starts {
		if other > start {
			to = min(to, other-start)
		}
	}
	if from < to {
		clear(b[from:to])
	}
}
