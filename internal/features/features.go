// Package features turns what was read of a machine into the raw features of Node
// Feature Discovery, for its worker (nfdsource) and for the agent's NodeFeature. It
// is pure. A fact that is not known has no attribute.
package features

import (
	"slices"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/report"
	"gdr-features/source/rdma"
	"gdr-features/topology"
)

// Labels is the name of the attribute feature that holds the labels, each name without prefix.
const Labels = "node"

// Node returns the raw features of the source gdr, each name after a prefix:
// "gdr." in a NodeFeature object, "" where NFD adds it.
//   - attributes state: kernel, driverVersion, driverOpen, findings;
//   - instances gpu: address, family, device, name, numaNode, pcieRoot;
//   - instances nic: address ("" for a device without PCI function), rdma (""
//     for a NIC without RDMA device), family, device, name, numaNode, pcieRoot; role,
//     what it is for instead of GPUs: "north-south", or "excluded" by the user; rail,
//     its number among the NICs that jobs use; and of its first active port, or else
//     its first: linkLayer, rateGbps, state, mtu, mtuFrom, gidIndex;
//   - instances finding: check, status (FAIL, WARN, UNKNOWN) and code of each finding that is not OK;
//   - instances pair: gpu and nic (addresses), rdma, level, nccl, bridge (the deepest
//     common one, "" without one).
//
// All features always exist, even without elements. Only a report for publishing has
// the rate, the kernel, the MTU and the GID index. Not among them are the attributes named
// Labels: whoever publishes adds the labels that it publishes, which may differ from those of
// the report.
func Node(r *report.Report, prefix string) *v1alpha1.Features {
	f := v1alpha1.NewFeatures()
	f.Attributes[prefix+"state"] = v1alpha1.NewAttributeFeatures(State(r))
	f.Instances[prefix+"gpu"] = Instances(r.Matrix.GPUs, func(g *topology.GPU) Attrs { return OfFunction(g.Function) })
	f.Instances[prefix+"nic"] = nics(r)
	f.Instances[prefix+"pair"] = Instances(r.Matrix.Pairs, func(p *topology.Pair) Attrs { return pair(&r.Matrix, p) })
	f.Instances[prefix+"finding"] = Instances(Findings(r), func(f *Finding) Attrs {
		return Attrs{"check": f.Check, "status": string(f.Status), "code": string(f.Code)}
	})
	return f
}

func nics(r *report.Report) v1alpha1.InstanceFeatureSet {
	numbered, i := rails(r), 0
	return Instances(r.Matrix.NICs, func(n *topology.NIC) Attrs {
		a := nic(n)
		a.Number("rail", numbered[i])
		i++
		if n.RDMA != nil {
			a.inUse(r, n)
		}
		return a
	})
}

func nic(n *topology.NIC) Attrs {
	a := Attrs{}
	if n.Function != nil {
		a = OfFunction(n.Function)
	}
	a["address"], a["rdma"] = n.Address(), n.Name()
	a.Text("role", n.Aside())
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

func pair(m *topology.Matrix, p *topology.Pair) Attrs {
	gpu, n := m.GPUs[p.GPU], &m.NICs[p.NIC]
	a := Attrs{"gpu": gpu.Address.String(), "nic": n.Address(), "rdma": n.Name()}
	a.Text("level", p.Level.String())
	a.Text("nccl", p.NCCL.String())
	if gpu.RootBus != "" && n.Function != nil && n.Function.RootBus != "" {
		a["bridge"] = ""
	}
	a.Address("bridge", p.Bridge)
	return a
}
