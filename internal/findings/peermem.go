package findings

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/source/kmod"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

const peerSymbol = kmod.PeerMemoryAPI

// peermem says whether a peer memory client serves the NICs. If none does, the reason is in
// rows of their own for each way in which clients reach NICs (family.Client,
// family.PeerMemory).
var peermem = check{
	name: "peermem", facts: []kmod.Fact{kmod.FactPeermem},
	tail: "{peermemMoving}", evidence: sawPeermem, reason: func(f *judged) verdict.Reason { return f.stepReason(verdict.GPUMemory) },
	rows: slices.Concat(peermemRows, servedRows, unservedRows,
		under(loadableClient, sawWhyNotLoaded, notLoaded), under(driverIsClient, nil, notRegistered),
		under(nicNamesPeers, nil, nobodysPeer), under(vendorsInterface, sawHolders, notHeld), noInterface),
}

var servedRows = []row{
	{
		status: Warn, code: "MemoryPeersMissing", when: func(f *judged) bool { return unseenByOldNCCL(f) && seenByNCCL(f) == tristate.True },
		text:     "{registered}; NCCL before 2.23 does not find it, since this RDMA stack makes no memory_peers, and DMA-BUF cannot replace it here",
		fix:      do("use NCCL 2.23 or newer, also in containers (NCCL_DEBUG=INFO prints the version)", "{orDMABuf}"),
		evidence: sawClientFiles,
	},
	{
		status: Warn, code: "MemoryPeersMissing", when: func(f *judged) bool { return unseenByOldNCCL(f) && seenByNCCL(f) == tristate.False },
		text:     "{registered}, in a place no NCCL version checks: neither memory_peers nor {client}/version is there",
		fix:      do("unload {clientModule} and load {peermem} of the GPU driver, with NCCL 2.23 or newer"),
		evidence: sawClientFiles,
	},
	{
		status: Warn, code: "EFADriverTooOldForR580", when: peersTooOld,
		text:     "{registered}, but its release {nicVersion} does not know the interface of GPU driver {gpuVersion}: registering GPU memory fails",
		fix:      do("install {module} {neededRelease} or newer, from {peerStack}"),
		evidence: sawReleases,
	},
	{
		status: Warn, code: "EFAPeermemUnproven", when: saidAlways,
		text:     "{registered}, which proves nothing: before release {provenFrom} the driver always says so",
		fix:      do("install a newer driver, from {peerStack}"),
		evidence: sawReleases,
	},
	{status: OK, when: func(f *judged) bool { return f.Verdict.Peermem == tristate.True }, text: "{registered}"},
	{
		status: Undecidable, reason: verdict.Unreadable, when: func(f *judged) bool { return f.Verdict.Peermem == tristate.Unknown && nicNamesPeers(f) },
		text: "which GPUs' memory {module} reaches cannot be read", fix: do("mount the host's /sys"),
	},
	{
		status: Undecidable, code: "MemoryPeersMissing", when: unlistedClient,
		text: "whether {gpuDriver} is registered cannot be seen: it and the RDMA stack have what it needs, but this stack makes no memory_peers, which lists clients",
		fix: do("ask it for GPU memory: ib_write_bw --use_rocm=0, or a log of RCCL",
			"if that fails and dmesg says {refused}, {rebuildDriver}, or use DMA-BUF (see dmabuf)", "if it fails without that, {register}"),
		evidence: func(f *judged) []string {
			return append(sawRegistering(f), finding.Map(kmod.PeerDirs(), finding.SawMissing)...)
		},
	},
	{
		status: Undecidable, reason: verdict.Unreadable, when: func(f *judged) bool {
			return f.Verdict.Peermem == tristate.Unknown && driverIsClient(f) && interfaceFor(f) == tristate.Unknown
		},
		text: "whether {gpuDriver} is registered is unknown: the kernel's symbols cannot be read", fix: do("mount the host's /sys and /proc"), evidence: sawRegistering,
	},
	{
		status: Undecidable, reason: verdict.Unreadable, when: func(f *judged) bool { return f.Verdict.Peermem == tristate.Unknown },
		text: "the state of the kernel modules cannot be read", fix: do("mount the host's /sys"),
	},
	{
		status: OK, when: func(f *judged) bool { return f.Verdict.DMABuf == tristate.True && loadableClient(f) },
		text: "not loaded, and not needed: DMA-BUF is available ({dmabufReleases})",
	},
	{status: OK, when: func(f *judged) bool { return f.Verdict.DMABuf == tristate.True }, text: "no client, and none is needed: DMA-BUF is available ({dmabufReleases})"},
}

// unservedRows apply to every kind of client.
var unservedRows = []row{{
	status: Fail, when: func(f *judged) bool { return f.GPUDriven() == tristate.False },
	text: "not loaded; it needs the GPU driver first", fix: seeDriver, evidence: sawWhyNotLoaded,
}}

