package features

import (
	"strings"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/nodelabel"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/platform"
	"gdr-features/verdict"
)

// Kmod returns the raw features of the source gdr-kmod: attributes state. families are
// those that count.
func Kmod(st *kmod.State, system *platform.State, families family.Table) *v1alpha1.Features {
	f := v1alpha1.NewFeatures()
	f.Attributes["state"] = v1alpha1.NewAttributeFeatures(drivers(st, system, families))
	return f
}

// drivers returns the state of the drivers. Facts are "true" or "false":
//   - driverLoaded, driverOpen and driverVersion of the NVIDIA GPU driver;
//   - peermem, a peer memory client for GPU memory is registered; peermemBy, the
//     evidence; peermemModule, the state of nvidia_peermem ("live", "absent");
//   - symbolPeerMemory and symbolPeerMemoryOwner, symbolUmemDMABuf and
//     symbol<FAMILY>DMABuf (symbolMLX5DMABuf): what the running kernel can do;
//   - peerdirect and mofed, as the labels of these names; storage, nvidia-fs is
//     loaded; virtual and virtualBy, a hypervisor and the evidence.
func drivers(st *kmod.State, system *platform.State, families family.Table) attrs {
	a := attrs{}
	driver := st.Driver()
	a.state("driverLoaded", driver.Loaded)
	a.state("driverOpen", driver.Open)
	a.text("driverVersion", driver.Version)
	peermem := verdict.AnyClient(st, families)
	a.state("peermem", peermem.Registered)
	a.text("peermemBy", peermem.By)
	for _, g := range families.GPUs { // one family has such a module
		if len(g.Client.Modules) > 0 {
			a.text("peermemModule", string(st.Peers.Modules[g.Client.Modules[0]]))
		}
	}
	a.state("symbolPeerMemory", st.Symbols[kmod.PeerMemoryAPI].Found)
	a.text("symbolPeerMemoryOwner", st.Symbols[kmod.PeerMemoryAPI].Owner)
	a.state("symbolUmemDMABuf", st.Symbols[kmod.UmemDMABuf].Found)
	for _, n := range families.NICs {
		if n.DMABuf != "" {
			a.state("symbol"+strings.ToUpper(n.Name)+"DMABuf", st.Symbols[n.DMABuf].Found)
		}
	}
	a.text("peerdirect", string(verdict.PeerDirectOf(st, families, families)))
	a.text("mofed", nodelabel.MOFED(st.MOFED))
	a.state("storage", st.Storage)
	a.state("virtual", system.Virtual)
	a.text("virtualBy", system.VirtualBy)
	return a
}
