package assign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// oneLayer sets NICs aside whose link layer is not that of most GPUs, where NICs of several layers are
// near GPUs: a list with InfiniBand and Ethernet ports is of two networks, which do not reach each other
// (OCI's GB200, with host NICs as fast as those of the GPUs).
func (m *Machine) oneLayer() {
	type votes struct{ gpus, nics int }
	of := map[string]votes{}
	for gpu := range m.GPUs {
		seen := map[string]bool{}
		for _, nic := range m.near(gpu, forGPUs) {
			v := of[nic.LinkLayer]
			if v.nics++; !seen[nic.LinkLayer] {
				v.gpus++
			}
			of[nic.LinkLayer], seen[nic.LinkLayer] = v, true
		}
	}
	if len(of) < 2 {
		return
	}
	most := slices.MaxFunc(slices.Collect(maps.Keys(of)), func(a, b string) int {
		return cmp.Or(of[a].gpus-of[b].gpus, of[a].nics-of[b].nics, cmp.Compare(a, b))
	})
	for _, nic := range m.NICs {
		if nic.Aside == "" && nic.LinkLayer != most {
			nic.Aside, nic.OtherLayer = fmt.Sprintf("it is for %s, and the NICs of most GPUs are for %s", nic.LinkLayer, most), true
		}
	}
}

func forGPUs(nic *NIC) bool { return nic.Aside == "" }

// NearInLayer are the NICs near the GPU of a choice, as Choice.Near, if those of a link layer are to be
// used.
func (m *Machine) NearInLayer(c Choice, layer string) []*NIC {
	return m.near(c.Index, func(nic *NIC) bool { return nic.LinkLayer == layer && (nic.Aside == "" || nic.OtherLayer) })
}

// CarriesDefaultRoute reports whether the node's default route is over the card of a NIC, as far as
// was read.
func (m *Machine) CarriesDefaultRoute(nic *NIC) bool {
	card := m.CardOf(nic)
	for _, route := range m.Node.Platform.DefaultRoutes {
		for _, a := range route.Functions {
			if a.Function = 0; a == card {
				return true
			}
		}
	}
	return false
}

// DPU reports whether a NIC is a card with a computer of its own, a BlueField.
func (m *Machine) DPU(nic *NIC) bool {
	f := m.Node.PCI.Place(m.Of(nic).Function)
	return f.NIC != nil && f.NIC.DPU.Has(f.Device)
}
