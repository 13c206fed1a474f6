package pci

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

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

// LastAddress returns the last address in a path, that of the function which a device belongs
// to, and the path below it; nil for none.
func LastAddress(path string) (a *Address, below string) {
	parts := strings.Split(path, "/")
	for i, part := range slices.Backward(parts) {
		if a, ok := parseAddress(part); ok {
			return &a, strings.Join(parts[i+1:], "/")
		}
	}
	return nil, ""
}

// String is the address as sysfs spells it: lower case, the domain in full.
func (a Address) String() string {
	text := make([]byte, 0, len("00000000:00:00.0"))
	text = appendHex(text, a.Domain, max(4, (bits.Len32(a.Domain)+3)/4))
	text = appendHex(append(text, ':'), uint32(a.Bus), 2)
	text = appendHex(append(text, ':'), uint32(a.Device), 2)
	return string(appendHex(append(text, '.'), uint32(a.Function), 1))
}

// appendHex appends the last digits of n.
func appendHex(text []byte, n uint32, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		text = append(text, "0123456789abcdef"[n>>shift&0xf])
	}
	return text
}

// MarshalText implements encoding.TextMarshaler with the text of String.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Compare orders addresses by domain, bus, device and function.
func (a Address) Compare(b Address) int { return cmp.Compare(a.number(), b.number()) }

func (a Address) number() uint64 {
	return uint64(a.Domain)<<24 | uint64(a.Bus)<<16 | uint64(a.Device)<<8 | uint64(a.Function)
}

// parseRootBus accepts the name of a root bus in a device path: "pciDDDD:BB".
func parseRootBus(s string) bool {
	bus, ok := strings.CutPrefix(s, "pci")
	if ok {
		_, ok = parseAddress(bus + ":00.0")
	}
	return ok
}

// hex reads up to eight hexadecimal digits and nothing else.
func hex(s string) (uint32, bool) {
	n, err := strconv.ParseUint(s, 16, 32)
	return uint32(n), err == nil && len(s) <= 8
}
