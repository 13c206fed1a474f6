package machine

import (
	"slices"
	"strconv"

	"gdr-features/source/pci"
)

// sriov writes what a function shows of its virtual ones; nothing for a function without. Their
// addresses are offset, offset+stride and so on from its own.
func (w *writer) sriov(f *Function, dir string) {
	var from []int
	for i := range w.m.Functions {
		if v := &w.m.Functions[i]; v.Attrs["physfn"] == f.Address {
			from = append(from, routingID(v.Address)-routingID(f.Address))
		}
	}
	if len(from) == 0 {
		return
	}
	offset, stride := slices.Min(from), 0
	for _, n := range from {
		stride = divisor(n-offset, stride)
	}
	total := 1
	if stride > 0 {
		total += (slices.Max(from) - offset) / stride
	}
	for file, n := range map[string]int{"numvfs": len(from), "totalvfs": total, "offset": offset, "stride": stride} {
		w.file(dir+"/sriov_"+file, strconv.Itoa(n)+"\n")
	}
}

// divisor is the greatest one that two numbers have in common.
func divisor(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// routingID is an address within its domain; 0 for what is none.
func routingID(address string) int {
	a, _ := pci.ParseAddress(address)
	return int(a.Bus)<<8 | int(a.Device)<<3 | int(a.Function)
}
