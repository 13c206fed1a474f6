package pci

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"gdr-features/host"
)

// links reads the links of GPU and NIC cards and of the ports they are plugged into.
// Virtual functions have none of their own. Everything has read them already.
func (s *scanner) links() {
	if s.detail != Advised {
		return
	}
	for i := range s.inv.Functions {
		f := &s.inv.Functions[i]
		if kind := f.Kind(); kind != GPU && kind != NIC || f.PhysFn != nil {
			continue
		}
		card, port := s.inv.Slot(f)
		for _, end := range [...]*Function{card, port} {
			if end != nil && end.Link == nil {
				end.Link = readLink(s.fs, devicesDir+"/"+end.Address.String()+"/")
			}
		}
	}
}

// extras reads link, ACS and VPD. What the reader may not see stays nil and is
// no problem: it is the normal view of an unprivileged process.
func (s *scanner) extras(f *Function, base string) {
	f.Link = readLink(s.fs, base)
	f.ACS = ReadACS(s.fs, f.Address)
	f.VPD = ReadVPD(s.fs, f.Address)
}

// readLink reads the four link files; nil when the function has no link, as
// integrated endpoints have not.
func readLink(fs *host.FS, base string) *Link {
	var l Link
	read := 0
	for file, to := range map[string]*float64{"current_link_speed": &l.Speed, "max_link_speed": &l.MaxSpeed} {
		if text, err := fs.Line(base + file); err == nil {
			read++
			*to = parseSpeed(text)
		}
	}
	for file, to := range map[string]*int{"current_link_width": &l.Width, "max_link_width": &l.MaxWidth} {
		if text, err := fs.Line(base + file); err == nil {
			read++
			*to = parseWidth(text)
		}
	}
	if read == 0 {
		return nil
	}
	return &l
}

// parseSpeed reads "32.0 GT/s PCIe" or the older "16 GT/s"; 0 for "Unknown" and
// anything that is no speed a link can have.
func parseSpeed(text string) float64 {
	number, rest, ok := strings.Cut(text, " ")
	if !ok || !strings.HasPrefix(rest, "GT/s") {
		return 0
	}
	speed, err := strconv.ParseFloat(number, 64)
	if err != nil || speed < 0 || speed > 1024 {
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
const (
	acsRequestRedirect    = 1 << 2
	acsCompletionRedirect = 1 << 3
	acsEgressControl      = 1 << 5
)

// Redirect tells whether peer to peer traffic is sent towards the root.
func (a *ACS) Redirect() bool {
	return a.Control&(acsRequestRedirect|acsCompletionRedirect|acsEgressControl) != 0
}

// Redirects names the bits that do so, as lspci does.
func (a *ACS) Redirects() []string {
	var names []string
	for _, bit := range [...]struct {
		mask uint16
		name string
	}{{acsRequestRedirect, "ReqRedir"}, {acsCompletionRedirect, "CmpltRedir"}, {acsEgressControl, "EgressCtrl"}} {
		if a.Control&bit.mask != 0 {
			names = append(names, bit.name)
		}
	}
	return names
}

// ReadACS walks the extended capabilities in config. It gives nil when they
// cannot be read: an unprivileged reader gets the first 64 bytes only.
func ReadACS(fs *host.FS, a Address) *ACS {
	config, err := fs.Open(devicesDir + "/" + a.String() + "/config")
	if err != nil {
		return nil
	}
	defer config.Close()
	return walkACS(func(buf []byte, offset int64) (int, error) {
		n, err := config.ReadAt(buf, offset)
		if errors.Is(err, io.EOF) {
			err = nil // less than asked for
		}
		return n, err
	})
}

// Configuration space: where the extended one begins and ends, and the id.
const (
	extendedStart = 0x100
	extendedEnd   = 0x1000
	acsCapability = 0x000d
)

func walkACS(readAt func([]byte, int64) (int, error)) *ACS {
	var head [8]byte
	for offset, steps := extendedStart, 0; ; steps++ {
		n, err := readAt(head[:], int64(offset))
		if err != nil || n < 4 {
			if offset == extendedStart && err == nil && n == 0 && conventional(readAt) {
				return &ACS{}
			}
			return nil
		}
		id := uint16(head[0]) | uint16(head[1])<<8
		next := (int(head[2])>>4 | int(head[3])<<4) &^ 3
		switch {
		case steps > (extendedEnd-extendedStart)/8:
			return nil // a circle
		case id == 0xffff:
			return nil // no answer from the device
		case id == 0 && next == 0:
			return &ACS{} // no extended capabilities
		case id == acsCapability && n < len(head):
			return nil
		case id == acsCapability:
			return &ACS{Present: true, Control: uint16(head[6]) | uint16(head[7])<<8}
		case next == 0:
			return &ACS{}
		case next < extendedStart:
			return nil // garbage
		}
		offset = next
	}
}

// conventional tells a function of conventional PCI, whose configuration space
// of 256 bytes was read in full, from one whose reader may not see more and from
// one of PCI Express whose extended space cannot be reached.
func conventional(readAt func([]byte, int64) (int, error)) bool {
	const status, capabilities, first, express = 0x06, 1 << 4, 0x34, 0x10
	var config [extendedStart]byte
	if n, err := readAt(config[:], 0); err != nil || n < len(config) {
		return false
	}
	if config[status]&capabilities == 0 {
		return true
	}
	next := int(config[first])
	for range len(config) / 4 {
		if next &^= 3; next < 0x40 {
			return true
		}
		if config[next] == express {
			return false
		}
		next = int(config[next+1])
	}
	return false // a circle
}
