package findings

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// The ways in which a peer memory client reaches NICs; at most one holds for a pair.

// loadableClient: a module registers with the RDMA core, for these NICs.
func loadableClient(f *judged) bool { return firstModule(f) != "" && f.NIC.PeerMemory.Core }

// driverIsClient: the GPU driver itself registers, whatever the NIC.
func driverIsClient(f *judged) bool { return f.GPU.Client.AnyNIC }

// nicNamesPeers: the NIC's driver says in a file whose memory it reaches.
func nicNamesPeers(f *judged) bool { return len(f.NIC.PeerMemory.Files) > 0 && !driverIsClient(f) }

// vendorsInterface: clients register with a module of the NIC's vendor.
func vendorsInterface(f *judged) bool { return f.NIC.PeerMemory.Module != "" && !driverIsClient(f) }

// unlistedClient: the GPU driver may be registered with a stack that lists no clients.
func unlistedClient(f *judged) bool {
	return f.Verdict.Peermem == tristate.Unknown && f.GPU.Client.Unlisted() && f.Kmod.Peers.Listing == tristate.False &&
		interfaceFor(f) == tristate.True && f.Kmod.Symbols[f.GPU.Client.Symbol].Found == tristate.True
}

// notRegistered are the reasons why a GPU driver that can be a client itself is not registered.
var notRegistered = []row{
	{
		status: Fail, reason: verdict.PeermemNotLoaded, when: func(f *judged) bool {
			return interfaceFor(f) == tristate.True && f.Kmod.Symbols[f.GPU.Client.Symbol].Found == tristate.True
		},
		text:     "{gpuDriver} is not registered, though the RDMA stack has the interface for it: the RDMA drivers were loaded after it, or the kernel does not let it look for the interface",
		fix:      do("if dmesg says {refused}, {rebuildDriver}, or use DMA-BUF (see dmabuf)", "else {register}"),
		evidence: sawRegistering,
	},
	{
		status: Fail, reason: verdict.PeermemNotLoaded, when: func(f *judged) bool { return interfaceFor(f) == tristate.True },
		text: "{gpuDriver} is not registered, though the RDMA stack has the interface for it",
		fix:  do("{install}", "then {register}"), evidence: sawRegistering,
	},
	{
		status: Fail, reason: verdict.NoPeerMemoryPath, when: func(f *judged) bool { return interfaceFor(f) == tristate.False },
		text: "{gpuDriver} is not registered: the RDMA stack has no interface for it (" + peerSymbol + ")",
		fix:  do("use DMA-BUF (see dmabuf)", "or install {peerStack}, then {install}"), evidence: sawInterface,
	},
	{
		status: Fail, reason: verdict.NoPeerMemoryPath,
		text: "{gpuDriver} is not registered; whether the RDMA stack has an interface for it cannot be read",
		fix:  do("{install}", "then {register}"), evidence: sawInterface,
	},
}

func sawRegistering(f *judged) []string {
	return append(sawInterface(f), f.sawSymbol(f.GPU.Client.Symbol)...)
}

// nobodysPeer are the reasons why a NIC's driver names no GPU whose memory it reaches.
var nobodysPeer = []row{
	{
		status: Fail, when: func(f *judged) bool { return f.NICDriven() == tristate.False },
		text: "no NIC is bound to {nicDriver}, so nothing says which GPUs' memory it reaches", fix: do("see nic-driver"),
		evidence: nicDrivers,
	},
	{
		status: Fail, code: "EFAPeermemMissing", when: func(f *judged) bool { return f.Client().File == "" },
		text:     "the kernel's own {module} reaches GPU memory by DMA-BUF alone",
		fix:      do("see dmabuf", "or install {peerStack}"),
		evidence: sawNoPeerFile,
	},
	{
		status: Fail, code: "EFAPeermemMissing", when: func(f *judged) bool { return f.GPU.OpenFrom != 0 && gpuDriverState(f).Open == tristate.False },
		text: "{module} reaches no GPU memory ({peerFile}): newer kernels keep the functions of proprietary kernel modules from it",
		fix:  do("install the open kernel modules of the GPU driver, then modprobe {bridge} (package {package})"),
	},
	{
		status: Fail, code: "EFAPeermemMissing",
		text: "{module} reaches no GPU memory ({peerFile}): if the GPU driver is loaded after {module}, nothing loads {bridge}",
		fix:  do("modprobe {bridge} (package {package}), and for the next boot /etc/modules-load.d"),
	},
}

func bridge(f *judged) string { return f.NIC.PeerMemory.Bridge }

// peerFile is what the file of the driver says: "p2p is empty".
func peerFile(f *judged) string {
	p := f.Client()
	if p.Says == "" {
		return path.Base(p.File) + " is empty"
	}
	return path.Base(p.File) + ": " + p.Says
}

