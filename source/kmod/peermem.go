package kmod

import (
	"maps"
	"slices"

	"gdr-features/source/family"
	"gdr-features/tristate"
)

// Peermem reports whether a peer memory client for GPU memory is registered with the
// RDMA stack.
type Peermem struct {
	Registered tristate.State
	// By names the evidence: a module, "nvidia_peermem", or the client's directory,
	// "/sys/kernel/mm/memory_peers/nv_mem"; "" for none.
	By string
}

// AnyPeermem returns the client of the first family of NICs, by name, that has one, and
// otherwise what is known of all.
func (s *State) AnyPeermem() Peermem {
	if len(s.Peermem) == 0 {
		return Peermem{}
	}
	all := Peermem{Registered: tristate.False}
	for _, name := range slices.Sorted(maps.Keys(s.Peermem)) {
		p := s.Peermem[name]
		if p.Registered == tristate.True {
			return p
		}
		all.Registered = tristate.Or(all.Registered, p.Registered)
	}
	return all
}

// peermem looks for the clients that serve some families of NICs, once for families
// that share them.
func (s *scanner) peermem(nics []*family.NIC) {
	s.st.Peermem = make(map[string]Peermem, len(nics))
	found := map[*family.PeerMemory]Peermem{nil: {Registered: tristate.False}}
	for _, n := range nics {
		if _, done := found[n.PeerMemory]; !done {
			found[n.PeerMemory] = s.client(n.PeerMemory)
		}
		s.st.Peermem[n.Name] = found[n.PeerMemory]
	}
}

// client looks for a registered client: a live module (its init fails, and it is gone,
// when it cannot register), or the client's directory as older PeerDirect stacks make
// it, in the three places it has been seen in.
func (s *scanner) client(p *family.PeerMemory) Peermem {
	out := Peermem{Registered: tristate.False}
	for i, module := range p.Modules {
		state := s.init(module)
		if i == 0 && s.st.PeermemModule == Unread {
			s.st.PeermemModule = state
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
		for _, client := range p.Clients {
			ok, err := s.fs.Exists(place + "/" + client)
			switch {
			case err != nil:
				s.problem(err)
				out.Registered = tristate.Or(out.Registered, tristate.Unknown)
			case ok:
				return Peermem{tristate.True, "/" + place + "/" + client}
			}
		}
	}
	return out
}
