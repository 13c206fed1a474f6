package findings

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/version"
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
	return f.Kmod.Peers.Listing == tristate.False && interfaceFor(f) == tristate.True &&
		f.Kmod.Symbols[f.GPU.Client.Symbol].Found == tristate.True
}

// notRegistered says why a GPU driver that can be a client itself is not registered.
func notRegistered(f *judged) finding.Said {
	driver, help := f.GPU.Driver, &f.GPU.Help
	switch running := interfaceFor(f); {
	case running == tristate.True && f.Kmod.Symbols[f.GPU.Client.Symbol].Found == tristate.True:
		return finding.Unmet(verdict.PeermemNotLoaded, "%s is not registered, though the RDMA stack has the "+
			"interface for it: "+
			"the RDMA drivers were loaded after it, or the kernel does not let it look for the interface", driver).
			Saw(sawRegistering(f)...).Do("if "+refusedDriver(f), "else "+help.Register)
	case running == tristate.True:
		return finding.Unmet(verdict.PeermemNotLoaded, "%s is not registered, though the RDMA stack has the "+
			"interface for it", driver).
			Saw(sawRegistering(f)...).Do(help.Install, "then "+help.Register)
	case running == tristate.False:
		return finding.Unmet(verdict.NoPeerMemoryPath, "%s is not registered: the RDMA stack has no interface for "+
			"it ("+peerSymbol+")", driver).
			Saw(sawInterface(f)...).
			Do("use DMA-BUF (see dmabuf)", "or install "+f.NIC.Help.PeerStack+", then "+help.Install)
	}
	return finding.Unmet(verdict.NoPeerMemoryPath, "%s is not registered; whether the RDMA stack has an "+
		"interface for it cannot be read", driver).
		Saw(sawInterface(f)...).Do(help.Install, "then "+help.Register)
}

// refusedDriver is what to do where the kernel refused what the driver needs.
func refusedDriver(f *judged) string {
	return fmt.Sprintf("dmesg says %q, %s, or use DMA-BUF (see dmabuf)", f.GPU.Help.Refused, f.GPU.Help.Rebuild)
}

func sawRegistering(f *judged) []string {
	return append(sawInterface(f), f.sawSymbol(f.GPU.Client.Symbol)...)
}

// nobodysPeer says why a NIC's driver names no GPU whose memory it reaches.
func nobodysPeer(f *judged) finding.Said {
	module, bridge := f.NIC.Module, "`modprobe "+f.NIC.PeerMemory.Bridge+"` (package "+f.NIC.PeerMemory.Package+")"
	switch {
	case f.Verdict.NICDriven == tristate.False:
		return finding.Fail("", "no NIC is bound to %s, so nothing says which GPUs' memory it reaches",
			f.NIC.Drivers[0]).
			Saw(nicDrivers(f)...).Do("see nic-driver")
	case f.Verdict.Client.File == "":
		return finding.Fail("EFAPeermemMissing", "the kernel's own %s reaches GPU memory by DMA-BUF alone", module).
			Saw(sawNoPeerFile(f)...).
			Do(seeDMABuf, "or install "+f.NIC.Help.PeerStack)
	case f.GPU.OpenFrom != 0 && gpuDriverState(f).Open == tristate.False:
		return finding.Fail("EFAPeermemMissing", "%s reaches no GPU memory (%s): newer kernels keep the functions "+
			"of proprietary kernel modules from it", module, peerFile(f)).
			Do("install the open kernel modules of the GPU driver, then " + bridge)
	}
	return finding.Fail("EFAPeermemMissing", "%s reaches no GPU memory (%s): if the GPU driver is loaded after "+
		"%s, nothing loads %s",
		module, peerFile(f), module, f.NIC.PeerMemory.Bridge).
		Do(bridge + ", and for the next boot /etc/modules-load.d")
}

