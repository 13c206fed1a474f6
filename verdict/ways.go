package verdict

import (
	"slices"

	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/tristate"
)

// FactPeermem is what the files of a Client were asked for.
const FactPeermem source.Fact = "peermem"

// Client gives the memory of a family of GPUs to a family of NICs without DMA-BUF.
type Client struct {
	Registered tristate.State
	// By names the evidence: a module, "nvidia_peermem", or a file,
	// "/sys/kernel/mm/memory_peers/nv_mem"; "" for none.
	By string
	// File is the attribute in which a function says whose memory it reaches, and Says what
	// it said; "" where no function has one (family.PeerMemory.Files).
	File, Says string
	// Files are those that were asked, in their order.
	Files []string
}

// or returns c with what d adds. c is not proven.
func (c Client) or(d Client) Client {
	d.Registered = tristate.Or(c.Registered, d.Registered)
	d.Files = append(c.Files, d.Files...)
	return d
}

// ClientOf looks for the client of a family of GPUs that serves one of NICs: one that is registered
// with the RDMA core, one that holds the module of the NICs' vendor, a function that says so.
func ClientOf(st *kmod.State, g *family.GPU, n *family.NIC, known family.Table) Client {
	peers, way := &st.Peers, &n.PeerMemory
	found := Client{Registered: tristate.False}
	if way.Core || way.Module != "" || g.Client.AnyNIC {
		found = registered(peers, g)
		switch {
		case way.Core && found.Registered == tristate.True:
			if held := holdsVendorModule(peers, g, known); held != tristate.False {
				found = Client{Registered: tristate.Not(held), Files: found.Files}
			}
		case !way.Core && !g.Client.AnyNIC:
			found = Client{Registered: tristate.False, Files: found.Files}
		}
	}
	if found.Registered != tristate.True {
		found = found.or(holder(peers, g, n))
	}
	if found.Registered != tristate.True {
		found = found.or(named(peers, g, n))
	}
	if found.Registered == tristate.False {
		found.Registered = unlisted(st, g)
	}
	return found
}

// unlisted reports whether a GPU driver that can be a client may be registered where nothing
// shows it: false where it cannot be, and otherwise unknown. RDMA stacks on Linux 6.4 and newer
// make no memory_peers (ROCm/rccl PR#1328); on such a node, with the interface and the driver's
// function, plain ibv_reg_mr of GPU memory worked (ROCm/rccl#1377), on others it did not
// (ROCm/rocm-systems PR#9540: kernels have the interface and no client).
func unlisted(st *kmod.State, g *family.GPU) tristate.State {
	if !g.Client.Unlisted() || st.Peers.Listing == tristate.True {
		return tristate.False
	}
	return tristate.And(tristate.Unknown, st.Drivers[g.Name].Loaded,
		st.Symbols[kmod.PeerMemoryAPI].Found, st.Symbols[g.Client.Symbol].Found)
}

// registered looks for a client that is registered with the RDMA core: a live module (its
// init fails, and it is gone, when it cannot register), or the client's directory.
func registered(peers *kmod.Peers, g *family.GPU) Client {
	c := Client{Registered: tristate.False}
	for _, module := range g.Client.Modules {
		state := peers.Modules[module]
		if state == kmod.Live && c.By == "" {
			c.By = module
		}
		c.Registered = tristate.Or(c.Registered, state.Loaded())
		c.Files = append(c.Files, kmod.AttributeFile(module, "initstate"))
	}
	if c.By != "" {
		return c
	}
	for _, dir := range kmod.PeerDirs() {
		for _, name := range g.Client.Directories {
			file := dir + "/" + name
			c.Files = append(c.Files, file)
			if c.Registered = tristate.Or(c.Registered, peers.Directories[file]); peers.Directories[file] == tristate.True {
				c.By = file
				return c
			}
		}
	}
	return c
}

// holdsVendorModule reports whether the client registers with a module of some NICs' vendor and
// therefore not with the RDMA core: only one has the function that registers.
func holdsVendorModule(peers *kmod.Peers, g *family.GPU, known family.Table) tristate.State {
	answer := tristate.False
	for _, n := range slices.Concat(known.NICs, known.Others) {
		if n.PeerMemory.Module == "" || g.Client.Holder == "" {
			continue
		}
		switch held := peers.Holders[n.PeerMemory.Module]; {
		case slices.Contains(held.Names, g.Client.Holder):
			return tristate.True
		case held.Listed == tristate.Unknown && held.Module == tristate.Unknown:
			answer = tristate.Unknown
		}
	}
	return answer
}

