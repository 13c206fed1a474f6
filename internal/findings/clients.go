package findings

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// The ways in which a peer memory client reaches NICs; at most one holds for a pair.

// loadableClient: a module registers with the RDMA core, for these NICs.
func loadableClient(f *Facts) bool { return firstModule(f) != "" && f.NIC.PeerMemory.Core }

// driverIsClient: the GPU driver itself registers, whatever the NIC.
func driverIsClient(f *Facts) bool { return f.GPU.Client.AnyNIC }

// nicNamesPeers: the NIC's driver says in a file whose memory it reaches.
func nicNamesPeers(f *Facts) bool { return len(f.NIC.PeerMemory.Files) > 0 && !driverIsClient(f) }

// vendorsInterface: clients register with a module of the NIC's vendor.
func vendorsInterface(f *Facts) bool { return f.NIC.PeerMemory.Module != "" && !driverIsClient(f) }

// notRegistered are the reasons why a GPU driver that can be a client itself is not registered.
var notRegistered = []row{
	{
		status: Fail, reason: verdict.PeermemNotLoaded, when: all(is(interfaceFor, tristate.True), is(canRegister, tristate.True)),
		text: say("%s is not registered, though the RDMA stack has the interface for it: the RDMA drivers were loaded after it, or the kernel does not let it look for the interface", gpuDriverName),
		fix: say("if dmesg says %q, %s, or use DMA-BUF (see dmabuf); else %s",
			func(f *Facts) string { return f.GPU.Help.Refused }, func(f *Facts) string { return f.GPU.Help.Rebuild }, register),
		evidence: sawRegistering,
	},
	{
		status: Fail, reason: verdict.PeermemNotLoaded, when: is(interfaceFor, tristate.True),
		text: say("%s is not registered, though the RDMA stack has the interface for it", gpuDriverName),
		fix:  say("%s; then %s", installClient, register), evidence: sawRegistering,
	},
	{
		status: Fail, reason: verdict.NoPeerMemoryPath, when: is(interfaceFor, tristate.False),
		text: say("%s is not registered: the RDMA stack has no interface for it ("+peerSymbol+")", gpuDriverName),
		fix:  say("use DMA-BUF (see dmabuf); or install %s, then %s", peerStack, installClient), evidence: sawInterface,
	},
	{
		status: Fail, reason: verdict.NoPeerMemoryPath,
		text: say("%s is not registered; whether the RDMA stack has an interface for it cannot be read", gpuDriverName),
		fix:  say("%s; then %s", installClient, register), evidence: sawInterface,
	},
}

func gpuDriverName(f *Facts) string { return f.GPU.Driver }
func installClient(f *Facts) string { return f.GPU.Help.Install }
func register(f *Facts) string      { return f.GPU.Help.Register }

// canRegister reports whether the loaded GPU driver has the function that registers.
func canRegister(f *Facts) tristate.State { return f.Kmod.Symbols[f.GPU.Client.Symbol].Found }

func sawRegistering(f *Facts) []string {
	return append(sawInterface(f), f.sawSymbol(f.GPU.Client.Symbol)...)
}

// nobodysPeer are the reasons why a NIC's driver names no GPU whose memory it reaches.
var nobodysPeer = []row{
	{
		status: Fail, when: is((*Facts).NICDriven, tristate.False),
		text: say("no NIC is bound to %s, so nothing says which GPUs' memory it reaches", nicDriverName), fix: say("see nic-driver"),
		evidence: nicDrivers,
	},
	{
		status: Fail, code: "EFAPeermemMissing", when: func(f *Facts) bool { return peermemOf(f).File == "" },
		text:     say("the kernel's own %s reaches GPU memory by DMA-BUF alone", rdmaModule),
		fix:      say("see dmabuf; or install %s", peerStack),
		evidence: sawNoPeerFile,
	},
	{
		status: Fail, code: "EFAPeermemMissing", when: closedModules,
		text: say("%s reaches no GPU memory (%s): newer kernels keep the functions of proprietary kernel modules from it", rdmaModule, peerFile),
		fix:  say("install the open kernel modules of the GPU driver, then modprobe %s (package %s)", bridge, peerPackage),
	},
	{
		status: Fail, code: "EFAPeermemMissing",
		text: say("%s reaches no GPU memory (%s): if the GPU driver is loaded after %s, nothing loads %s", rdmaModule, peerFile, rdmaModule, bridge),
		fix:  say("modprobe %s (package %s), and for the next boot /etc/modules-load.d", bridge, peerPackage),
	},
}

