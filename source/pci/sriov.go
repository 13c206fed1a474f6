package pci

import (
	"fmt"
	"slices"
	"strconv"

	"gdr-features/host"
)

// Files of a physical function that can have virtual ones. The kernel shows them for no other.
const (
	totalVFsFile = "sriov_totalvfs"
	numVFsFile   = "sriov_numvfs"
	offsetFile   = "sriov_offset"
	strideFile   = "sriov_stride"
)

// virtual finds GPUs and NICs of which it is not known whether they are virtual functions of
// another that is listed. The link physfn leads nowhere or cannot be read; or it is not there yet
// or no longer: the kernel makes it after a virtual function's directory and removes it before,
// for seconds where there are many (drivers/pci/iov.c, pci_iov_add_virtfn and
// pci_iov_remove_virtfn). A physical function is at the same place as its virtual ones, so more
// is read only of functions without the link that are beside one another.
func (s *scanner) virtual() {
	for _, a := range s.noPhysFn {
		f := s.inv.Find(a)
		beside := func(g Function) bool { return g.Address != a && f.beside(&g) }
		if slices.ContainsFunc(s.inv.Functions, beside) {
			s.mayBeVirtual(f)
		}
	}
	var whole []*Function
	for f := range s.inv.All() {
		switch {
		case f.Unidentified() || f.GPU == nil && f.NIC == nil:
		case f.PhysFn == nil:
			whole = append(whole, f)
		case s.inv.Find(*f.PhysFn) == nil:
			s.mayBeVirtual(f)
			s.unread(fmt.Errorf("/%s/physfn: %v is not listed", f.Address.dir(), f.PhysFn))
		}
	}
	s.unlinked(whole)
}

// unlinked finds functions that are without the link for a while, among those right below one port.
func (s *scanner) unlinked(whole []*Function) {
	physical := map[*Function]bool{}
	isPhysical := func(f *Function) bool {
		if _, known := physical[f]; !known {
			_, err := s.fs.Line(f.Address.dir() + "/" + totalVFsFile)
			physical[f] = !host.Absent(err)
		}
		return physical[f]
	}
	type place struct {
		root string
		port *Function
	}
	at, of := map[place][]*Function{}, make([]place, len(whole))
	for i, f := range whole {
		of[i] = place{f.RootBus, s.inv.Port(f)}
		at[of[i]] = append(at[of[i]], f)
	}
	for i, f := range whole {
		for _, pf := range at[of[i]] {
			if f != pf && f.beside(pf) && !isPhysical(f) && isPhysical(pf) && s.mayHave(pf, f) {
				s.mayBeVirtual(f)
				s.unread(fmt.Errorf("/%s: it may be a virtual function of %v, without physfn",
					f.Address.dir(), pf.Address))
				break
			}
		}
	}
}

// mayBeVirtual marks a GPU or NIC that does not count as long as it is not known to be a whole one.
func (s *scanner) mayBeVirtual(f *Function) {
	if f.GPU != nil || f.NIC != nil {
		f.Eligible = MayBeVirtual
	}
}

// beside reports whether two functions are at the same place, and of the same vendor.
func (f *Function) beside(g *Function) bool {
	return f.Vendor == g.Vendor && f.RootBus == g.RootBus && slices.Equal(f.Bridges, g.Bridges)
}

// mayHave reports whether f may be a virtual function of pf: by its address, or on old kernels,
// which do not tell those, if pf has more than are linked to it. sriov_numvfs is read on these
// alone: newer ones lock pf for it, and answer when all are made or removed (sriov_numvfs_show
// since commit 35ff867b7657).
func (s *scanner) mayHave(pf, f *Function) bool {
	read := func(file string) (int, error) {
		text, err := s.fs.Line(pf.Address.dir() + "/" + file)
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(text)
	}
	offset, err := read(offsetFile)
	stride, err2 := read(strideFile)
	total, err3 := read(totalVFsFile)
	if err == nil && err2 == nil && err3 == nil && offset > 0 {
		n := f.Address.routingID() - pf.Address.routingID() - offset
		return n == 0 || stride > 0 && n > 0 && n%stride == 0 && n/stride < total
	}
	number, err := read(numVFsFile)
	if err != nil {
		return !host.Absent(err)
	}
	for g := range s.inv.All() {
		if g.PhysFn != nil && *g.PhysFn == pf.Address {
			number--
		}
	}
	return number > 0
}

// routingID is the address within its domain (kernel: pci_dev_id).
func (a Address) routingID() int { return int(a.Bus)<<8 | int(a.Device)<<3 | int(a.Function) }
