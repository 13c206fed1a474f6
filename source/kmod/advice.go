package kmod

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"gdr-features/host"
	"gdr-features/internal/sanitize"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/verbs"
	"gdr-features/tristate"
)

// Advice are facts that decide nothing and help to say why something is missing
// and what to do about it. They are read on request only.
type Advice struct {
	// File is the module file of a peer memory client (family.GPU.Client.Modules); looked
	// for while none is loaded.
	File ModuleFile
	// Peermem is the first of those modules, where it is loaded.
	Peermem PeermemModule
	// NCCLClient: one of the files by which every NCCL knows a peer memory client,
	// <client>/version below /sys/kernel/mm/memory_peers.
	NCCLClient tristate.State
	// NICVersions are the versions of RDMA drivers that MOFED does not include, by the
	// family of NICs. "" for a driver without a version: the kernel's own.
	NICVersions map[string]string
	// VerbsABI are by the name of the RDMA device. Read where a family compares them
	// (family.Uverbs.ABI).
	VerbsABI map[string]VerbsABI
	// Verbs are the RDMA devices that have an entry in /sys/class/infiniband_verbs, by name. nil
	// where the entries cannot all be read, or there are none.
	Verbs []string
	// Holders are the modules that keep ib_core and ib_uverbs from being unloaded, by the
	// module they hold.
	Holders map[string][]string
	// GDRCopy: gdrdrv, the kernel module of GDRCopy, is loaded.
	GDRCopy   tristate.State
	Operators Operators
}

// VerbsABI is the version of a driver's interface to user space, and its file, abi_version in
// /sys/class/infiniband_verbs.
type VerbsABI struct {
	Version int
	File    string
}

// PeermemModule is a loaded peer memory client, nvidia_peermem, from
// /sys/module/nvidia_peermem.
type PeermemModule struct {
	// Version: there is a file version, by which NCCL from 2.23 on knows it.
	Version tristate.State
	// LegacyAPI and PersistentAPI are the parameters peerdirect_support and
	// persistent_api_support ("0" or "1"); "" without the files.
	LegacyAPI, PersistentAPI string
	// Users is refcnt, the number of GPU memory regions registered; -1 unknown.
	Users int
}

// ModuleFile is the file of a module as depmod knows it.
type ModuleFile struct {
	// Listed: some modules.dep has the module. False when there is one and none has it.
	Listed tristate.State
	// Name is that of the module in the kernel, "nvidia_peermem".
	Name string
	// Dep are the files looked into: the one that has it, or all that lack it.
	Dep []string
	// Needs are the modules it depends on, "nvidia", "ib_uverbs". None at all: a
	// stub, built where there was no PeerDirect API to be found.
	Needs []string
}

// Operators are the marks that GPU Operator and Network Operator leave on a node
// for each other (NVIDIA/gpu-operator cmd/nvidia-validator, NVIDIA/
// gpu-driver-container, Mellanox/doca-driver-build).
type Operators struct {
	// GPU: the GPU Operator works on this node. False says little: a container sees a /run
	// of its own.
	GPU tristate.State
	// DriverReady: its driver container has loaded the GPU driver. RDMA is
	// GPU_DIRECT_RDMA_ENABLED in that file.
	DriverReady, RDMA tristate.State
	// MOFEDReady: the Network Operator's container has loaded the RDMA drivers.
	MOFEDReady tristate.State
}

// Files of the operators, and where the GPU driver's container is seen.
const (
	validations  = "run/nvidia/validations"
	driverCtr    = validations + "/.driver-ctr-ready"
	mofedReady   = "run/mellanox/drivers/.driver-ready"
	driverModule = "run/nvidia/driver/lib/modules/"
	hostModule   = "lib/modules/"
)

// NoAdvice is what is known before Advise.
func NoAdvice() *Advice {
	return &Advice{
		Peermem: PeermemModule{Users: -1}, Holders: map[string][]string{},
		NICVersions: map[string]string{}, VerbsABI: map[string]VerbsABI{},
	}
}

// Advise adds to the state that Scan returned, for the same functions, table and wishes, what
// only advice needs. It is apart as it reads files of other file systems, which decide nothing
// and may hang. What is not there is no problem.
func Advise(fs *host.FS, functions *pci.Inventory, table family.Table, what source.What, st State) State {
	s := newScanner(fs, functions, table, what, st)
	s.st.Problems = slices.Clone(st.Problems)
	a := NoAdvice()
	s.st.Advice = a
	a.NCCLClient = tristate.False
	for _, g := range s.here.GPUs {
		s.clientAdvice(a, g)
	}
	s.nics(a, s.here.NICs)
	s.about("")
	for _, module := range [...]string{"ib_core", "ib_uverbs"} {
		holders, err := s.fs.Names(AttributeFile(module, "holders")[1:])
		s.problem(err)
		if len(holders) > 0 {
			a.Holders[module] = holders
		}
	}
	a.GDRCopy = s.about(FactGDRCopy).exists("sys/module/gdrdrv")
	a.Operators = s.operators()
	return s.st
}

// clientAdvice reads about the peer memory client of a family of GPUs.
func (s *scanner) clientAdvice(a *Advice, g *family.GPU) {
	s.about("")
	if modules := g.Client.Modules; len(modules) > 0 {
		if live := func(module string) bool { return s.st.Peers.Modules[module] == Live }; s.everything || !slices.ContainsFunc(modules, live) {
			a.File = s.moduleFile(modules)
		}
		if s.st.Peers.Modules[modules[0]] == Live {
			s.loadedPeermem(modules[0], &a.Peermem)
		}
	}
	s.about(FactNCCLClient)
	for _, client := range g.Client.Directories {
		a.NCCLClient = tristate.Or(a.NCCLClient, s.exists("sys/kernel/mm/memory_peers/"+client+"/version"))
	}
}

