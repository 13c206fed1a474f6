package kmod

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"gdr-features/host"
	"gdr-features/internal/sanitize"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// Pair names a family of GPUs and a family of NICs.
type Pair struct{ GPU, NIC string }

// Peermem reports whether a peer memory client gives GPU memory to NICs.
type Peermem struct {
	Registered tristate.State
	// By names the evidence: a module, "nvidia_peermem", or a file,
	// "/sys/kernel/mm/memory_peers/nv_mem"; "" for none.
	By string
	// File is the attribute in which a function says whose memory it reaches, and Says what
	// it said; "" where no function has one (family.PeerMemory.Files).
	File, Says string
}

// AnyPeermem returns the client of the first pair, by name, that has one, and
// otherwise what is known of all.
func (s *State) AnyPeermem() Peermem {
	if len(s.Peermem) == 0 {
		return Peermem{}
	}
	byName := func(a, b Pair) int { return cmp.Or(cmp.Compare(a.GPU, b.GPU), cmp.Compare(a.NIC, b.NIC)) }
	all := Peermem{Registered: tristate.False}
	for _, pair := range slices.SortedFunc(maps.Keys(s.Peermem), byName) {
		p := s.Peermem[pair]
		if p.Registered == tristate.True {
			return p
		}
		all.Registered = tristate.Or(all.Registered, p.Registered)
	}
	return all
}

// coreAPI reports whether the RDMA core has the function that registers clients, as far as
// registered ones prove it. False: a module of the NICs' vendor has it.
func (s *State) coreAPI(want Request) tristate.State {
	proven := tristate.Unknown
	for _, g := range want.Present.GPUs {
		for _, n := range want.Present.NICs {
			switch p := s.Peermem[Pair{g.Name, n.Name}]; {
			case p.Registered != tristate.True:
			case n.PeerMemory.Core:
				return tristate.True
			case n.PeerMemory.Module != "":
				proven = tristate.False
			}
		}
	}
	return proven
}

// isVendorModule reports whether clients register with a module as one of some NICs' vendor.
func isVendorModule(module string, known family.Table) bool {
	return module != "" && slices.ContainsFunc(slices.Concat(known.NICs, known.Others), func(n *family.NIC) bool {
		return n.PeerMemory.Module == module
	})
}

// peermem looks for the client of each family of GPUs that serves each family of NICs.
func (s *scanner) peermem(want Request) {
	s.st.Clients = map[string]Init{}
	s.st.Peermem = make(map[Pair]Peermem, len(want.Present.GPUs)*len(want.Present.NICs))
	for _, g := range want.Present.GPUs {
		core, anyNIC := s.clients(g, want.Present.NICs)
		if core.Registered == tristate.True {
			if held := s.holdsVendorModule(g, want.Families); held != tristate.False {
				core = Peermem{Registered: tristate.Not(held)}
			}
		}
		for _, n := range want.Present.NICs {
			all := anyNIC
			if n.PeerMemory.Core {
				all = core
			}
			if all.Registered != tristate.True {
				all = all.or(s.holders(n, g))
			}
			if all.Registered != tristate.True {
				all = all.or(s.peerFiles(n, g, want))
			}
			s.st.Peermem[Pair{g.Name, n.Name}] = all
		}
	}
}

// holdsVendorModule reports whether the client of a family of GPUs registers with a module
// of some NICs' vendor, and therefore not with the RDMA core: the function that registers is
// in one of them alone.
func (s *scanner) holdsVendorModule(g *family.GPU, known family.Table) tristate.State {
	answer := tristate.False
	for _, n := range slices.Concat(known.NICs, known.Others) {
		if module := n.PeerMemory.Module; module != "" && g.Client.Holder != "" {
			ok, err := s.fs.FS.Exists("sys/module/" + module + "/holders/" + g.Client.Holder)
			if err != nil {
				s.problem(err)
				answer = tristate.Or(answer, tristate.Unknown)
			}
			answer = tristate.Or(answer, tristate.Of(ok))
		}
	}
	return answer
}