// notLoaded are the reasons why a module that registers with the RDMA core is not loaded.
// There are two facts: the symbol says whether the RDMA stack has an interface for a
// client, and the module's dependencies tell what the module was built for.
var notLoaded = []row{
	{
		status: Fail, when: func(f *judged) bool { return interfaceFor(f) == tristate.False && f.NICDriven() == tristate.False },
		text: "not loaded, and neither are the RDMA drivers, whose interface it needs", fix: do("see nic-driver"),
	},
	{
		status: Fail, code: "PeermemNotInstalled", when: func(f *judged) bool {
			return f.advised().File.Listed == tristate.False && interfaceFor(f) == tristate.True
		},
		text: "the RDMA stack has the interface for it, but no module {peermem} is installed for this kernel", fix: install,
	},
	{
		status: Fail, code: "PeermemStub", when: func(f *judged) bool { return stub(f) && interfaceFor(f) == tristate.False }, text: builtAsStub,
		fix: func(f *judged) []string {
			return append(rebuild(f, "install "+f.NIC.Help.PeerStack+", then "), finding.Steps(orDMABuf(f))...)
		},
	},
	{status: Fail, code: "PeermemStub", when: stub, text: builtAsStub, fix: func(f *judged) []string { return append(rebuild(f, ""), finding.Steps(orDMABuf(f))...) }},
	{
		status: Fail, code: "PeermemUnknownSymbol", when: func(f *judged) bool {
			return f.advised().File.Listed == tristate.True && interfaceFor(f) == tristate.False && exporter(f) == ""
		},
		text: "{installed} was built for an RDMA stack with " + peerSymbol + ", which the running one lacks: loading it fails with Unknown symbol",
		fix: func(f *judged) []string {
			return append(rebuild(f, "install and load "+f.NIC.Help.PeerStack+" for this kernel, then "), finding.Steps(orDMABuf(f))...)
		},
	},
	{
		status: Fail, code: "PeermemUnknownSymbol", when: func(f *judged) bool {
			return f.advised().File.Listed == tristate.True && interfaceFor(f) == tristate.False
		},
		text: "{peerExporter} on disk has " + peerSymbol + ", but the running one does not: the RDMA drivers were installed and not loaded since",
		fix:  do("restart the RDMA drivers when no job runs (/etc/init.d/openibd restart), or reboot", "then modprobe {peermem}"),
	},
	{
		status: Fail, code: "PeermemSymbolMismatch", when: otherStack,
		text: "not loaded, and the running RDMA stack is not the installed one: the interface for it is in {peerExporter} on disk, and in {symbolOwner} of the running kernel",
		fix: func(f *judged) []string {
			return slices.Concat(modprobe(f), finding.Steps("if that says Invalid argument or Unknown symbol and MOFED was upgraded, restart the RDMA drivers or reboot"), rebuild(f, "if it was not upgraded, "))
		},
	},
	{
		status: Fail, reason: verdict.PeermemNotLoaded, when: func(f *judged) bool { return interfaceFor(f) == tristate.True },
		text: "not loaded, though the RDMA stack has the interface for it",
		fix: func(f *judged) []string {
			return slices.Concat(modprobe(f), rebuild(f, "if that says Invalid argument or dmesg disagrees about version of symbol, "), finding.Steps("if it says Unknown symbol, see PeermemUnknownSymbol"))
		},
	},
	{
		status: Fail, reason: verdict.NoPeerMemoryPath, when: func(f *judged) bool { return interfaceFor(f) == tristate.False },
		text: "not loaded, and the RDMA stack has no interface for it (" + peerSymbol + ")",
		fix: func(f *judged) []string {
			return append(rebuild(f, "install "+f.NIC.Help.PeerStack+", then "), finding.Steps(orDMABuf(f))...)
		},
	},
	{
		status: Fail, reason: verdict.NoPeerMemoryPath,
		text: "not loaded; whether the RDMA stack has an interface for it cannot be read",
		fix:  do("{load}", "it says Unknown symbol if there is no interface, or Invalid argument if the module was built without one"),
	},
}

// interfaceFor reports whether the running RDMA stack has the interface for clients.
func interfaceFor(f *judged) tristate.State { return f.Kmod.Symbols[kmod.PeerMemoryAPI].Found }

// registered says how the NICs reach GPU memory without DMA-BUF.
func registered(f *judged) string {
	p := f.Client()
	if p.File != "" {
		return f.NIC.Module + " says that it reaches GPU memory (" + path.Base(p.File) + ": " + p.Says + ")"
	}
	if holder := f.NIC.PeerMemory.Module; holder != "" && strings.Contains(p.By, "/"+holder+"/") {
		return path.Base(p.By) + " is registered with " + holder
	}
	return p.By + " is registered with the RDMA stack"
}

