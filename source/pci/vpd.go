package pci

import (
	"cmp"
	"strings"

	"gdr-features/host"
)

// VPD are the vital product data of a function (PCI Local Bus Specification
// 3.0, appendix I).
type VPD struct {
	// Product is the identifier string.
	Product string
	// Fields are the keywords of the read-only and read-write sections by their
	// two letters: PN part number, SN serial number, V* vendor's own.
	Fields map[string]string
}

const vpdFile = "vpd"

// maxVPD is the largest VPD there can be: 15 bits of address.
const maxVPD = 1 << 15

// ReadVPD reads the file vpd, which the kernel shows to root only. It gives nil
// when it is missing, unreadable or garbage.
func ReadVPD(fs *host.FS, a Address) *VPD {
	data, err := fs.Bytes(a.dir()+"/"+vpdFile, maxVPD)
	if err != nil {
		return nil
	}
	return ParseVPD(data)
}

// Resource tags of the VPD.
const (
	vpdIdentifier = 0x82
	vpdRead       = 0x90
	vpdWrite      = 0x91
	vpdEnd        = 0x78
	vpdLarge      = 0x80 // set in tags with two bytes of length
)

// ParseVPD takes the resources apart. Data that end before their end tag, as some
// devices' do, are used as far as they go. It returns nil for data that do not begin with a
// tag, and for those with a tag that is longer than they are.
func ParseVPD(data []byte) *VPD {
	if len(data) == 0 || data[0] != vpdIdentifier && data[0] != vpdRead {
		return nil
	}
	vpd := &VPD{Fields: map[string]string{}}
	for len(data) > 0 && data[0] != vpdEnd {
		tag, head, size := data[0], 1, int(data[0]&7)
		if tag&vpdLarge != 0 {
			if len(data) < 3 {
				break
			}
			head, size = 3, int(data[1])|int(data[2])<<8
		}
		if len(data) < head+size {
			return nil
		}
		switch body := data[head : head+size]; tag {
		case vpdIdentifier:
			vpd.Product = ascii(body)
		case vpdRead, vpdWrite:
			vpd.keywords(body)
		}
		data = data[head+size:]
	}
	return vpd
}

// keywords reads entries of two letters, a length and a value. Bytes left over at the end
// have no meaning.
func (v *VPD) keywords(body []byte) {
	for len(body) >= 3 && len(body) >= 3+int(body[2]) {
		end := 3 + int(body[2])
		if key := string(body[:2]); key != "RV" && key != "RW" { // checksum and free space are not text
			v.Fields[key] = ascii(body[3:end])
		}
		body = body[end:]
	}
}

func ascii(raw []byte) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, string(raw))
	return strings.TrimSpace(clean)
}

// UUID returns the identity that a NIC shares with its data-direct function,
// from the keyword VU or V3; "" for none, also of a nil VPD.
func (v *VPD) UUID() string {
	if v == nil {
		return ""
	}
	return cmp.Or(v.Fields["VU"], v.Fields["V3"])
}
