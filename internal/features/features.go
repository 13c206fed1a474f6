// Package features turns what was read of a machine into the raw features of Node
// Feature Discovery, for its worker (nfdsource) and for the agent's NodeFeature. It
// is pure. A fact that is not known has no attribute.
package features

import (
	"maps"
	"slices"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/report"
	"gdr-features/source/rdma"
	"gdr-features/topology"
)

// Labels is the name of the attribute feature that holds the labels.
const Labels = "node"

// Node returns the raw features of the source gdr, each name after a prefix:
// "gdr." in a NodeFeature object, "" where NFD adds it.
//   - attributes node: every label, its name without prefix;
//   - instances gpu: address, family, device, name, numaNode, pcieRoot;
//   - instances nic: address ("" for a device without PCI function), rdma (""
//     for a NIC without RDMA device), family, device, name, numaNode, pcieRoot, and
//     of its first active port, or else its first: linkLayer, rateGbps, state; and
//     role, what it is for instead of GPUs: "north-south", or "excluded" by the user;
//   - instances pair: gpu and nic (addresses), rdma, level, nccl, bridge (the deepest
//     common one, "" without one).
//
// All four features always exist, even without elements. Only a report for
// publishing has the rate.
func Node(r *report.Report, prefix string) *v1alpha1.Features {
	f := v1alpha1.NewFeatures()
	f.Attributes[prefix+Labels] = v1alpha1.NewAttributeFeatures(maps.Clone(r.Labels))
	f.Instances[prefix+"gpu"] = instances(r.Matrix.GPUs, func(g *topology.GPU) attrs { return ofFunction(g.Function) })
	f.Instances[prefix+"nic"] = instances(r.Matrix.NICs, nic)
	f.Instances[prefix+"pair"] = instances(r.Matrix.Pairs, func(p *topology.Pair) attrs { return pair(&r.Matrix, p) })
	return f
}

func nic(n *topology.NIC) attrs {
	a := attrs{}
	if n.Function != nil {
		a = ofFunction(n.Function)
	}
	a["address"], a["rdma"] = n.Address(), n.Name()
	a.text("role", string(n.Role))
	if n.Excluded() {
		a["role"] = "excluded"
	}
	if n.RDMA != nil {
		if p := portOf(n.RDMA.Ports); p != nil {
			a.port(*p)
		}
	}
	return a
}

// portOf is the port that represents its device: the first active one, or else
// the first; nil for none.
func portOf(ports []rdma.Port) *rdma.Port {
	if len(ports) == 0 {
		return nil
	}
	return &ports[max(slices.IndexFunc(ports, rdma.Port.Active), 0)]
}

func pair(m *topology.Matrix, p *topology.Pair) attrs {
	gpu, n := m.GPUs[p.GPU], &m.NICs[p.NIC]
	a := attrs{"gpu": gpu.Address.String(), "nic": n.Address(), "rdma": n.Name()}
	a.text("level", p.Level.String())
	a.text("nccl", p.NCCL.String())
	if gpu.RootBus != "" && n.Function != nil && n.Function.RootBus != "" {
		a["bridge"] = ""
	}
	a.address("bridge", p.Bridge)
	return a
}
