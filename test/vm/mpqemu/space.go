package mpqemu

import "encoding/binary"

// spaceSize is that of conventional PCI; the proxy device has no more.
const spaceSize = 256

// Where things are in the header of a function (PCI Local Bus Specification).
const (
	vendorAt     = 0x00
	deviceAt     = 0x02
	commandAt    = 0x04
	revisionAt   = 0x08 // then the class, three bytes
	cacheLineAt  = 0x0c
	headerTypeAt = 0x0e
	subVendorAt  = 0x2c
	subDeviceAt  = 0x2e
	interruptAt  = 0x3c
	manyFuncsBit = 0x80
)

// Function is the identity of a PCI function.
type Function struct {
	Vendor, Device       uint16
	SubVendor, SubDevice uint16
	Class                uint32 // three bytes, as in sysfs
	Several              bool   // it is function 0 of several
}

// Space is the configuration space of a function without memory, interrupts and
// capabilities. One goroutine may use it at a time.
type Space struct {
	fresh, now [spaceSize]byte
}

// writable are the bits that may change: enable bits, cache line size and the
// number of the interrupt line, which the firmware notes there.
var writable = map[uint32]byte{commandAt: 0x07, commandAt + 1: 0x05, cacheLineAt: 0xff, interruptAt: 0xff}

// NewSpace returns a function as it is after a reset.
func NewSpace(f Function) *Space {
	s := &Space{}
	put := binary.LittleEndian.PutUint16
	put(s.fresh[vendorAt:], f.Vendor)
	put(s.fresh[deviceAt:], f.Device)
	put(s.fresh[subVendorAt:], f.SubVendor)
	put(s.fresh[subDeviceAt:], f.SubDevice)
	binary.LittleEndian.PutUint32(s.fresh[revisionAt:], f.Class<<8)
	if f.Several {
		s.fresh[headerTypeAt] = manyFuncsBit
	}
	s.Reset()
	return s
}

// Reset forgets what was written.
func (s *Space) Reset() { s.now = s.fresh }

// Read returns up to four bytes of the space.
func (s *Space) Read(address uint32, length int32) uint32 {
	var word [4]byte
	copy(word[:length], s.now[address:])
	return binary.LittleEndian.Uint32(word[:])
}

// Write changes what may change of up to four bytes of the space.
func (s *Space) Write(address, value uint32, length int32) {
	var word [4]byte
	binary.LittleEndian.PutUint32(word[:], value)
	for i, b := range word[:length] {
		at := address + uint32(i)
		mask := writable[at]
		s.now[at] = s.now[at]&^mask | b&mask
	}
}