// firstModule returns the module that gives these GPUs' memory to NICs, "" for none.
func firstModule(f *judged) string {
	if modules := f.GPU.Client.Modules; len(modules) > 0 {
		return modules[0]
	}
	return ""
}

func clientState(f *judged) kmod.Init { return f.Kmod.Peers.Modules[firstModule(f)] }

func peermemMoving(f *judged) string {
	switch clientState(f) {
	case kmod.Coming:
		return "; " + firstModule(f) + " is being loaded"
	case kmod.Going:
		return "; " + firstModule(f) + " is being unloaded"
	default:
		return ""
	}
}

// advised are the facts for advice; empty if they were not read.
func (f *judged) advised() *kmod.Advice {
	if f.Kmod.Advice == nil {
		return &kmod.Advice{}
	}
	return f.Kmod.Advice
}

// unseenByOldNCCL: NCCL up to 2.22 looks for the client's directory alone, newer
// ones for /sys/module/nvidia_peermem/version too (NVIDIA/nccl src/transport/
// net_ib/gdr.cc). RDMA stacks from MOFED 24.04 on make no such directory.
func unseenByOldNCCL(f *judged) bool {
	return loadableClient(f) && f.Verdict.Ready == tristate.True && f.Verdict.Peermem == tristate.True && f.Verdict.DMABuf == tristate.False &&
		f.Kmod.Advice != nil && f.Kmod.Advice.NCCLClient == tristate.False
}

// seenByNCCL reports whether NCCL 2.23 and newer find it.
func seenByNCCL(f *judged) tristate.State {
	return tristate.And(tristate.Of(clientState(f) == kmod.Live), f.advised().Peermem.Version)
}

func clientModule(f *judged) string {
	if client := f.Client().By; !strings.HasPrefix(client, "/") {
		return client
	}
	return "the module behind " + f.Client().By
}

// The module on disk.

// stub: the module was built where there was no PeerDirect API.
func stub(f *judged) bool {
	return f.advised().File.Listed == tristate.True && len(f.advised().File.Needs) == 0
}

const builtAsStub = "{installed} was built without the RDMA stack's peer memory symbols: loading it fails with Invalid argument"

// exporter tells which module on disk has the PeerDirect API, by what peermem
// depends on: ib_uverbs (MOFED 24.07 and newer, Ubuntu), which needs ib_core
// itself, or ib_core; "" for none. What a driver's container has on disk is not
// the RDMA stack of the node.
func exporter(f *judged) string {
	file := &f.advised().File
	if file.Listed != tristate.True || strings.HasPrefix(file.Dep[0], "/run/") {
		return ""
	}
	for _, module := range [...]string{"ib_uverbs", "ib_core"} {
		if slices.Contains(file.Needs, module) {
			return module
		}
	}
	return ""
}

// otherStack: the interface is in another module on disk than in the kernel.
func otherStack(f *judged) bool {
	return exporter(f) != "" && f.Kmod.Symbols[kmod.PeerMemoryAPI].Owner != "" && exporter(f) != f.Kmod.Symbols[kmod.PeerMemoryAPI].Owner
}

// Evidence.

func sawPeermem(f *judged) []string {
	p := f.Client()
	switch {
	case p.File != "":
		return []string{finding.Saw(p.File, cmp.Or(p.Says, "empty"))}
	case firstModule(f) != "" && !nicNamesPeers(f):
		return []string{finding.Saw(kmod.InitFile(firstModule(f)), string(clientState(f)))}
	case p.By != "":
		return []string{finding.SawFile(p.By, tristate.True)}
	}
	return nil
}

// sawClientFiles is evidence that the files by which NCCL finds a client are not there.
func sawClientFiles(f *judged) []string {
	all := finding.Map(f.Kmod.Files[kmod.FactNCCLClient], finding.SawMissing)
	if clientState(f) == kmod.Live {
		all = append(all, finding.SawFile(kmod.AttributeFile(firstModule(f), "version"), f.advised().Peermem.Version))
	}
	return all
}

func sawWhyNotLoaded(f *judged) []string { return slices.Concat(sawInterface(f), sawModuleFile(f)) }

func sawInterface(f *judged) []string { return f.sawSymbol(peerSymbol) }

func sawModuleFile(f *judged) []string {
	file := &f.advised().File
	found := file.Name + " needs " + cmp.Or(strings.Join(file.Needs, " "), "nothing")
	if file.Listed != tristate.True {
		found = "no " + peermemName(f)
	}
	return finding.Map(file.Dep, func(dep string) string { return finding.Saw(dep, found) })
}