func (s *scanner) nics(a *Advice, nics []*family.NIC) {
	s.about(FactNICVersion)
	for _, n := range nics {
		if n.MOFED {
			continue
		}
		version, err := s.fs.Line("sys/module/" + n.Module + "/version")
		s.problem(err)
		if err == nil || host.Absent(err) {
			a.NICVersions[n.Name] = sanitize.Terminal(version)
		}
	}
	if len(nics) > 0 {
		s.verbs(a, slices.ContainsFunc(nics, func(n *family.NIC) bool { return n.Uverbs.ABI != 0 }))
	}
}

// verbs reads the entries of RDMA devices for programs, and their ABIs where some family
// compares them.
func (s *scanner) verbs(a *Advice, compare bool) {
	nodes, err := verbs.List(s.machine)
	s.problem(err)
	s.about("")
	whole := err == nil
	for _, node := range nodes {
		name := sanitize.Terminal(node.Device)
		a.Verbs, whole = append(a.Verbs, name), whole && node.Err == nil
		if !compare {
			continue
		}
		file := verbs.Class + "/" + node.Node + "/abi_version"
		if n, err := strconv.Atoi(s.line(file[1:])); err == nil && node.Err == nil {
			a.VerbsABI[name] = VerbsABI{n, file}
		}
	}
	if !whole {
		a.Verbs = nil
	}
}

// line reads a line; "" when it is not there.
func (s *scanner) line(name string) string {
	text, err := s.fs.Line(name)
	s.problem(err)
	return text
}

func (s *scanner) exists(name string) tristate.State {
	ok, err := s.fs.Exists(name)
	if err != nil {
		s.problem(err)
		return tristate.Unknown
	}
	return tristate.Of(ok)
}

func (s *scanner) loadedPeermem(module string, p *PeermemModule) {
	dir := "sys/module/" + module + "/"
	p.Version = s.exists(dir + "version")
	p.LegacyAPI, p.PersistentAPI = s.line(dir+"parameters/peerdirect_support"), s.line(dir+"parameters/persistent_api_support")
	if n, err := strconv.Atoi(s.line(dir + "refcnt")); err == nil && n >= 0 {
		p.Users = n
	}
}

// maxDep is several times the largest modules.dep seen (1 MB).
const maxDep = 4 << 20

// moduleFile looks for the first of some modules that is installed, in what depmod
// wrote for the running kernel: in the GPU driver's container and on the host.
func (s *scanner) moduleFile(modules []string) ModuleFile {
	version := s.release()
	if version == "" {
		return ModuleFile{}
	}
	absent := ModuleFile{Listed: tristate.False}
	var found ModuleFile
	for _, place := range [...]string{driverModule, hostModule} {
		name := place + version + "/modules.dep"
		text, err := s.fs.Bytes(name, maxDep)
		switch {
		case host.Absent(err):
			continue
		case err != nil:
			s.problem(err)
			absent.Listed = tristate.Unknown
			continue
		}
		absent.Dep = append(absent.Dep, "/"+name)
		for _, module := range modules {
			needs, ok := needsOf(string(text), module)
			if ok && (found.Name == "" || slices.Index(modules, module) < slices.Index(modules, found.Name)) {
				found = ModuleFile{Listed: tristate.True, Name: module, Dep: []string{"/" + name}, Needs: needs}
			}
		}
	}
	if found.Name == "" && len(absent.Dep) > 0 {
		return absent
	}
	return found
}

func (s *scanner) release() string {
	release, err := platform.ReadRelease(s.fs)
	s.problem(err)
	return release
}

// needsOf finds the line "updates/dkms/nvidia-peermem.ko.zst: a.ko.zst b.ko.zst"
// of a module and gives the names of the modules it depends on.
func needsOf(text, module string) (needs []string, ok bool) {
	for line := range strings.Lines(text) {
		file, rest, colon := strings.Cut(line, ":")
		if !colon || moduleName(file) != module {
			continue
		}
		for file := range strings.FieldsSeq(rest) {
			needs = append(needs, moduleName(file))
		}
		return needs, true
	}
	return nil, false
}

// moduleName turns "updates/dkms/nvidia-peermem.ko.zst" into "nvidia_peermem". Names of files
// have dashes where names of modules have none.
func moduleName(file string) string {
	base, _, _ := strings.Cut(file[strings.LastIndexByte(file, '/')+1:], ".ko")
	return strings.ReplaceAll(base, "-", "_")
}

func (s *scanner) operators() Operators {
	o := Operators{GPU: s.about(FactGPUOperator).exists(validations), MOFEDReady: s.about(FactMOFEDReady).exists(mofedReady)}
	if o.GPU != tristate.True {
		return o
	}
	text, err := s.about(FactDriverReady).fs.Bytes(driverCtr, 4<<10)
	switch {
	case host.Absent(err):
		o.DriverReady = tristate.False
		return o
	case err != nil && !errors.Is(err, host.ErrEmpty): // older drivers leave it empty
		s.problem(err)
		return o
	}
	o.DriverReady = tristate.True
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":") // YAML
		value = strings.TrimSpace(value)
		if strings.TrimSpace(key) == "GPU_DIRECT_RDMA_ENABLED" && (value == "true" || value == "false") {
			o.RDMA = tristate.Of(value == "true")
		}
	}
	return o
}