func closedModules(f *Facts) bool {
	return f.GPU.OpenFrom != 0 && gpuDriverState(f).Open == tristate.False
}

func bridge(f *Facts) string      { return f.NIC.PeerMemory.Bridge }
func peerPackage(f *Facts) string { return f.NIC.PeerMemory.Package }

// peerFile is what the file of the driver says: "p2p is empty".
func peerFile(f *Facts) string {
	p := peermemOf(f)
	if p.Says == "" {
		return path.Base(p.File) + " is empty"
	}
	return path.Base(p.File) + ": " + p.Says
}

// sawNoPeerFile is evidence that no function has a file that names peers.
func sawNoPeerFile(f *Facts) []string {
	var all []string
	for _, file := range f.Client().Files {
		if slices.ContainsFunc(f.NIC.PeerMemory.Files, func(p family.PeerFile) bool { return path.Base(file) == p.Name }) {
			all = append(all, sawFile(file, tristate.False))
		}
	}
	return all[:min(len(all), 2)]
}

// notHeld are the reasons why a client does not serve NICs whose vendor has an interface of
// its own.
var notHeld = []row{
	{
		status: Fail, when: all(vendorsModuleRuns, clientLive),
		text: say("%s is loaded, but does not serve %s: both must be holders of %s", firstModule, rdmaModule, vendorsModule),
		fix:  say("rebuild the GPU driver's kernel modules against %s, and use %s of the same release; then reload %s and %s", vendorsModule, rdmaModule, rdmaModule, peermemName),
	},
	{
		status: Fail, when: vendorsModuleRuns,
		text: say("not loaded, though %s has the interface for it", vendorsModule),
		fix:  say("modprobe %s; if that says Invalid argument, rebuild the GPU driver's kernel modules against %s", peermemName, vendorsModule),
	},
	{
		status: Fail, when: clientLive,
		text: say("%s is loaded, but does not serve %s, because %s is not loaded", firstModule, rdmaModule, vendorsModule),
		fix:  say("install %s and load it before %s; then rebuild the GPU driver's kernel modules%s", peerPackage, rdmaModule, orDMABuf),
	},
	{
		status: Fail, text: say("not loaded, and neither is %s, which gives GPU memory to %s", vendorsModule, rdmaModule),
		fix: say("install %s and load it before %s; then modprobe %s%s", peerPackage, rdmaModule, peermemName, orDMABuf),
	},
}

func vendorsModule(f *Facts) string   { return f.NIC.PeerMemory.Module }
func vendorsModuleRuns(f *Facts) bool { return runningExporter(f) == vendorsModule(f) }
func clientLive(f *Facts) bool        { return clientState(f) == kmod.Live }

func sawHolders(f *Facts) []string {
	seen := sawInterface(f)
	if !vendorsModuleRuns(f) {
		seen = append(seen, saw(kmod.HoldersDir(vendorsModule(f)), "absent"))
	}
	return seen
}

// noInterface: the NIC's driver supports no client.
var noInterface = []row{{
	status: Fail, text: say("%s supports no peer memory client: DMA-BUF is the only way", rdmaModule), fix: say("see dmabuf"), evidence: sawInterface,
}}

// Releases of the NIC's driver.

func nicDriverRelease(f *Facts) string { return f.advised().NICVersions[f.NIC.Name] }

// peersTooOld: the NIC's driver is older than the GPU driver's interface.
func peersTooOld(f *Facts) bool {
	return neededRelease(f) != "" && older(nicDriverRelease(f), neededRelease(f))
}

// neededRelease is the first release of the NIC's driver that works with the loaded GPU
// driver; "" where all do. It matters where a file of the NIC's driver is the proof.
func neededRelease(f *Facts) string {
	if peermemOf(f).Registered != tristate.True || peermemOf(f).File == "" {
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
func saidAlways(f *Facts) bool {
	return provenFrom(f) != "" && older(nicDriverRelease(f), provenFrom(f))
}

func provenFrom(f *Facts) string {
	for _, file := range f.NIC.PeerMemory.Files {
		if p := peermemOf(f); p.Registered == tristate.True && file.Name == path.Base(p.File) {
			return file.ProvenFrom
		}
	}
	return ""
}

func sawReleases(f *Facts) []string {
	return slices.Concat(f.saw(kmod.FactNICVersion, "/"+rdmaModule(f)+"/", nicDriverRelease(f)), f.saw(kmod.FactDriver, "", gpuDriverState(f).Version))
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
