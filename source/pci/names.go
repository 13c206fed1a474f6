package pci

import (
	_ "embed"
	"strings"
)

// idTable is one line a product, "vvvv:dddd name", sorted; see genids.
//
//go:embed ids.txt
var idTable string

// productName looks the ids up by bisection over the text itself: no table is
// built at start.
func productName(vendor, device uint16) string {
	key := string(appendHex4(append(appendHex4(make([]byte, 0, 9), vendor), ':'), device))
	lo, hi := 0, len(idTable)
	for lo < hi {
		mid := (lo + hi) / 2
		start := strings.LastIndexByte(idTable[:mid], '\n') + 1
		end := len(idTable)
		if i := strings.IndexByte(idTable[start:], '\n'); i >= 0 {
			end = start + i
		}
		line := idTable[start:end]
		if name, ok := strings.CutPrefix(line, key+" "); ok {
			return name
		}
		if line < key {
			lo = end + 1
		} else {
			hi = start
		}
	}
	return ""
}

func appendHex4(to []byte, n uint16) []byte {
	const digits = "0123456789abcdef"
	return append(to, digits[n>>12], digits[n>>8&15], digits[n>>4&15], digits[n&15])
}
