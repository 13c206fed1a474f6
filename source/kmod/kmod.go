// Package kmod reads which drivers run and what they can do: the GPU driver and
// whether it is the open kernel modules, nvidia-peermem and its forerunners, the RDMA
// stack and its PeerDirect level, the symbols DMA-BUF needs, the IOMMU, the
// hypervisor. What is specific to a vendor is in package family.
//
// A module counts as loaded when the kernel says so (initstate "live"). A module
// file on disk and a reference count prove nothing.
package kmod

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gdr-features/host"
	"gdr-features/internal/sanitize"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// State is the software side of a machine.
type State struct {
	// Drivers are the GPU drivers, by the name of the family of GPUs.
	Drivers map[string]Driver
	// Kernel is the release of the running kernel, "6.8.0-45-generic", from
	// /proc/sys/kernel/osrelease; "" where it is not known, or was not asked for.
	Kernel string
	// Params are the parameters of the loaded NVIDIA driver.
	Params Params
	// Models are the names that GPU drivers give their GPUs, read where this may be a
	// virtual machine: a virtual GPU has the PCI ids of a whole one.
	Models map[pci.Address]string
	// Peers are the marks of peer memory clients.
	Peers Peers
	// Symbols are what /proc/kallsyms tells.
	Symbols Symbols
	// KernelOptions are those that GPU drivers need to export DMA-BUF
	// (family.GPU.KernelOptions), by name, from the kernel's configuration. Unknown
	// where that cannot be read, and for options that were not asked for.
	KernelOptions map[string]tristate.State
	// MOFED is where the RDMA drivers come from.
	MOFED MOFED
	// Storage: nvidia-fs (GPUDirect Storage) is loaded.
	Storage tristate.State
	// GroupTypes are the types of the IOMMU groups asked for, by group number:
	// "identity", "DMA", "DMA-FQ", ...; "" for unreadable. From
	// /sys/kernel/iommu_groups/<n>/type.
	GroupTypes map[int]string
	// IOMMU: some device is in an IOMMU group. True when Request.Groups names one,
	// otherwise from /sys/kernel/iommu_groups: False only where that directory is
	// empty, or missing from a /sys/kernel that has others, and /sys/class/iommu
	// lists no IOMMU. Unknown also when it was not asked for.
	IOMMU tristate.State
	// Virtual: this system runs under a hypervisor. VirtualBy names the
	// evidence.
	Virtual   tristate.State
	VirtualBy string
	// BIOS is the version of the firmware, from /sys/class/dmi/id/bios_version, where it was
	// asked for; "" where it cannot be read.
	BIOS string
	// Arm: /proc/cpuinfo is that of an Arm CPU.
	Arm bool
	// Processor is the first CPU of /proc/cpuinfo.
	Processor Processor
	// Advice are the facts for the advice of check; nil before Advise.
	Advice *Advice
	// Files are the files that each fact was read from, or looked for in.
	Files map[Fact][]string
	// Problems are the facts that could not be read, one error each.
	Problems []error
}

// Driver is a GPU driver as loaded, from family.GPU.VersionFile.
type Driver struct {
	// Loaded: its kernel module is loaded.
	Loaded tristate.State
	// Open: it is the open kernel modules. False also if no driver is loaded, and for a
	// driver that comes in one variant (family.GPU.OpenFrom is 0).
	Open tristate.State
	// Version as in "570.86.15"; "" when not known.
	Version string
}

// Driver returns the driver of the machine's GPUs: where there are GPUs of several
// families, that of the first, by name, that is loaded.
func (s *State) Driver() (first Driver) {
	for i, name := range slices.Sorted(maps.Keys(s.Drivers)) {
		d := s.Drivers[name]
		if d.Loaded == tristate.True {
			return d
		}
		if i == 0 {
			first = d
		}
	}
	return first
}

