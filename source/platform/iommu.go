package platform

import (
	"fmt"
	"strconv"

	"gdr-features/host"
	"gdr-features/internal/sanitize"
	"gdr-features/source"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// Groups is the directory of all IOMMU groups (kernel: drivers/iommu/iommu.c makes it at boot).
const Groups = "/sys/kernel/iommu_groups"

// GroupFile is the file that an entry of IOMMU.Types is from.
func GroupFile(group int) string { return Groups + "/" + strconv.Itoa(group) + "/type" }

// FactIOMMU is what IOMMU.Files were read for.
const FactIOMMU source.Fact = "iommu"

// IOMMU are the IOMMU groups of a machine.
type IOMMU struct {
	// Groups: some device is in a group. False only where the directory Groups is empty, or
	// missing from a /sys/kernel that has others, and /sys/class/iommu lists no IOMMU. Unknown
	// also where it was not read.
	Groups tristate.State
	// Types of the groups asked for, by number: "identity", "DMA", "DMA-FQ", ...; "" for
	// unreadable.
	Types map[int]string
	// Files are those that were read, or looked for.
	Files []string
	// Problems are the facts that could not be read, one error each.
	Problems []error
}

// readIOMMU reads the types of the groups of GPUs and NICs; nothing of a machine without any. Whether
// there are any groups is read where these are in none, or where list is set.
func readIOMMU(fs *host.FS, functions *pci.Inventory, list bool) IOMMU {
	m := IOMMU{Types: map[int]string{}}
	found, missing := false, false
	groups := fs.In(Groups[1:])
	defer groups.Close()
	for f := range functions.All() {
		if f.GPU == nil && f.NIC == nil {
			continue
		}
		found = true
		n := f.IOMMUGroup
		if _, done := m.Types[n]; done || n < 0 {
			continue
		}
		// Kernels before 5.11 have no such file for any group: one problem.
		file := GroupFile(n)
		m.Files = append(m.Files, file)
		text, err := groups.Line(file[1:])
		if err != nil && (!missing || !host.Absent(err)) {
			m.Problems = append(m.Problems, err)
		}
		missing = missing || host.Absent(err)
		m.Types[n] = text
	}
	if len(m.Types) > 0 {
		m.Groups = tristate.True
	}
	if found && (len(m.Types) == 0 || list) {
		m.list(fs)
	}
	return m
}

// list reports whether the kernel has put any device into a group. A kernel that has other
// directories in /sys/kernel and no list was built without; where there is no /sys/kernel,
// nothing is known.
func (m *IOMMU) list(fs *host.FS) {
	const kernel, units = "/sys/kernel", "/sys/class/iommu" // the second: drivers/iommu/iommu-sysfs.c
	read := func(dir string) ([]string, error) {
		m.Files = append(m.Files, dir)
		return fs.Names(dir[1:])
	}
	m.Groups = tristate.Unknown
	names, err := read(Groups)
	if host.Absent(err) {
		if others, missing := read(kernel); missing == nil && len(others) > 0 {
			err = nil
		}
	}
	switch {
	case err != nil:
		m.Problems = append(m.Problems, err)
		return
	case len(names) > 0:
		m.Groups = tristate.True
		return
	}
	switch names, err := read(units); {
	case err != nil && !host.Absent(err):
		m.Problems = append(m.Problems, err)
	case len(names) > 0:
		m.Problems = append(m.Problems, fmt.Errorf("%s has %s, and %s is empty", units, sanitize.Terminal(names[0]), Groups))
	default:
		m.Groups = tristate.False
	}
}
