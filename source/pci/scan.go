package pci

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gdr-features/host"
	"gdr-features/internal/sanitize"
	"gdr-features/source"
	"gdr-features/source/family"
)

// devicesDir is where the kernel lists every PCI function, as links into the
// device tree (Documentation/ABI/testing/sysfs-bus-pci).
const devicesDir = "sys/bus/pci/devices"

// Inventory is the PCI side of a machine.
type Inventory struct {
	// Functions are sorted by address.
	Functions []Function
	// NUMANodes is the number of entries /sys/devices/system/node/node<N>; None when they
	// cannot be read.
	NUMANodes int
	// OneCPUNode: one of those alone has CPUs. False where that is not known, or no GPU or NIC
	// without a node asks for it.
	OneCPUNode bool
	// Unplaced: some RDMA device may be that of a function that no table has. The devices could not
	// be listed, or one of them does not tell its function.
	Unplaced bool
	// SwitchLinksUnread: there are Function.SwitchLinks that could not be read.
	SwitchLinksUnread bool
	// LinksUnread: a GPU shares memory with its CPU, and the link of some GPU, NIC or bridge could
	// not be read, by which NCCL chooses among NICs there.
	LinksUnread bool
	// AnyLinkUnread: some file of a link is there, is judged, and could not be read.
	AnyLinkUnread bool
	// Problems are the facts that could not be read, one error each.
	Problems []error
}

// All are the functions, in place.
func (inv *Inventory) All() iter.Seq[*Function] {
	return func(yield func(*Function) bool) {
		for i := range inv.Functions {
			if !yield(&inv.Functions[i]) {
				return
			}
		}
	}
}

// OneNode reports whether all functions are in one NUMA node, also those that name none. A GPU's
// memory, which its driver may add as a node without CPUs, makes no difference.
func (inv *Inventory) OneNode() bool {
	return inv.NUMANodes == 0 || inv.NUMANodes == 1 || inv.OneCPUNode
}

// Find returns the function at an address, nil when there is none.
func (inv *Inventory) Find(a Address) *Function {
	i, ok := sort.Find(len(inv.Functions), func(i int) int { return a.Compare(inv.Functions[i].Address) })
	if !ok {
		return nil
	}
	return &inv.Functions[i]
}

// Scan reads the PCI functions: the ids and place of each, and of GPUs, NICs and data-direct
// functions what else Function has, with the links of their cards and of the bridges above them.
// Memory is for advice. With details all of it is read of every function, and ACS
// and VPD, which touch configuration space. The error tells that the bus itself cannot be read.
func Scan(fs *host.FS, table family.Table, what source.What) (Inventory, error) {
	s := scanner{fs: fs, table: table, what: what, bridges: map[string][]Address{}, linked: map[Address]linkErrors{}, odd: map[Address]string{}, noVPD: map[*Function]bool{}}
	links, err := fs.Links(devicesDir)
	if err != nil {
		return Inventory{}, fmt.Errorf("PCI bus: %w", err)
	}
	s.numaNodes()
	s.inv.Functions = make([]Function, 0, len(links))
	for _, link := range links {
		s.function(link)
	}
	slices.SortFunc(s.inv.Functions, func(a, b Function) int { return a.Address.Compare(b.Address) })
	s.coherent = slices.ContainsFunc(s.inv.Functions, func(f Function) bool { return f.Coherent() })
	for f := range s.inv.All() {
		if s.what.Details || f.classified() {
			s.attributes(f)
		}
	}
	s.knownAsBridges()
	s.unlisted()
	s.virtual()
	s.inheritNUMA()
	s.cpuNodes()
	s.switchLinks()
	s.links()
	s.memory()
	s.dataDirect()
	s.managementMarks()
	return s.inv, nil
}

type scanner struct {
	fs      *host.FS
	table   family.Table
	what    source.What
	inv     Inventory
	bridges map[string][]Address // by their path
	// coherent: a GPU shares memory with its CPU.
	coherent bool
	linked   map[Address]linkErrors // of functions whose link was read; empty once they are noted
	odd      map[Address]string     // directories with another name than the kernel gives
	noVPD    map[*Function]bool     // those whose directory has no VPD
	// noPhysFn are functions of which it is not known whether they have the link physfn.
	noPhysFn []Address
}

