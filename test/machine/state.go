package machine

// State is the software of a machine: drivers, links, what the kernel shows.
type State struct {
	Name string
	// GPUDriver and NICDriver are bound to every GPU and NIC: Own or another one, "" for
	// none.
	GPUDriver, NICDriver string
	// NVIDIA is the version of the loaded driver, "" for none. Open: it is the open
	// kernel modules, otherwise the proprietary ones.
	NVIDIA string
	Open   bool
	// MOFED is the version of the drivers that are MOFED's, "" for no version file. Compat:
	// mlx_compat is loaded.
	MOFED  string
	Compat bool
	// Modules are further modules with their initstate.
	Modules map[string]string
	// Holders are the holders of further modules that are loaded.
	Holders map[string][]string
	// Attributes are files of the functions that are bound to the NIC driver of a family
	// that has such files (family.PeerMemory.Files), by name.
	Attributes map[string]string
	// Files are further files by name, as "sys/kernel/mm/memory_peers/nv_mem/version".
	Files map[string]string
	// Port is the state of every port, "ACTIVE" or another.
	Port string
	// NoRDMA: NICs have no RDMA devices though their driver is bound.
	NoRDMA bool
	// Symbols are the names and owners in kallsyms besides the common ones, with Own for
	// what the NICs' drivers register DMA-BUF with; nil for no kallsyms at all.
	Symbols []string
	// Kallsyms overrides Symbols with a whole text, also an empty one.
	Kallsyms *string
	// IOMMU is the type of every group, "" for no groups.
	IOMMU string
}

// Own stands for what the row of a function's family says: its driver, its driver's symbol.
const Own = "own"

// Symbols of kernels and modules, as kallsyms writes them after the type.
var (
	symPeer    = "ib_register_peer_memory_client\t[ib_uverbs]"
	symPeerOld = "ib_register_peer_memory_client\t[ib_core]"
	symUmem    = "ib_umem_dmabuf_get\t[ib_uverbs]"
)

// ready is a node with everything in place.
func ready(name string) State {
	return State{
		Name: name, GPUDriver: Own, NICDriver: Own, NVIDIA: "570.86.15", Open: true,
		MOFED: "24.10-1.1.4", Compat: true, Modules: map[string]string{"nvidia_peermem": "live"},
		Port: "ACTIVE", Symbols: []string{symPeer, symUmem, Own}, IOMMU: "identity",
	}
}

// States are the states of software of a machine with NVIDIA GPUs and ConnectX NICs. In
// the first, everything is in place.
func States() []State {
	empty := ""
	garbage := "\x7fELF\x02\x01\x01 not a symbol table\n"
	vary := func(name string, change func(*State)) State {
		s := ready(name)
		change(&s)
		return s
	}
	noPeermem := func(s *State) { s.Modules = nil }
	closed := func(s *State) { s.Open, s.NVIDIA = false, "550.54.14" }
	return []State{
		ready("ready"),
		vary("no-drivers", func(s *State) {
			*s = State{Name: s.Name, Symbols: []string{}}
		}),
		vary("vfio", func(s *State) { s.GPUDriver, s.NVIDIA, s.Modules = "vfio-pci", "", nil }),
		vary("nouveau", func(s *State) { s.GPUDriver, s.NVIDIA, s.Modules = "nouveau", "", nil }),
		vary("nic-unbound", func(s *State) { s.NICDriver = "" }),
		vary("no-rdma", func(s *State) { s.NoRDMA = true }),
		vary("ports-down", func(s *State) { s.Port = "DOWN" }),
		vary("dmabuf-only", noPeermem),
		vary("closed-peermem", closed),
		vary("closed-no-peermem", func(s *State) { closed(s); noPeermem(s) }),
		vary("peermem-coming", func(s *State) { closed(s); s.Modules = map[string]string{"nvidia_peermem": "coming"} }),
		vary("peermem-going", func(s *State) { closed(s); s.Modules = map[string]string{"nvidia_peermem": "going"} }),
		vary("nv-peer-mem", func(s *State) { closed(s); s.Modules = map[string]string{"nv_peer_mem": "live"} }),
		vary("memory-peers", func(s *State) {
			closed(s)
			noPeermem(s)
			s.MOFED = "5.8-1.1.2"
			s.Symbols = []string{symPeerOld, symUmem, Own}
			s.Files = map[string]string{"sys/kernel/mm/memory_peers/nv_mem/version": "550.54.14\n"}
		}),
		vary("mofed-4.9", func(s *State) { s.MOFED, s.Symbols = "4.9-4.0.8", []string{symPeerOld} }),
		vary("mofed-5.8", func(s *State) { s.MOFED, s.Symbols = "5.8-1.1.2", []string{symPeerOld, symUmem, Own} }),
		vary("inbox", func(s *State) {
			noPeermem(s)
			s.MOFED, s.Compat, s.Symbols = "", false, []string{symUmem, Own}
		}),
		vary("inbox-old", func(s *State) { noPeermem(s); s.MOFED, s.Compat, s.Symbols = "5.0-0", false, []string{} }),
		vary("inbox-ubuntu", func(s *State) { s.MOFED, s.Compat = "", false }),
		vary("kallsyms-missing", func(s *State) { noPeermem(s); s.Symbols = nil }),
		vary("kallsyms-empty", func(s *State) { noPeermem(s); s.Kallsyms = &empty }),
		vary("kallsyms-garbage", func(s *State) { noPeermem(s); s.Kallsyms = &garbage }),
		vary("storage", func(s *State) { s.Modules["nvidia_fs"] = "live" }),
		vary("iommu-translated", func(s *State) { s.IOMMU = "DMA-FQ" }),
		vary("iommu-off", func(s *State) { s.IOMMU = "" }),
	}
}

// StateNamed returns one of States.
func StateNamed(name string) (State, bool) { return named(States(), name) }

func named(states []State, name string) (State, bool) {
	for _, s := range states {
		if s.Name == name {
			return s, true
		}
	}
	return State{}, false
}
