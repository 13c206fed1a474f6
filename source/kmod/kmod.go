// Package kmod reads which drivers run and what they can do: the GPU driver and
// whether it is the open kernel modules, nvidia-peermem and its forerunners, the RDMA
// stack and its PeerDirect level, the symbols DMA-BUF needs. What is specific to a vendor is in
// package family.
//
// A module counts as loaded when the kernel says so (initstate "live"). A module
// file on disk and a reference count prove nothing.
package kmod

import (
	"fmt"
	"maps"
	"slices"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// State is the software side of a machine.
type State struct {
	Drivers map[string]Driver // of GPUs, by the name of their family
	Params  Params
	// ParamsUnread: Params is nil though their file is there.
	ParamsUnread bool
	Peers        Peers
	Symbols      Symbols
	// KernelOptions are those that GPU drivers need to export DMA-BUF
	// (family.GPU.KernelOptions), by name, from the kernel's configuration. Unknown
	// where that cannot be read, and for options that were not asked for.
	KernelOptions map[string]tristate.State
	MOFED         MOFED
	// Storage: nvidia-fs (GPUDirect Storage) is loaded.
	Storage tristate.State
	// Advice is nil before Advise.
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

// Scan reads the state of a machine with these functions: the drivers, clients and symbols of the
// families of the table that are there (pci.Inventory.Families). Nothing in it can fail as a
// whole.
func Scan(fs *host.FS, functions *pci.Inventory, table family.Table, what source.What) State {
	return (*Cache)(nil).Scan(fs, functions, table, what)
}

// Scan does what the function Scan does, and remembers for the next what seldom changes.
func (m *Cache) Scan(fs *host.FS, functions *pci.Inventory, table family.Table, what source.What) State {
	s := newScanner(fs, functions, table, what, State{})
	s.modules = s.modulesReadable()
	s.drivers()
	s.params()
	s.about("").peers()
	s.st.Storage = s.about(FactStorage).init("nvidia_fs").Loaded()
	s.st.MOFED = s.about(FactStack).mofed(slices.Concat(s.families.NICs, s.families.Others))
	s.st.Symbols = m.symbols(s.about(FactSymbols))
	s.st.KernelOptions = m.kernelOptions(s.about(FactKernelOptions))
	return s.st
}

type scanner struct {
	machine   *host.FS
	files     *files
	fs        *host.FS       // of files
	modules   tristate.State // True: /sys/module can be read; otherwise Unknown
	functions *pci.Inventory
	// families are all that are known: the version of MOFED shows at any of its drivers,
	// whatever NICs there are. here are those of the machine.
	families, here family.Table
	everything     bool
	st             State
}

func newScanner(fs *host.FS, functions *pci.Inventory, table family.Table, what source.What, st State) *scanner {
	read := map[Fact][]string{}
	maps.Copy(read, st.Files)
	st.Files = read
	s := &scanner{
		machine: fs, files: &files{Source: fs.Source, read: read},
		functions: functions, families: table, here: table, everything: what.Everything, st: st,
	}
	s.fs = host.New(s.files, fs.Root())
	if !what.Everything {
		s.here = functions.Families(table)
	}
	return s
}

func (s *scanner) all(kind func(*pci.Function) bool) (functions []*pci.Function) {
	for f := range s.functions.All() {
		if kind(f) {
			functions = append(functions, f)
		}
	}
	return functions
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
