package nfdsource

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/features"
	"gdr-features/internal/nodelabel"
	"gdr-features/internal/show"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// function returns one PCI function:
//   - address, name, pcieRoot, numaNode, iommuGroup; vendor and device with four
//     hexadecimal digits, class with six;
//   - driver, "" for none; parent, the address of the bridge right above, "" on
//     a root bus; physfn, the address of a virtual function's physical one;
//   - linkSpeed and maxLinkSpeed in GT/s, linkWidth and maxLinkWidth in lanes;
//   - acs, the ACS control register with four hexadecimal digits, where there is
//     one and the worker may read it (it needs CAP_SYS_ADMIN);
//   - of GPUs and NICs family, and eligible: whether the product can do GPUDirect RDMA, where
//     that is known.
func function(f *pci.Function) features.Attrs {
	a := features.OfFunction(f)
	if features.Identified(f) {
		a["vendor"] = show.Hex(f.Vendor)
		a["class"] = fmt.Sprintf("%06x", f.Class)
	}
	if f.DriverKnown {
		a["driver"] = f.Driver
	}
	if f.RootBus != "" {
		a["parent"] = ""
		if n := len(f.Bridges); n > 0 {
			a["parent"] = f.Bridges[n-1].String()
		}
	}
	a.Address("physfn", f.PhysFn)
	a.Number("iommuGroup", f.IOMMUGroup)
	if l := f.Link; l != nil {
		a.Amount("linkSpeed", l.Speed)
		a.Amount("maxLinkSpeed", l.MaxSpeed)
		a.Amount("linkWidth", float64(l.Width))
		a.Amount("maxLinkWidth", float64(l.MaxWidth))
	}
	if f.ACS != nil && f.ACS.Present {
		a["acs"] = show.Hex(f.ACS.Control)
	}
	if (f.GPU != nil || f.NIC != nil) && !f.Unidentified() {
		a["eligible"] = strconv.FormatBool(f.Counts())
	}
	return a
}

// device returns one RDMA device: rdma, its name; address, of its PCI function;
// nodeType, firmware, board (the PSID), and netdevs, the names of the network
// devices of its function with "," between them.
func device(d *rdma.Device) features.Attrs {
	a := features.Attrs{"rdma": d.Name}
	a.Address("address", d.PCI)
	a.Text("nodeType", d.NodeType)
	a.Text("firmware", d.Firmware)
	a.Text("board", d.Board)
	a.Text("netdevs", strings.Join(d.NetDevs, ","))
	return a
}

// ports returns every port with the attributes of its device, and port, the
// number; state, "ACTIVE" or another; linkLayer, "InfiniBand" or "Ethernet";
// rateGbps in Gbit/s.
func ports(devices []rdma.Device) v1alpha1.InstanceFeatureSet {
	var all []v1alpha1.InstanceFeature
	for i := range devices {
		of := device(&devices[i])
		for _, p := range devices[i].Ports {
			a := maps.Clone(of)
			a["port"] = strconv.Itoa(p.Number)
			a.Port(p)
			all = append(all, v1alpha1.InstanceFeature{Attributes: a})
		}
	}
	return v1alpha1.NewInstanceFeatures(all...)
}

// drivers returns the state of the drivers for the families that count. Facts are "true" or "false":
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
