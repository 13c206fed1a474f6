package pci

import (
	"errors"
	"fmt"
	"strings"

	"gdr-features/internal/host"
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

// maxVPD is the largest VPD there can be: 15 bits of address.
const maxVPD = 1 << 15

// ReadVPD reads the file vpd, which the kernel shows to root only. It gives nil
// when it is missing, unreadable or garbage.
func ReadVPD(fs *host.FS, a Address) *VPD {
	data, err := fs.Bytes(devicesDir+"/"+a.String()+"/vpd", maxVPD)
	if err != nil {
		return nil
	}
	vpd, err := ParseVPD(data)
	if err != nil {
		return nil
	}
	return vpd
}

// Resource tags of the VPD.
const (
	vpdIdentifier = 0x82
	vpdRead       = 0x90
	vpdWrite      = 0x91
	vpdEnd        = 0x78
	vpdLarge      = 0x80 // set in tags with two bytes of length
)

var errVPD = errors.New("not vital product data")

// ParseVPD takes the resources apart. Data that end before their end tag, as
// some devices' do, count as far as they go; data that do not begin with a tag
// are an error.
func ParseVPD(data []byte) (*VPD, error) {
	if len(data) == 0 || data[0] != vpdIdentifier && data[0] != vpdRead {
		return nil, errVPD
	}
	vpd := &VPD{Fields: map[string]string{}}
	for len(data) > 0 && data[0] != vpdEnd {
		tag, head, size := data[0], 1, int(data[0]&7)
		if tag&vpdLarge != 0 {
			if len(data) < 3 {
				return vpd, nil
			}
			head, size = 3, int(data[1])|int(data[2])<<8
		}
		if len(data) < head+size {
			return nil, fmt.Errorf("%w: tag %#x is longer than the data", errVPD, tag)
		}
		body := data[head : head+size]
		switch tag {
		case vpdIdentifier:
			vpd.Product = printable(body)
		case vpdRead, vpdWrite:
			vpd.keywords(body)
		}
		data = data[head+size:]
	}
	return vpd, nil
}

// keywords reads entries of two letters, a length and a value.
func (v *VPD) keywords(body []byte) {
	for len(body) >= 3 {
		size := int(body[2])
		if len(body) < 3+size {
			return
		}
		// RV and RW are checksum and free space, not text.
		if key := string(body[:2]); key != "RV" && key != "RW" {
			v.Fields[key] = printable(body[3 : 3+size])
		}
		body = body[3+size:]
	}
}

func printable(raw []byte) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, string(raw))
	return strings.TrimSpace(clean)
}

// UUID gives the identity that an adapter shares with its data-direct function,
// from the keyword VU or V3; "" for none, also of a nil VPD.
func (v *VPD) UUID() string {
	if v == nil {
		return ""
	}
	if vu := v.Fields["VU"]; vu != "" {
		return vu
	}
	return v.Fields["V3"]
}
