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

// peermem says whether a peer memory client serves the NICs. If none does, the reason goes by the
// way in which clients reach NICs (family.Client, family.PeerMemory).
var peermem = check{
	Name: "peermem", Facts: []kmod.Fact{verdict.FactPeermem},
	Codes: []finding.Code{
		"ConfidentialGuest", "VirtualGPU", finding.Unreadable, "DriverRefusesPlace", "MemoryPeersMissing",
		"EFADriverTooOldForR580", "EFAPeermemUnproven", "EFAPeermemMissing",
		"PeermemNotInstalled", "PeermemStub", "PeermemUnknownSymbol", "PeermemSymbolMismatch",
		"PeermemNotLoaded", "NoPeerMemoryPath",
	},
	Judge: func(f *judged) finding.Said {
		said := judgePeermem(f)
		if !said.Found() {
			return said
		}
		if said.Status == finding.StatusFail && said.Reason == "" {
			said.Reason = f.stepReason(verdict.GPUMemory)
			said.Code = cmp.Or(said.Code, finding.Code(said.Reason))
		}
		return said.And(peermemMoving(f)).SawFirst(sawPeermem(f)...)
	},
}

func judgePeermem(f *judged) finding.Said {
	if said := finding.First(f, withheld, served); said.Found() {
		return said
	}
	switch needless := "DMA-BUF is available (" + f.GPU.Help.DMABuf + ")"; {
	case f.Verdict.Peermem == tristate.Unknown:
		return unknownClient(f)
	case f.Verdict.DMABuf == tristate.True && loadableClient(f):
		return finding.OK("not loaded, and not needed: %s", needless)
	case f.Verdict.DMABuf == tristate.True:
		return finding.OK("no client, and none is needed: %s", needless)
	case f.Verdict.GPUDriven == tristate.False:
		return finding.Fail("", "not loaded; it needs the GPU driver first").Saw(sawWhyNotLoaded(f)...).Do(seeDriver)
	case loadableClient(f):
		return notLoaded(f).Saw(sawWhyNotLoaded(f)...)
	case driverIsClient(f):
		return notRegistered(f)
	case nicNamesPeers(f):
		return nobodysPeer(f)
	case vendorsInterface(f):
		return notHeld(f).Saw(sawHolders(f)...)
	}
	return finding.Fail("", "%s supports no peer memory client: DMA-BUF is the only way", f.NIC.Module).
		Saw(sawInterface(f)...).Do(seeDMABuf)
}

const seeDMABuf = "see dmabuf"

// withheld: a client is registered, and the driver may keep GPU memory from it.
func withheld(f *judged) finding.Said {
	switch {
	case f.Verdict.Client.Registered != tristate.True:
		return finding.Said{}
	case f.Verdict.Peermem == tristate.Unknown:
		return perhapsWithheld(f)
	case f.Verdict.Peermem == tristate.False:
		return noPlace(f)
	}
	return finding.Said{}
}

// served says by what the NICs are served, and what is wrong with it.
func served(f *judged) finding.Said {
	by, release := registered(f), f.advised().NICVersions[f.NIC.Name]
	unseen, seen := unseenByOldNCCL(f), seenByNCCL(f)
	switch {
	case unseen && seen == tristate.True:
		return finding.Warn("MemoryPeersMissing", "%s; NCCL before 2.23 does not find it, since this RDMA stack "+
			"makes no memory_peers, and DMA-BUF cannot replace it here", by).
			Saw(sawClientFiles(f)...).
			Do("use NCCL 2.23 or newer, also in containers (NCCL_DEBUG=INFO prints the version)", orDMABuf(f))
	case unseen && seen == tristate.False:
		return finding.Warn("MemoryPeersMissing", "%s, in a place no NCCL version checks: neither memory_peers "+
			"nor %s/version is there", by, firstModule(f)).
			Saw(sawClientFiles(f)...).
			Do("unload " + clientModule(f) + " and load " + peermemName(f) + " of the GPU driver, with NCCL 2.23 or " +
				"newer")
	case older(release, neededRelease(f)):
		return finding.Warn("EFADriverTooOldForR580", "%s, but its release %s does not know the interface of GPU "+
			"driver %s: registering GPU memory fails",
			by, release, gpuDriverVersion(f)).
			Saw(sawReleases(f)...).
			Do("install " + f.NIC.Module + " " + neededRelease(f) + " or newer, from " + f.NIC.Help.PeerStack)
	case older(release, provenFrom(f)):
		return finding.Warn("EFAPeermemUnproven", "%s, which proves nothing: before release %s the driver always "+
			"says so", by, provenFrom(f)).
			Saw(sawReleases(f)...).Do("install a newer driver, from " + f.NIC.Help.PeerStack)
	case f.Verdict.Peermem == tristate.True:
		return finding.OK("%s", by)
	}
	return finding.Said{}
}

// unknownClient says what would tell whether a client is there.
func unknownClient(f *judged) finding.Said {
	switch driver := f.GPU.Driver; {
	case nicNamesPeers(f):
		return finding.Unread("which GPUs' memory %s reaches cannot be read", f.NIC.Module).Do(mountSys)
	case unlistedClient(f):
		return finding.Unknown("whether %s is registered cannot be seen: it and the RDMA stack have what it "+
			"needs, but this stack makes no memory_peers, which lists clients", driver).
			As("MemoryPeersMissing").Saw(sawRegistering(f)...).Saw(finding.Map(kmod.PeerDirs(), finding.SawMissing)...).
			Do("ask it for GPU memory: `ib_write_bw --use_rocm=0`, or a log of RCCL",
				"if that fails and "+refusedDriver(f), "if it fails without that, "+f.GPU.Help.Register)
	case driverIsClient(f) && interfaceFor(f) == tristate.Unknown:
		return finding.Unread("whether %s is registered is unknown: the kernel's symbols cannot be read", driver).
			Saw(sawRegistering(f)...).Do("mount the host's /sys and /proc")
	}
	return finding.Unread("the state of the kernel modules cannot be read").Do(mountSys)
}

