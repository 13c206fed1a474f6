package pci

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"gdr-features/internal/sanitize"
)

// Memory is a GPU's memory as PCI reaches it.
type Memory struct {
	// Total is its size in bytes, from family.GPU.MemoryFile; 0 where there is none.
	Total uint64
	// BAR is the number of the BAR that it is reached through, and Visible that BAR's size
	// in bytes, from resource; 0 for one that has no address.
	BAR     int
	Visible uint64
	// Sizes are the sizes that the BAR can be given: bit n is 1 MiB << n (kernel:
	// Documentation/ABI/testing/sysfs-bus-pci, resource<N>_resize, since 6.1). 0 where that
	// file is missing. It is read where Visible is less than Total or Plenty.
	Sizes uint64
}

// Plenty is 1 GiB: enough for a BAR where the size of the memory is not known.
const Plenty = 1 << 30

// ResizeFile is the file that Sizes is from.
func (m *Memory) ResizeFile() string { return fmt.Sprintf("resource%d_resize", m.BAR) }

// Largest is the largest size that the BAR can be given, in bytes, and the number that is
// written to ResizeFile for it. 0 if that is not known.
func (m *Memory) Largest() (size uint64, number int) {
	number = bits.Len64(m.Sizes) - 1
	if number < 0 || number > 43 { // beyond the address space
		return 0, 0
	}
	return 1 << (20 + number), number
}

func (s *scanner) memory() {
	if !s.what.Advice {
		return
	}
	for f := range s.inv.All() {
		if f.GPU == nil || f.GPU.Integrated.Has(f.Device) || f.Coherent() {
			continue
		}
		base := f.Address.dir() + "/"
		var m Memory
		if file := f.GPU.MemoryFile; file != "" {
			var ok bool
			if m.Total, ok = s.number(base+file, 10); !ok {
				continue
			}
		}
		text, err := s.fs.Bytes(base+ResourceFile, maxResource)
		if err != nil {
			s.problem(err)
			continue
		}
		bars, err := parseBARs(string(text))
		if err != nil {
			s.problem(fmt.Errorf("/%s%s: %w", base, ResourceFile, err))
			continue
		}
		m.BAR, m.Visible = memoryBAR(bars, f.GPU.MemoryBAR)
		if m.Visible < max(m.Total, Plenty) {
			m.Sizes, _ = s.number(base+m.ResizeFile(), 16)
		}
		f.Memory = &m
	}
}

func (s *scanner) number(name string, base int) (uint64, bool) {
	text, err := s.fs.Line(name)
	if err != nil {
		s.problem(err)
		return 0, false
	}
	n, err := strconv.ParseUint(text, base, 64)
	if err != nil {
		s.problem(fmt.Errorf("/%s: %q is not a number", name, sanitize.Terminal(text)))
	}
	return n, err == nil
}

const (
	maxBARs     = 6       // of a function
	maxResource = 4 << 10 // the file has a line of 57 bytes for each and for up to 11 others
)

// parseBARs reads the sizes of the BARs from the file resource, 0 for one that has no
// address or is not in memory (kernel: drivers/pci/pci-sysfs.c, resource_show; flags from
// include/linux/ioport.h).
func parseBARs(text string) (sizes [maxBARs]uint64, err error) {
	const memory, unset = 0x200, 0x20000000 // IORESOURCE_MEM, IORESOURCE_UNSET
	lines := strings.SplitN(text, "\n", maxBARs+1)
	if len(lines) <= maxBARs {
		return sizes, fmt.Errorf("%d lines are too few", len(lines)-1)
	}
	for i := range maxBARs {
		var start, end, flags uint64
		if _, err := fmt.Sscanf(lines[i]+"\n", "0x%x 0x%x 0x%x\n", &start, &end, &flags); err != nil {
			return sizes, fmt.Errorf("%q is not a BAR", sanitize.Terminal(lines[i]))
		}
		if start != 0 && end > start && flags&memory != 0 && flags&unset == 0 {
			sizes[i] = end - start + 1
		}
	}
	return sizes, nil
}

// memoryBAR is the BAR after BAR 0 that the memory is reached through, counted among
// those with an address: 0 is BAR 0 itself.
func memoryBAR(sizes [maxBARs]uint64, nth int) (bar int, size uint64) {
	for bar, size := range sizes {
		if bar > 0 && size > 0 {
			nth--
		}
		if nth == 0 {
			return bar, size
		}
	}
	return 1, 0
}
