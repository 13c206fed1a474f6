package pci

import (
	_ "embed"
	"fmt"
	"sort"
	"strings"
)

// idTable has a line for each product, "vvvv:dddd name", sorted; hack/genids writes it.
//
//go:embed ids.txt
var idTable string

func productName(vendor, device uint16) string {
	ids := fmt.Sprintf("%04x:%04x ", vendor, device)
	at := sort.Search(len(idTable), func(i int) bool { return idLine(i) >= ids })
	if name, ok := strings.CutPrefix(idLine(at), ids); ok {
		return name
	}
	return ""
}

// idLine returns the line of idTable that its byte i is in.
func idLine(i int) string {
	line, _, _ := strings.Cut(idTable[strings.LastIndexByte(idTable[:i], '\n')+1:], "\n")
	return line
}
