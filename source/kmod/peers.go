package kmod

import (
	"errors"
	"slices"

	"gdr-features/host"
	"gdr-features/internal/sanitize"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// Peers are the marks that peer memory clients leave. What they prove is said in package
// verdict.
type Peers struct {
	// Modules are the states of the clients' modules (family.Client.Modules), by name.
	Modules map[string]Init
	// Directories: the client is listed, by the path of its directory (family.Client.Directories)
	// below one of PeerDirs.
	Directories map[string]tristate.State
	// Listing: one of PeerDirs is there. Stacks that make none list no client.
	Listing tristate.State
	// Holders are the holders of the modules of NICs' vendors with which clients register
	// (family.PeerMemory.Module), by name.
	Holders map[string]Holders
	// Files are the attributes in which functions say whose memory they reach
	// (family.PeerMemory.Files).
	Files []PeerFile
	// FilesOpen: there may be more functions that have them.
	FilesOpen bool
}

// PeerDirs returns the directories in which PeerDirect stacks list clients. The place
// changed with the releases.
func PeerDirs() []string {
	return []string{"/sys/kernel/mm/memory_peers", "/sys/kernel/memory_peers", "/sys/memory_peers"}
}

// AttributeFile is a file of a loaded module: version, refcnt, parameters/NAME; initstate, which
// Peers.Modules are from, and the directory holders, which Peers.Holders are from.
func AttributeFile(module, name string) string { return "/sys/module/" + module + "/" + name }

// Holders are the modules that use a module.
type Holders struct {
	Names []string
	// Listed: the directory was read. False where there is none.
	Listed tristate.State
	// Module: the module has a directory.
	Module tristate.State
}

// PeerFile is an attribute of a function: the first that it has of its family's, or the
// absence of one of them.
type PeerFile struct {
	NIC  string // the family
	Name string // of the attribute, "p2p"
	File string // "/sys/bus/pci/devices/<address>/<name>"
	// Found: the function has it. Unknown where it cannot be read.
	Found tristate.State
	// Says is its content, "" for an empty one.
	Says string
}

func (s *scanner) peers() {
	p := &s.st.Peers
	*p = Peers{Modules: map[string]Init{}, Directories: map[string]tristate.State{}, Holders: map[string]Holders{}, FilesOpen: s.functions.Unidentified()}
	if slices.ContainsFunc(s.here.GPUs, func(g *family.GPU) bool { return g.Client.Unlisted() }) {
		p.Listing = s.listing()
	}
	for _, g := range s.here.GPUs {
		for _, module := range g.Client.Modules {
			p.Modules[module] = s.init(module)
		}
		for _, dir := range PeerDirs() {
			for _, client := range g.Client.Directories {
				p.Directories[dir+"/"+client] = s.exists(dir[1:] + "/" + client)
			}
		}
	}
	for _, n := range slices.Concat(s.families.NICs, s.families.Others) {
		module := n.PeerMemory.Module
		if _, done := p.Holders[module]; module != "" && !done {
			p.Holders[module] = s.holders(module)
		}
	}
	for _, n := range s.here.NICs {
		for _, f := range s.all(func(f *pci.Function) bool {
			return f.NIC == n && f.Counts() && len(n.PeerMemory.Files) > 0 && (n.Drives(f.Driver) || !f.DriverKnown)
		}) {
			p.Files = append(p.Files, s.peerFiles(n, f.Address)...)
			p.FilesOpen = p.FilesOpen || !f.DriverKnown
		}
	}
}

// listing reports no problem: the same question about the clients in these directories does.
func (s *scanner) listing() tristate.State {
	there := tristate.False
	for _, dir := range PeerDirs() {
		switch found, err := s.fs.Exists(dir[1:]); {
		case found:
			return tristate.True
		case err != nil:
			there = tristate.Unknown
		}
	}
	return there
}

func (s *scanner) holders(module string) Holders {
	names, err := s.fs.Names(AttributeFile(module, "holders")[1:])
	switch {
	case host.Absent(err):
		return Holders{Listed: tristate.False, Module: s.present(module)}
	case err != nil:
		s.problem(err)
		return Holders{}
	}
	return Holders{names, tristate.True, tristate.True}
}

// peerFiles asks a function whose memory it reaches, up to the first file that it has.
func (s *scanner) peerFiles(n *family.NIC, address pci.Address) (all []PeerFile) {
	for _, file := range n.PeerMemory.Files {
		f := PeerFile{NIC: n.Name, Name: file.Name, File: address.File(file.Name)}
		text, err := s.fs.Line(f.File[1:])
		switch {
		case host.Absent(err):
			f.Found = tristate.False
		case err == nil || errors.Is(err, host.ErrEmpty): // empty: nobody's
			f.Found, f.Says = tristate.True, sanitize.Terminal(text)
		default:
			s.problem(err)
		}
		if all = append(all, f); f.Found != tristate.False {
			break
		}
	}
	return all
}
