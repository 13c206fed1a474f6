package pci

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"strconv"
	"strings"

	"gdr-features/host"
	"gdr-features/tristate"
)

// cardOf returns the card's own end of the link of a GPU or NIC (Slot); nil for others and for virtual
// functions, which have no link of their own. Where a GPU shares memory with its CPU, it is any
// function of a family itself: there NCCL uses GPUDirect RDMA with the fastest NICs alone
// (topology/nccl).
func (s *scanner) cardOf(f *Function) *Function {
	switch {
	case s.coherent && f.classified():
		return f
	case f.GPU == nil && f.NIC == nil || f.PhysFn != nil:
		return nil
	}
	card, _ := s.inv.Slot(f)
	return card
}

// links reads the links of cards and of the bridges above them, as far as they were not read. Of the
// port that a card is plugged into, what its link can do counts: what it does, the card shows.
func (s *scanner) links() {
	var ports []*Function
	for f := range s.inv.All() {
		card := s.cardOf(f)
		if card == nil {
			continue
		}
		s.link(card, true)
		slot, _ := s.inv.Slot(f)
		port := s.inv.Port(card)
		for _, above := range card.Bridges {
			switch bridge := s.inv.Find(above); {
			case bridge == nil:
			case bridge == port && bridge != slot:
				ports = append(ports, bridge)
			default:
				s.link(bridge, true)
			}
		}
	}
	for _, port := range ports {
		s.link(port, false)
	}
}

// link reads the link of a function, the whole of it or what it can do, and notes once what could
// not be read.
func (s *scanner) link(f *Function, whole bool) {
	if _, read := s.linked[f.Address]; !read {
		dir := s.fs.In(s.dir(f))
		defer dir.Close()
		s.readLink(dir, f, whole)
	}
	unread := s.linked[f.Address]
	s.linked[f.Address] = linkErrors{}
	err := unread.most
	if whole {
		err = cmp.Or(unread.now, err)
	}
	s.unread(err)
	s.inv.AnyLinkUnread = s.inv.AnyLinkUnread || err != nil
	if l := f.link(); s.coherent && err != nil && (l.MaxSpeed == 0 || l.MaxWidth == 0) {
		s.inv.LinksUnread = true
	}
}

// linkErrors are why a link's files could not be read: those of what it does now, and of the most that
// it can do. Missing files are none.
type linkErrors struct{ now, most error }

// readLink reads the link of a function, in whose directory dir is. Function.Link stays nil where it
// has none, as integrated endpoints have not, or none that can be read.
func (s *scanner) readLink(dir *host.FS, f *Function, whole bool) {
	var l Link
	var unread linkErrors
	base := s.dir(f) + "/"
	line := func(file string, why *error) string {
		text, err := dir.Line(base + file)
		if err == nil {
			f.Link = &l
		} else if *why == nil && !host.Absent(err) {
			*why = err
		}
		return text
	}
	if whole {
		l.Speed, l.Width = parseSpeed(line(LinkSpeedFile, &unread.now)), parseWidth(line(LinkWidthFile, &unread.now))
	}
	l.MaxSpeed, l.MaxWidth = parseSpeed(line(MaxLinkSpeedFile, &unread.most)), parseWidth(line(MaxLinkWidthFile, &unread.most))
	s.linked[f.Address] = unread
}

// parseSpeed reads "32.0 GT/s PCIe" or the older "16 GT/s"; 0 for "Unknown" and
// anything else that is not the speed of a link.
func parseSpeed(text string) float64 {
	number, rest, ok := strings.Cut(text, " ")
	if !ok || !strings.HasPrefix(rest, "GT/s") {
		return 0
	}
	speed, err := strconv.ParseFloat(number, 64)
	if sane := speed >= 0 && speed <= 1024; err != nil || !sane { // NaN is not
		return 0
	}
	return speed
}

// parseWidth reads a number of lanes; virtual functions show 0 or 255.
func parseWidth(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 32 {
		return 0
	}
	return n
}

// ACS are the access control services of a bridge (PCI Express Base
// Specification, extended capability 000d). The zero value is a function
// without that capability.
type ACS struct {
	Present bool
	Control uint16 // the ACS control register
}

// ACS control bits that send peer to peer traffic up instead of across. The
// kernel takes the same three (drivers/pci/p2pdma.c, pci_bridge_has_acs_redir).
var acsRedirects = [...]struct {
	mask uint16
	name string // as lspci has it
}{{1 << 2, "ReqRedir"}, {1 << 3, "CmpltRedir"}, {1 << 5, "EgressCtrl"}}

// Redirect reports whether peer to peer traffic is sent towards the root.
func (a *ACS) Redirect() bool { return len(a.Redirects()) > 0 }

