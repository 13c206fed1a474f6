package nfdsource

import (
	"strings"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/features"
	"gdr-features/internal/nodelabel"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/platform"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// kmodFeatures returns the raw features of the source gdr-kmod: attributes state. families are
// those that count.
func kmodFeatures(st *kmod.State, system *platform.State, families family.Table) *v1alpha1.Features {
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
func drivers(st *kmod.State, system *platform.State, families family.Table) features.Attrs {
	a := features.Attrs{}
	driver := st.Driver()
	a.State("driverLoaded", driver.Loaded)
	a.State("driverOpen", driver.Open)
	a.Text("driverVersion", driver.Version)
	peermem := anyClient(st, families)
	a.State("peermem", peermem.Registered)
	a.Text("peermemBy", peermem.By)
	for _, g := range families.GPUs { // one family has such a module
		if len(g.Client.Modules) > 0 {
			a.Text("peermemModule", string(st.Peers.Modules[g.Client.Modules[0]]))
		}
	}
	a.State("symbolPeerMemory", st.Symbols[kmod.PeerMemoryAPI].Found)
	a.Text("symbolPeerMemoryOwner", st.Symbols[kmod.PeerMemoryAPI].Owner)
	a.State("symbolUmemDMABuf", st.Symbols[kmod.UmemDMABuf].Found)
	for _, n := range families.NICs {
		if n.DMABuf != "" {
			a.State("symbol"+strings.ToUpper(n.Name)+"DMABuf", st.Symbols[n.DMABuf].Found)
		}
	}
	a.Text("peerdirect", string(verdict.PeerDirectOf(st, families, families)))
	a.Text("mofed", nodelabel.MOFED(st.MOFED))
	a.State("storage", st.Storage)
	a.State("virtual", system.Virtual)
	a.Text("virtualBy", system.VirtualBy)
	return a
}

// anyClient returns the client of the first pair that has one, or what is known of all.
func anyClient(st *kmod.State, table family.Table) verdict.Client {
	all := verdict.Client{Registered: tristate.False}
	for _, g := range table.GPUs {
		for _, n := range table.NICs {
			c := verdict.ClientOf(st, g, n, table)
			if c.Registered == tristate.True {
				return c
			}
			all.Registered = tristate.Or(all.Registered, c.Registered)
		}
	}
	return all
}