// Processor is a CPU as NCCL's topology describes it (src/graph/xml.cc,
// ncclTopoGetXmlFromCpu), as /proc/cpuinfo has it.
type Processor struct {
	// Arch is "x86_64", "arm64" or "ppc64"; "" when not known.
	Arch string
	// Vendor is vendor_id, "GenuineIntel"; of x86 alone.
	Vendor string
	// Family and Model are those of CPUID, the extended family times 16 added to
	// the family as NCCL does; 0 when not known. Of x86 alone.
	Family, Model int
	// Name is "model name", "13th Gen Intel(R) Core(TM) i9-13900K"; "" when not known. Of
	// x86 alone. NCCL does not use it.
	Name string
}

// IntelClient reports whether this is a CPU of Intel's Core series for desktop computers and
// laptops. Those of this series that were made for larger machines, up to the Core
// i9-10980XE, have the dies of servers, which the kernel lists with the endings _EP and _X
// (arch/x86/include/asm/intel-family.h).
func (p Processor) IntelClient() bool {
	server := []int{0x1a, 0x2c, 0x2d, 0x3e, 0x3f, 0x4f, 0x55} // Nehalem to Cascade Lake
	return p.Vendor == "GenuineIntel" && strings.Contains(p.Name, "Core(TM)") && !strings.Contains(p.Name, "Xeon") &&
		(p.Family != 6 || !slices.Contains(server, p.Model))
}

// Init is the state of a module, from /sys/module/<name>/initstate.
type Init string

// States of a module. Absent also covers built-in code, which has no state.
const (
	Unread Init = ""
	Absent Init = "absent"
	Live   Init = "live"
	Coming Init = "coming"
	Going  Init = "going"
)

// Loaded turns a module's state into a fact: only "live" proves it.
func (i Init) Loaded() tristate.State {
	if i == Unread {
		return tristate.Unknown
	}
	return tristate.Of(i == Live)
}

// Request is what Scan reads beyond the modules.
type Request struct {
	// Families are all that are known: the version of MOFED shows at any of its drivers,
	// whatever NICs there are. The zero value stands for family.Known.
	Families family.Table
	// Present are those of the machine, whose drivers, clients and symbols are read
	// (pci.Inventory.Families); the zero value stands for all.
	Present family.Table
	// Groups are the IOMMU groups whose type is wanted.
	Groups []int
	// IOMMU: State.IOMMU is wanted, also where Groups is empty.
	IOMMU bool
	// DriverBound are the families of GPUs, by name, with a GPU that is bound to the
	// family's driver, which is therefore loaded.
	DriverBound map[string]bool
	// Models are the GPUs, by the name of their family, whose State.Models are read.
	Models map[string][]pci.Address
	// PeerFiles are the functions whose family.PeerMemory.Files are read, by the name
	// of their family: those bound to its driver, and those whose driver is not known.
	PeerFiles map[string][]pci.Address
	// PeerFilesOpen: there may be more such functions, whose ids or driver cannot be read.
	PeerFilesOpen bool
	// KernelOptions are the options of the kernel's configuration that are wanted.
	KernelOptions []family.KernelOption
	// BIOS and Kernel: State.BIOS and State.Kernel are wanted.
	BIOS, Kernel bool
	// Memory keeps the symbols from one Scan for the next; nil for none.
	Memory *Cache
	// Everything: read also what could be read if the machine had other devices of
	// these families, for a snapshot.
	Everything bool
}

// Scan reads the state. Nothing in it can fail as a whole.
func Scan(fs *host.FS, want Request) State {
	s := newScanner(fs, State{})
	s.modules = s.modulesReadable()
	want = want.complete()
	s.drivers(want)
	s.params(want)
	s.about("").peers(want)
	s.st.Storage = s.about(FactStorage).init("nvidia_fs").Loaded()
	s.st.MOFED = s.about(FactStack).mofed(slices.Concat(want.Families.NICs, want.Families.Others))
	s.st.Symbols = want.Memory.symbols(s.about(FactSymbols), want)
	s.st.KernelOptions = want.Memory.kernelOptions(s.about(FactKernelOptions), want)
	s.about(FactIOMMU).groups(want.Groups)
	s.st.IOMMU = s.iommu(want)
	s.about(FactVirtual).virtual()
	s.about(FactModels).models(want)
	if want.Kernel {
		s.st.Kernel = s.kernelRelease()
	}
	if want.BIOS {
		s.st.BIOS = s.line("sys/class/dmi/id/bios_version")
	}
	return s.st
}