// peerFile is what the file of the driver says: "p2p is empty".
func peerFile(f *judged) string {
	p := f.Verdict.Client
	if p.Says == "" {
		return path.Base(p.File) + " is empty"
	}
	return path.Base(p.File) + ": " + p.Says
}

// sawNoPeerFile is evidence that no function has a file that names peers.
func sawNoPeerFile(f *judged) []string {
	var all []string
	for _, file := range f.Verdict.Client.Files {
		if slices.ContainsFunc(f.NIC.PeerMemory.Files, func(p family.PeerFile) bool { return path.Base(file) == p.Name }) {
			all = append(all, finding.SawFile(file, tristate.False))
		}
	}
	return all[:min(len(all), 2)]
}

// notHeld says why a client does not serve NICs whose vendor has an interface of its own.
func notHeld(f *judged) finding.Said {
	client, module, vendors := firstModule(f), f.NIC.Module, f.NIC.PeerMemory.Module
	live := clientState(f) == kmod.Live
	installFirst := "install " + f.NIC.PeerMemory.Package + " and load it before " + module
	switch runs := vendorsModuleRuns(f); {
	case runs && live:
		return finding.Fail("", "%s is loaded, but does not serve %s: both must be holders of %s", client, module,
			vendors).
			Do("rebuild the GPU driver's kernel modules against "+vendors+", and use "+module+" of the same release",
				"then reload "+module+" and "+peermemName(f))
	case runs:
		return finding.Fail("", "not loaded, though %s has the interface for it", vendors).
			Do("`modprobe "+peermemName(f)+"`", "if that says Invalid argument, rebuild the GPU driver's kernel modules "+
				"against "+vendors)
	case live:
		return finding.Fail("", "%s is loaded, but does not serve %s, because %s is not loaded", client, module,
			vendors).
			Do(installFirst, "then rebuild the GPU driver's kernel modules", orDMABuf(f))
	}
	return finding.Fail("", "not loaded, and neither is %s, which gives GPU memory to %s", vendors, module).
		Do(installFirst, "then `modprobe "+peermemName(f)+"`", orDMABuf(f))
}

func vendorsModuleRuns(f *judged) bool {
	return f.Kmod.Symbols[kmod.PeerMemoryAPI].Owner == f.NIC.PeerMemory.Module
}

func sawHolders(f *judged) []string {
	seen := sawInterface(f)
	if !vendorsModuleRuns(f) {
		seen = append(seen, finding.Saw(kmod.AttributeFile(f.NIC.PeerMemory.Module, "holders"), "absent"))
	}
	return seen
}

// neededRelease is the first release of the NIC's driver that works with the loaded GPU
// driver; "" where all do. It matters where a file of the NIC's driver is the proof.
func neededRelease(f *judged) string {
	if f.Verdict.Client.Registered != tristate.True || f.Verdict.Client.File == "" {
		return ""
	}
	for _, p := range f.NIC.PeerMemory.Newest {
		if p.GPU == f.GPU.Name && version.Major(gpuDriverState(f).Version) >= p.Driver {
			return p.Module
		}
	}
	return ""
}

// provenFrom is the release before which the proof is a file that always says the same, or "".
func provenFrom(f *judged) string {
	for _, file := range f.NIC.PeerMemory.Files {
		if p := f.Verdict.Client; p.Registered == tristate.True && file.Name == path.Base(p.File) {
			return file.ProvenFrom
		}
	}
	return ""
}

func sawReleases(f *judged) []string {
	return slices.Concat([]string{finding.Saw(kmod.AttributeFile(f.NIC.Module, "version"),
		f.advised().NICVersions[f.NIC.Name])}, f.saw(kmod.FactDriver, gpuDriverState(f).Version))
}

// older reports whether a release, such as "2.17.2g", is before another; false for "", or if it
// cannot be parsed.
func older(release, than string) bool {
	a, rest := version.Parse(release)
	b, _ := version.Parse(than)
	return len(a) > 0 && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz") == "" && slices.Compare(a, b) < 0
}