// sawNoPeerFile is evidence that no function has a file that names peers.
func sawNoPeerFile(f *judged) []string {
	var all []string
	for _, file := range f.Client().Files {
		if slices.ContainsFunc(f.NIC.PeerMemory.Files, func(p family.PeerFile) bool { return path.Base(file) == p.Name }) {
			all = append(all, finding.SawFile(file, tristate.False))
		}
	}
	return all[:min(len(all), 2)]
}

// notHeld are the reasons why a client does not serve NICs whose vendor has an interface of
// its own.
var notHeld = []row{
	{
		status: Fail, when: func(f *judged) bool { return vendorsModuleRuns(f) && clientLive(f) },
		text: "{client} is loaded, but does not serve {module}: both must be holders of {interface}",
		fix:  do("rebuild the GPU driver's kernel modules against {interface}, and use {module} of the same release", "then reload {module} and {peermem}"),
	},
	{
		status: Fail, when: vendorsModuleRuns,
		text: "not loaded, though {interface} has the interface for it",
		fix:  do("modprobe {peermem}", "if that says Invalid argument, rebuild the GPU driver's kernel modules against {interface}"),
	},
	{
		status: Fail, when: clientLive,
		text: "{client} is loaded, but does not serve {module}, because {interface} is not loaded",
		fix:  do("install {package} and load it before {module}", "then rebuild the GPU driver's kernel modules", "{orDMABuf}"),
	},
	{
		status: Fail, text: "not loaded, and neither is {interface}, which gives GPU memory to {module}",
		fix: do("install {package} and load it before {module}", "then modprobe {peermem}", "{orDMABuf}"),
	},
}

func vendorsModuleRuns(f *judged) bool {
	return f.Kmod.Symbols[kmod.PeerMemoryAPI].Owner == f.NIC.PeerMemory.Module
}
func clientLive(f *judged) bool { return clientState(f) == kmod.Live }

func sawHolders(f *judged) []string {
	seen := sawInterface(f)
	if !vendorsModuleRuns(f) {
		seen = append(seen, finding.Saw(kmod.HoldersDir(f.NIC.PeerMemory.Module), "absent"))
	}
	return seen
}

// noInterface: the NIC's driver supports no client.
var noInterface = []row{{
	status: Fail, text: "{module} supports no peer memory client: DMA-BUF is the only way", fix: do("see dmabuf"), evidence: sawInterface,
}}

// Releases of the NIC's driver.

// peersTooOld: the NIC's driver is older than the GPU driver's interface.
func peersTooOld(f *judged) bool {
	return neededRelease(f) != "" && older(f.advised().NICVersions[f.NIC.Name], neededRelease(f))
}

// neededRelease is the first release of the NIC's driver that works with the loaded GPU
// driver; "" where all do. It matters where a file of the NIC's driver is the proof.
func neededRelease(f *judged) string {
	if f.Client().Registered != tristate.True || f.Client().File == "" {
		return ""
	}
	for _, p := range f.NIC.PeerMemory.Newest {
		if p.GPU == f.GPU.Name && majorVersion(gpuDriverState(f).Version) >= p.Driver {
			return p.Module
		}
	}
	return ""
}

// saidAlways: in this release the file that is the proof always says the same.
func saidAlways(f *judged) bool {
	return provenFrom(f) != "" && older(f.advised().NICVersions[f.NIC.Name], provenFrom(f))
}

func provenFrom(f *judged) string {
	for _, file := range f.NIC.PeerMemory.Files {
		if p := f.Client(); p.Registered == tristate.True && file.Name == path.Base(p.File) {
			return file.ProvenFrom
		}
	}
	return ""
}

func sawReleases(f *judged) []string {
	return slices.Concat([]string{finding.Saw(kmod.AttributeFile(f.NIC.Module, "version"), f.advised().NICVersions[f.NIC.Name])}, f.saw(kmod.FactDriver, gpuDriverState(f).Version))
}

// older reports whether a release, such as "2.17.2g", is before another; false if either
// cannot be parsed.
func older(release, than string) bool {
	a, b := numbersOf(release), numbersOf(than)
	return a != nil && slices.Compare(a, b) < 0
}

// numbersOf returns the numbers of a release, 2 17 2; nil if it cannot be parsed.
func numbersOf(release string) []int {
	var all []int
	for part := range strings.SplitSeq(release, ".") {
		n, err := strconv.Atoi(strings.TrimRight(part, "abcdefghijklmnopqrstuvwxyz"))
		if err != nil {
			return nil
		}
		all = append(all, n)
	}
	return all
}