// holder looks for client and RDMA driver among the holders of the NICs' vendor's module.
func holder(peers *kmod.Peers, g *family.GPU, n *family.NIC) Client {
	module := n.PeerMemory.Module
	if module == "" || g.Client.Holder == "" {
		return Client{Registered: tristate.False}
	}
	dir := kmod.AttributeFile(module, "holders")
	held, c := peers.Holders[module], Client{Files: []string{dir}}
	switch {
	case held.Listed == tristate.False: // a loaded module has the directory, unless it cannot be seen
		c.Registered = tristate.And(held.Module, tristate.Unknown)
	case slices.Contains(held.Names, g.Client.Holder) && slices.Contains(held.Names, n.Module):
		c.Registered, c.By = tristate.True, dir+"/"+g.Client.Holder
	case held.Listed == tristate.True:
		c.Registered = tristate.False
	}
	return c
}

// named looks for a function that says that it reaches the GPUs' memory.
func named(peers *kmod.Peers, g *family.GPU, n *family.NIC) Client {
	c := Client{Registered: tristate.False}
	if len(n.PeerMemory.Files) > 0 && peers.FilesOpen {
		c.Registered = tristate.Unknown
	}
	for _, f := range peers.Files {
		i := slices.IndexFunc(n.PeerMemory.Files, func(file family.PeerFile) bool { return file.Name == f.Name })
		if f.NIC != n.Name || i < 0 {
			continue
		}
		c.Files = append(c.Files, f.File)
		switch {
		case f.Found == tristate.Unknown:
			c.Registered = tristate.Unknown
		case f.Found == tristate.True && slices.Contains(n.PeerMemory.Files[i].Says[g.Name], f.Says):
			return Client{tristate.True, f.File, f.File, f.Says, c.Files}
		case f.Found == tristate.True:
			c.File, c.Says = f.File, f.Says
		}
	}
	return c
}

// PeerDirect is the level of the API through which peer memory clients register
// GPU memory; "" when not known.
type PeerDirect string

// Levels of PeerDirect.
const (
	PeerDirectNone    PeerDirect = "none"    // the running stack has no such API
	PeerDirectLegacy  PeerDirect = "legacy"  // MOFED before 5.1, 4.9 LTS included
	PeerDirectCurrent PeerDirect = "current" // MOFED from 5.1 on
	PeerDirectInbox   PeerDirect = "inbox"   // a kernel that ships the API itself
)

// PeerDirect is the level of the machine.
func (node *Node) PeerDirect() PeerDirect {
	known := node.Families.OrDefault()
	present := node.PCI.Families(known)
	if len(present.GPUs) == 0 && len(present.NICs) == 0 {
		present = known
	}
	return PeerDirectOf(&node.Kmod, present, known)
}

// PeerDirectOf infers the level from what the drivers of the families that are present
// show: its only marks are clients, the symbol, and the version of the stack that has it.
func PeerDirectOf(st *kmod.State, present, known family.Table) PeerDirect {
	major, minor, versioned := st.MOFED.Release()
	switch api := coreAPI(st, present, known); {
	case api == tristate.False:
		return PeerDirectNone
	case api == tristate.True && st.MOFED.Origin == kmod.OriginInbox:
		return PeerDirectInbox
	case api == tristate.Unknown, st.MOFED.Origin != kmod.OriginMOFED, !versioned:
		return ""
	case major < 5, major == 5 && minor < 1:
		return PeerDirectLegacy
	}
	return PeerDirectCurrent
}

// coreAPI reports whether the RDMA core has the function that registers clients. A
// registered client proves where it is: in the core, or in a module of the NICs' vendor.
func coreAPI(st *kmod.State, present, known family.Table) tristate.State {
	symbol := st.Symbols[kmod.PeerMemoryAPI]
	api := symbol.Found
	if symbol.Owner != "" && slices.ContainsFunc(slices.Concat(known.NICs, known.Others), func(n *family.NIC) bool {
		return n.PeerMemory.Module == symbol.Owner
	}) {
		api = tristate.False
	}
	for _, g := range present.GPUs {
		for _, n := range present.NICs {
			switch {
			case !n.PeerMemory.Core && n.PeerMemory.Module == "":
			case ClientOf(st, g, n, known).Registered != tristate.True:
			case n.PeerMemory.Core:
				return tristate.True
			default:
				api = tristate.False
			}
		}
	}
	return api
}