// problem notes err, unless the file is merely missing.
func (s *scanner) problem(err error) {
	if !host.Absent(err) {
		s.unread(err)
	}
}

// unread notes err, also when a file is missing.
func (s *scanner) unread(err error) {
	if err != nil {
		s.inv.Problems = append(s.inv.Problems, err)
	}
}

func (s *scanner) function(link host.Link) {
	name := link.Name
	address, err := ParseAddress(name)
	if err != nil {
		s.problem(fmt.Errorf("/%s: %w", devicesDir, err))
		return
	}
	if name != address.String() {
		s.odd[address] = devicesDir + "/" + name
	}
	f := Function{Address: address, NUMA: None, NearNUMA: None, RootNUMA: None, IOMMUGroup: Unread}
	s.unread(s.place(&f, link))
	s.unread(s.ids(&f, devicesDir+"/"+name+"/"))
	f.Classify(s.table)
	s.inv.Functions = append(s.inv.Functions, f)
}

// dir is the directory that a function is listed as.
func (s *scanner) dir(f *Function) string { return cmp.Or(s.odd[f.Address], f.Address.dir()) }

// place reads the function's path in the device tree from its link:
// ../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0.
func (s *scanner) place(f *Function, link host.Link) error {
	name, to := link.Name, link.Target
	if link.Err != nil {
		return link.Err
	}
	cut := strings.LastIndexByte(to, '/')
	if cut < 0 || !strings.EqualFold(to[cut+1:], name) {
		return fmt.Errorf("/%s/%s: link to %q is not a path in the device tree", devicesDir, name, sanitize.Terminal(to))
	}
	above := to[:cut]
	root, bridges, ok := splitPath(above)
	if !ok {
		return fmt.Errorf("/%s/%s: no root bus in %q", devicesDir, name, sanitize.Terminal(to))
	}
	if known, ok := s.bridges[above]; ok {
		bridges = known
	} else {
		s.bridges[above] = bridges
	}
	f.RootBus, f.Bridges = root, bridges
	if below, ok := strings.CutPrefix(to, "../../../devices/"); ok {
		f.Top, _, _ = strings.Cut(below, "/")
	}
	return nil
}

// splitPath takes the directory of a function apart: the root bus nearest to
// the function (behind VMD there are two) and the functions below it.
func splitPath(dir string) (root string, bridges []Address, ok bool) {
	for part := range strings.SplitSeq(dir, "/") {
		if parseRootBus(part) {
			root, bridges = part, nil
		} else if a, isAddress := parseAddress(part); isAddress && root != "" {
			bridges = append(bridges, a)
		}
	}
	return root, bridges, root != ""
}

// ids reads modalias, one file for all ids, or else a file for each.
func (s *scanner) ids(f *Function, base string) error {
	f.IDFile = ModaliasFile
	text, err := s.fs.Line(base + f.IDFile)
	if err == nil && parseModalias(text, f) {
		return nil
	}
	var errs []error
	id := func(file string, limit uint32) uint32 { // 0 with an error
		text, err := s.fs.Line(base + file)
		n, ok := hex(strings.TrimPrefix(text, "0x"))
		switch {
		case err == nil && ok && n <= limit:
			return n
		case err == nil:
			err = fmt.Errorf("/%s%s: %q is not a hexadecimal id", base, file, text)
		}
		errs = append(errs, err)
		return 0
	}
	id16 := func(file string) uint16 { return uint16(id(file, 0xffff)) } //nolint:gosec // bounded
	f.Vendor, f.Device, f.Class = id16(VendorFile), id16("device"), id("class", 0xffffff)
	if len(errs) > 0 {
		if s.table.MayHold(f.IDs()) {
			f.Eligible = IDsUnread
		}
		f.Vendor, f.Device, f.Class = 0, 0, 0
		return fmt.Errorf("ids of %v: %w", f.Address, errs[0])
	}
	f.IDFile = VendorFile
	// Subsystem ids are missing on bridges of many vendors: not a problem.
	f.SubVendor, f.SubDevice = id16("subsystem_vendor"), id16("subsystem_device")
	return nil
}