type scanner struct {
	fs      files
	modules tristate.State // True: /sys/module can be read; otherwise Unknown
	st      State
}

func newScanner(fs *host.FS, st State) *scanner {
	read := map[Fact][]string{}
	maps.Copy(read, st.Files)
	st.Files = read
	return &scanner{fs: files{FS: fs, read: read}, st: st}
}

// problem notes err, unless the file is merely missing.
func (s *scanner) problem(err error) {
	if err != nil && !host.Absent(err) {
		s.st.Problems = append(s.st.Problems, err)
	}
}

// unread notes err where it leaves a fact unknown, also when a file is missing.
func (s *scanner) unread(err error) { s.st.Problems = append(s.st.Problems, err) }

// modulesReadable reports whether the absence of a module's directory proves that
// it is not loaded.
func (s *scanner) modulesReadable() tristate.State {
	dir, err := s.fs.Open("sys/module/")
	if err != nil {
		s.unread(err)
		return tristate.Unknown
	}
	s.problem(dir.Close())
	return tristate.True
}

func (s *scanner) init(module string) Init {
	text, err := s.fs.Line("sys/module/" + module + "/initstate")
	switch {
	case host.Absent(err) && s.modules == tristate.True:
		return Absent
	case err != nil:
		s.problem(err)
		return Unread
	}
	state := Init(text)
	if state != Live && state != Coming && state != Going {
		s.problem(fmt.Errorf("/sys/module/%s/initstate: %q is not a module state", module, text))
		return Unread
	}
	return state
}

// present reports whether a module's directory is there, as it is for modules in
// any state and for built-in ones with parameters.
func (s *scanner) present(module string) tristate.State {
	return tristate.Or(s.exists("sys/module/"+module), tristate.Not(s.modules))
}

func (s *scanner) groups(numbers []int) {
	s.st.GroupTypes = make(map[int]string, len(numbers))
	var missing error
	for _, n := range numbers {
		if _, done := s.st.GroupTypes[n]; done {
			continue
		}
		// Kernels before 5.11 have no such file for any group: one problem.
		text, err := s.fs.Line(GroupFile(n)[1:])
		s.problem(err)
		if missing == nil && host.Absent(err) {
			missing = err
		}
		s.st.GroupTypes[n] = text
	}
	if missing != nil {
		s.unread(missing)
	}
}

// iommu reports whether the kernel has put any device into an IOMMU group (kernel:
// drivers/iommu/iommu.c makes the list of groups at boot, iommu-sysfs.c the class
// of IOMMUs that run). A kernel that has other directories in /sys/kernel and no
// list was built without; where there is no /sys/kernel, nothing is known.
func (s *scanner) iommu(want Request) tristate.State {
	const kernel, groups, units = "sys/kernel", groupsDir, "sys/class/iommu"
	switch {
	case len(want.Groups) > 0 && !want.Everything:
		return tristate.True
	case !want.IOMMU:
		return tristate.Unknown
	}
	names, err := s.fs.Names(groups)
	if host.Absent(err) {
		if others, missing := s.fs.Names(kernel); missing == nil && len(others) > 0 {
			err = nil
		}
	}
	switch {
	case err != nil:
		s.unread(err)
		return tristate.Unknown
	case len(names) > 0:
		return tristate.True
	}
	switch names, err := s.fs.Names(units); {
	case err != nil && !host.Absent(err):
		s.problem(err)
		return tristate.Unknown
	case len(names) > 0:
		s.problem(fmt.Errorf("/%s has %s, and /%s is empty", units, sanitize.Terminal(names[0]), groups))
		return tristate.Unknown
	}
	return tristate.False
}