// or returns q, with what is known of both. p is not proven.
func (p Peermem) or(q Peermem) Peermem {
	q.Registered = tristate.Or(p.Registered, q.Registered)
	return q
}

// clients looks for the client of a family of GPUs that is registered with the RDMA core.
// core is the result for families of NICs whose clients register there, and anyNIC for all
// others.
func (s *scanner) clients(g *family.GPU, nics []*family.NIC) (core, anyNIC Peermem) {
	core, anyNIC = Peermem{Registered: tristate.False}, Peermem{Registered: tristate.False}
	served := slices.ContainsFunc(nics, func(n *family.NIC) bool { return n.PeerMemory.Core || n.PeerMemory.Module != "" })
	if !served && !g.Client.AnyNIC {
		return core, anyNIC
	}
	if core = s.client(g); g.Client.AnyNIC {
		anyNIC = core
	}
	return core, anyNIC
}

// client looks for a registered client: a live module (its init fails, and it is gone,
// when it cannot register), or the client's directory as older PeerDirect stacks make
// it, in the three places it has been seen in.
func (s *scanner) client(g *family.GPU) Peermem {
	out := Peermem{Registered: tristate.False}
	for i, module := range g.Client.Modules {
		state := s.init(module)
		if i == 0 {
			s.st.Clients[g.Name] = state
		}
		if state == Live && out.By == "" {
			out.By = module
		}
		out.Registered = tristate.Or(out.Registered, state.Loaded())
	}
	if out.By != "" {
		return out
	}
	for _, place := range [...]string{"sys/kernel/mm/memory_peers", "sys/kernel/memory_peers", "sys/memory_peers"} {
		for _, client := range g.Client.Directories {
			there := s.exists(place + "/" + client)
			if there == tristate.True {
				return Peermem{Registered: tristate.True, By: "/" + place + "/" + client}
			}
			out.Registered = tristate.Or(out.Registered, there)
		}
	}
	return out
}

// holders looks for the client and the RDMA driver among the holders of the vendor's module
// with which clients of these NICs register.
func (s *scanner) holders(n *family.NIC, g *family.GPU) Peermem {
	module := n.PeerMemory.Module
	if module == "" || g.Client.Holder == "" {
		return Peermem{Registered: tristate.False}
	}
	dir := "sys/module/" + module + "/holders"
	names, err := s.fs.Names(dir)
	switch {
	case host.Absent(err):
		return Peermem{Registered: tristate.And(s.present(module), tristate.Unknown)} // loaded without holders: not readable
	case err != nil:
		s.problem(err)
		return Peermem{}
	case slices.Contains(names, g.Client.Holder) && slices.Contains(names, n.Module):
		return Peermem{Registered: tristate.True, By: "/" + dir + "/" + g.Client.Holder}
	}
	return Peermem{Registered: tristate.False}
}

// peerFiles asks the functions that are bound to the NICs' driver whose memory they reach.
// The first file that a function has is the one that counts.
func (s *scanner) peerFiles(n *family.NIC, g *family.GPU, want Request) Peermem {
	out := Peermem{Registered: tristate.False}
	if len(n.PeerMemory.Files) > 0 && want.PeerFilesOpen {
		out.Registered = tristate.Unknown
	}
	for _, address := range want.PeerFiles[n.Name] {
		for _, file := range n.PeerMemory.Files {
			name := pci.Devices[1:] + "/" + address.String() + "/" + file.Name
			text, err := s.fs.Line(name)
			switch {
			case host.Absent(err):
				continue
			case err == nil && slices.Contains(file.Says[g.Name], text):
				return Peermem{tristate.True, "/" + name, "/" + name, text}
			case err != nil && !errors.Is(err, host.ErrEmpty): // empty: nobody's
				s.problem(err)
				out.Registered = tristate.Unknown
			default:
				out.File, out.Says = "/"+name, sanitize.Terminal(text)
			}
			break
		}
	}
	return out
}