// parseModalias reads pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00
// (kernel: drivers/pci/pci-sysfs.c, modalias_show).
func parseModalias(text string, f *Function) bool {
	var fields [7]uint32
	for i, field := range [...]struct {
		key    string
		digits int
	}{{"pci:v", 8}, {"d", 8}, {"sv", 8}, {"sd", 8}, {"bc", 2}, {"sc", 2}, {"i", 2}} {
		rest, ok := strings.CutPrefix(text, field.key)
		if !ok || len(rest) < field.digits {
			return false
		}
		n, ok := hex(rest[:field.digits])
		if !ok || n > 0xffff {
			return false
		}
		fields[i], text = n, rest[field.digits:]
	}
	if text != "" {
		return false
	}
	//nolint:gosec // each is bounded
	f.Vendor, f.Device, f.SubVendor, f.SubDevice = uint16(fields[0]), uint16(fields[1]), uint16(fields[2]), uint16(fields[3])
	f.Class = fields[4]<<16 | fields[5]<<8 | fields[6]
	return true
}

// attributes reads NUMA node, driver, physical function, IOMMU group, and the link if it is that of
// a card. With details it also reads ACS and VPD, and any link; without, whether there is a VPD that
// managementMarks would read.
func (s *scanner) attributes(f *Function) {
	name := s.dir(f)
	dir, base := s.fs.In(name), name+"/"
	defer dir.Close()
	numa, err := dir.Line(base + NUMAFile)
	f.NUMA, err = s.numa(base, numa, err)
	s.unread(err)
	driver, err := dir.Base(base + DriverFile)
	f.Driver = sanitize.Terminal(driver)
	f.DriverKnown = err == nil || host.Absent(err)
	s.problem(err)
	physFn, err := dir.Base(base + "physfn")
	s.physFn(f, base, physFn, err)
	group, err := dir.Base(base + IOMMUGroupFile)
	f.IOMMUGroup = s.iommuGroup(base, group, err)
	if s.what.Details || s.cardOf(f) == f {
		s.readLink(dir, f, true)
	}
	if s.what.Details {
		f.ACS, f.VPD = ReadACS(s.fs, f.Address), ReadVPD(s.fs, f.Address)
	} else if f.mayManage() {
		there, err := dir.Exists(base + vpdFile)
		s.noVPD[f] = err == nil && !there
	}
}

func (s *scanner) iommuGroup(base, text string, err error) int {
	switch {
	case host.Absent(err):
		return None
	case err != nil:
		s.problem(err)
		return Unread
	}
	group, err := strconv.Atoi(text)
	if err != nil || group < 0 {
		s.problem(fmt.Errorf("/%s%s: %q is not a group", base, IOMMUGroupFile, sanitize.Terminal(text)))
		return Unread
	}
	return group
}

func (s *scanner) physFn(f *Function, base, name string, err error) {
	var a Address
	if err == nil {
		if a, err = ParseAddress(name); err == nil {
			f.PhysFn = &a
			return
		}
		s.mayBeVirtual(f)
		s.unread(fmt.Errorf("/%sphysfn: %w", base, err))
		return
	}
	switch {
	case host.Absent(err):
		return
	case errors.Is(err, unix.EINVAL): // it is there, and no link
		s.mayBeVirtual(f)
	default:
		s.noPhysFn = append(s.noPhysFn, f.Address)
	}
	s.unread(err)
}

// knownAsBridges: a function with others below it is a bridge, even if its ids could
// not be read.
func (s *scanner) knownAsBridges() {
	for _, bridges := range s.bridges {
		for _, a := range bridges {
			if f := s.inv.Find(a); f != nil && f.Unidentified() {
				f.Eligible = Neither
			}
		}
	}
}