// notLoaded says why a module that registers with the RDMA core is not loaded.
// There are two facts: the symbol says whether the RDMA stack has an interface for a
// client, and the module's dependencies tell what the module was built for.
func notLoaded(f *judged) finding.Said {
	running, file := interfaceFor(f), &f.advised().File
	onDisk, inKernel := exporter(f), f.Kmod.Symbols[kmod.PeerMemoryAPI].Owner
	withStack := "install " + f.NIC.Help.PeerStack + ", then "
	switch {
	case running == tristate.False && f.Verdict.NICDriven == tristate.False:
		return finding.Fail("", "not loaded, and neither are the RDMA drivers, whose interface it needs").
			Do("see nic-driver")
	case running == tristate.True && file.Listed == tristate.False:
		return finding.Fail("PeermemNotInstalled", "the RDMA stack has the interface for it, but no module %s is "+
			"installed for this kernel", peermemName(f)).
			Do(install(f)...)
	case file.Listed == tristate.True && len(file.Needs) == 0: // it was built where there was no PeerDirect API
		before := ""
		if running == tristate.False {
			before = withStack
		}
		return finding.Fail("PeermemStub", "%s was built without the RDMA stack's peer memory symbols: loading it "+
			"fails with Invalid argument", file.Name).
			Do(rebuild(f, before)...).Do(orDMABuf(f))
	case running == tristate.False && file.Listed == tristate.True:
		return unknownSymbol(f)
	case onDisk != "" && inKernel != "" && onDisk != inKernel:
		return finding.Fail("PeermemSymbolMismatch", "not loaded, and the running RDMA stack is not the installed "+
			"one: the interface for it is in %s on disk, and in %s of the running kernel",
			onDisk, inKernel).
			Do(modprobe(f)...).
			Do("if that says Invalid argument or Unknown symbol and MOFED was upgraded, restart the RDMA drivers or " +
				"reboot").
			Do(rebuild(f, "if it was not upgraded, ")...)
	case running == tristate.True:
		return finding.Unmet(verdict.PeermemNotLoaded, "not loaded, though the RDMA stack has the interface for it").
			Do(modprobe(f)...).
			Do(rebuild(f, "if that says Invalid argument or dmesg disagrees about version of symbol, ")...).
			Do("if it says Unknown symbol, see PeermemUnknownSymbol")
	case running == tristate.False:
		return finding.Unmet(verdict.NoPeerMemoryPath, "not loaded, and the RDMA stack has no interface for it "+
			"("+peerSymbol+")").
			Do(rebuild(f, withStack)...).Do(orDMABuf(f))
	}
	return finding.Unmet(verdict.NoPeerMemoryPath, "not loaded; whether the RDMA stack has an interface for it "+
		"cannot be read").
		Do(load(f), "it says Unknown symbol if there is no interface, or Invalid argument if the module was built "+
			"without one")
}

// unknownSymbol: the module was built for an RDMA stack that is not the running one.
func unknownSymbol(f *judged) finding.Said {
	if on := exporter(f); on != "" {
		return finding.Fail("PeermemUnknownSymbol", "%s on disk has "+peerSymbol+", but the running one does not: "+
			"the RDMA drivers were installed and not loaded since", on).
			Do("restart the RDMA drivers when no job runs (/etc/init.d/openibd restart), or reboot",
				"then `modprobe "+peermemName(f)+"`")
	}
	return finding.Fail("PeermemUnknownSymbol", "%s was built for an RDMA stack with "+peerSymbol+", which the "+
		"running one lacks: loading it fails with Unknown symbol",
		f.advised().File.Name).
		Do(rebuild(f, "install and load "+f.NIC.Help.PeerStack+" for this kernel, then ")...).Do(orDMABuf(f))
}

// interfaceFor reports whether the running RDMA stack has the interface for clients.
func interfaceFor(f *judged) tristate.State { return f.Kmod.Symbols[kmod.PeerMemoryAPI].Found }

// registered says how the NICs reach GPU memory without DMA-BUF.
func registered(f *judged) string {
	p := f.Verdict.Client
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
	if client := f.Verdict.Client.By; !strings.HasPrefix(client, "/") {
		return client
	}
	return "the module behind " + f.Verdict.Client.By
}

// exporter tells which module on disk has the PeerDirect API, by what peermem depends on:
// ib_uverbs (MOFED 24.07 and newer, Ubuntu), which needs ib_core itself, or ib_core; "" for none.
// What a driver's container has on disk is not the RDMA stack of the node.
func exporter(f *judged) string {
	file := &f.advised().File
	if file.Listed != tristate.True || len(file.Dep) == 0 || strings.HasPrefix(file.Dep[0], "/run/") {
		return ""
	}
	for _, module := range [...]string{"ib_uverbs", "ib_core"} {
		if slices.Contains(file.Needs, module) {
			return module
		}
	}
	return ""
}

func sawPeermem(f *judged) []string {
	p := f.Verdict.Client
	switch {
	case p.File != "":
		return []string{finding.Saw(p.File, cmp.Or(p.Says, "empty"))}
	case firstModule(f) != "" && !nicNamesPeers(f):
		return []string{finding.Saw(kmod.AttributeFile(firstModule(f), "initstate"), string(clientState(f)))}
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
