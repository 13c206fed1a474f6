package findings

import (
	"fmt"
	"slices"

	"gdr-features/internal/finding"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/topology"
)

// nodeNetwork: the node's own network is on a NIC that GPUs use, or whose driver is reloaded
// for them. A process in a Pod's network namespace knows nothing of it.
var nodeNetwork = check{
	Name: "node-network", Codes: []finding.Code{"DefaultRouteOnNearNIC"}, Judge: judgeNodeNetwork,
}

func judgeNodeNetwork(f *judged) finding.Said {
	if near := f.defaultRoutes(true); near.Any() {
		return finding.Warn("DefaultRouteOnNearNIC", "the node's %s is over a NIC that is near a GPU, so that its "+
			"own traffic is beside that of the GPUs, "+
			"and a reload of the NIC's driver cuts it off: %s", nodeRoute(f), near).Of(near).
			Do("put the node's own network on another NIC",
				"until then reload the driver only where the node can be reached without it, and not by a container "+
					"(the Network Operator's driver Pod)")
	}
	if other := f.defaultRoutes(false); other.Any() {
		return finding.OK("the node's %s is over a NIC that is not near a GPU; a reload of the NIC's driver, "+
			"which the Network Operator's driver Pod does, "+
			"cuts the node off all the same: %s", nodeRoute(f), other).Of(other)
	}
	return finding.Said{}
}

// nodeRoute says what of the node's network is over these NICs.
func nodeRoute(f *judged) string {
	if slices.ContainsFunc(f.Platform.DefaultRoutes, func(r platform.DefaultRoute) bool { return r.Only }) {
		return "only network address"
	}
	return "default route"
}

// defaultRoutes names the eligible NICs of default routes, near a GPU or not, each once.
func (f *judged) defaultRoutes(near bool) (nics finding.Subjects) {
	for _, route := range f.Platform.DefaultRoutes {
		for _, a := range route.Functions {
			nic := f.PCI.Find(a)
			if nic == nil || !nic.NICEligible() || f.isNear(nic) != near {
				continue
			}
			name := fmt.Sprintf("%v (%s)", a, route.Interface)
			if nic.Driver != "" {
				name = fmt.Sprintf("%v (%s, %s)", a, route.Interface, nic.Driver)
			}
			if !slices.Contains(nics.Names, name) {
				nics.Add(name)
			}
			nics.Evidence = append(nics.Evidence, finding.Saw(route.File, routeOf(route)))
		}
	}
	return nics
}

// isNear reports whether a NIC is near some eligible GPU.
func (f *judged) isNear(nic *pci.Function) bool {
	return slices.ContainsFunc(f.Matrix.GPUs, func(gpu topology.GPU) bool {
		return gpu.Counts() && slices.Contains(gpu.Near(topology.Usable).Functions, nic)
	})
}

// routeOf is what the table of routes has.
func routeOf(r platform.DefaultRoute) string {
	if r.Only {
		return "no default, only " + r.Interface
	}
	return "default " + r.Interface
}
