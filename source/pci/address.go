package pci

import (
	"fmt"

	"gdr-features/internal/sanitize"
)

// Address names one PCI function: domain:bus:device.function. Domains behind
// Intel VMD have more than 16 bits (10000:e1:00.0).
type Address struct {
	Domain                uint32
	Bus, Device, Function uint8
}

// ParseAddress reads "dddd:bb:dd.f" in hexadecimal, upper or lower case, with 4
// to 8 digits of domain. Anything else, white space included, is an error.
func ParseAddress(s string) (Address, error) {
	a, ok := parseAddress(s)
	if !ok {
		return Address{}, fmt.Errorf("%q is not a PCI address (dddd:bb:dd.f)", sanitize.Terminal(s))
	}
	return a, nil
}

func parseAddress(s string) (Address, bool) {
	n := len(s) - len(":bb:dd.f") // digits of the domain
	if n < 4 || n > 8 || s[n] != ':' || s[n+3] != ':' || s[n+6] != '.' {
		return Address{}, false
	}
	domain, ok0 := hex(s[:n])
	bus, ok1 := hex(s[n+1 : n+3])
	device, ok2 := hex(s[n+4 : n+6])
	function, ok3 := hex(s[n+7:])
	if !ok0 || !ok1 || !ok2 || !ok3 || device > 0x1f || function > 7 {
		return Address{}, false
	}
	//nolint:gosec // two digits, and the checks above
	return Address{Domain: domain, Bus: uint8(bus), Device: uint8(device), Function: uint8(function)}, true
}

// String is the address as sysfs spells it: lower case, the domain in full.
func (a Address) String() string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", a.Domain, a.Bus, a.Device, a.Function)
}

// MarshalText implements encoding.TextMarshaler with the text of String.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Compare orders addresses by domain, bus, device and function.
func (a Address) Compare(b Address) int {
	switch x, y := a.number(), b.number(); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func (a Address) number() uint64 {
	return uint64(a.Domain)<<24 | uint64(a.Bus)<<16 | uint64(a.Device)<<8 | uint64(a.Function)
}

// parseRootBus accepts the name of a root bus in a device path: "pciDDDD:BB".
func parseRootBus(s string) bool {
	if len(s) < len("pci0000:00") || s[:3] != "pci" || s[len(s)-3] != ':' {
		return false
	}
	domain := s[3 : len(s)-3]
	if len(domain) < 4 || len(domain) > 8 {
		return false
	}
	_, ok0 := hex(domain)
	_, ok1 := hex(s[len(s)-2:])
	return ok0 && ok1
}

// hex reads up to eight hexadecimal digits and nothing else.
func hex(s string) (uint32, bool) {
	if s == "" || len(s) > 8 {
		return 0, false
	}
	var n uint32
	for i := range len(s) {
		c := s[i]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | uint32(c)
	}
	return n, true
}