// Redirects names the bits that do so, as lspci does.
func (a *ACS) Redirects() []string {
	var names []string
	for _, bit := range acsRedirects {
		if a.Control&bit.mask != 0 {
			names = append(names, bit.name)
		}
	}
	return names
}

// ReadACS walks the extended capabilities in config. It gives nil when they
// cannot be read: an unprivileged reader gets the first 64 bytes only.
func ReadACS(fs *host.FS, a Address) *ACS {
	config, err := fs.Open(a.dir() + "/" + ConfigFile)
	if err != nil {
		return nil
	}
	defer config.Close()
	return walkACS(config.ReadAt)
}

// ReadATS reports whether a function translates addresses by itself (Address Translation
// Services, PCI Express Base Specification, extended capability 000f): False where it lacks the
// capability or the bit Enable is clear, Unknown where config cannot be read that far.
func ReadATS(fs *host.FS, a Address) tristate.State {
	config, err := fs.Open(a.dir() + "/" + ConfigFile)
	if err != nil {
		return tristate.Unknown
	}
	defer config.Close()
	return walkATS(config.ReadAt)
}

// Configuration space: where the extended one begins and ends, and the ids.
const (
	extendedStart = 0x100
	extendedEnd   = 0x1000
	acsCapability = 0x000d
	atsCapability = 0x000f
)

// OnlyServices returns a configuration space up to the last byte that ReadACS and ReadATS read
// of it, with zeros for the bytes that they do not read: other capabilities hold serial numbers.
func OnlyServices(config []byte) []byte {
	kept, end := make([]byte, len(config)), 0
	readAt := func(buf []byte, offset int64) (int, error) {
		from := min(int(offset), len(config))
		n := copy(buf, config[from:])
		end = max(end, from+copy(kept[from:], buf[:n]))
		return n, io.EOF
	}
	_, _ = walkACS(readAt), walkATS(readAt)
	return kept[:end]
}

// readAt is a function as of io.ReaderAt.
type readAt = func([]byte, int64) (int, error)

func walkACS(read readAt) *ACS {
	found, control := capability(read, acsCapability)
	if found == tristate.Unknown {
		return nil
	}
	return &ACS{Present: found == tristate.True, Control: control}
}

func walkATS(read readAt) tristate.State {
	const enable = 1 << 15 // include/uapi/linux/pci_regs.h, PCI_ATS_CTRL_ENABLE
	found, control := capability(read, atsCapability)
	if found != tristate.True {
		return found
	}
	return tristate.Of(control&enable != 0)
}

// capability looks for an extended capability and reads its control register, which ACS and ATS
// have at the same place. It reads no more than it needs. Unknown: it cannot be read.
func capability(read readAt, wanted uint16) (found tristate.State, value uint16) {
	var head [4]byte
	for offset, steps := extendedStart, 0; ; steps++ {
		if n, err := read(head[:], int64(offset)); n < len(head) {
			if offset == extendedStart && errors.Is(err, io.EOF) && n == 0 && conventional(read) {
				return tristate.False, 0
			}
			return tristate.Unknown, 0
		}
		header := binary.LittleEndian.Uint32(head[:])
		id, next := uint16(header), int(header>>20)&^3 //nolint:gosec // the lower half
		switch {
		case steps > (extendedEnd-extendedStart)/8:
			return tristate.Unknown, 0 // a circle
		case id == 0xffff:
			return tristate.Unknown, 0 // no answer from the device
		case id == 0 && next == 0:
			return tristate.False, 0 // no extended capabilities
		case id == wanted:
			const control = 6
			if n, _ := read(head[:2], int64(offset)+control); n < 2 {
				return tristate.Unknown, 0
			}
			return tristate.True, binary.LittleEndian.Uint16(head[:])
		case next == 0:
			return tristate.False, 0
		case next < extendedStart:
			return tristate.Unknown, 0 // garbage
		}
		offset = next
	}
}

// conventional tells a function of conventional PCI, whose configuration space
// of 256 bytes can be read in full, from one whose reader may not see more and from
// one of PCI Express whose extended space cannot be reached.
func conventional(readAt readAt) bool {
	const status, capabilities, first, express = 0x06, 1 << 4, 0x34, 0x10
	var b [2]byte
	read := func(offset int) bool {
		n, _ := readAt(b[:], int64(offset))
		return n == len(b)
	}
	if !read(extendedStart-len(b)) || !read(status) {
		return false
	}
	if b[0]&capabilities == 0 {
		return true
	}
	if !read(first) {
		return false
	}
	for range extendedStart / 4 {
		next := int(b[0]) &^ 3
		if next < 0x40 {
			return true
		}
		if !read(next) || b[0] == express {
			return false
		}
		b[0] = b[1]
	}
	return false // a circle
}
