package nfdsource

import (
	"maps"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/report"
	"gdr-features/source/rdma"
	"gdr-features/topology"
)

// Features of the source gdr.
const (
	nodeFeature = "node"
	gpuFeature  = "gpu"
	nicFeature  = "nic"
	pairFeature = "pair"
)

// Features turns a report into raw features, named as they stand in a
// NodeFeature object:
//   - attributes gdr.node: every label, its name without prefix;
//   - instances gdr.gpu: address, device, name, numaNode, pcieRoot;
//   - instances gdr.nic: address ("" for a device without PCI function), rdma (""
//     for an adapter without RDMA device), device, name, numaNode, pcieRoot, and
//     of its first active port, or else its first: linkLayer, rateGbps, state;
//   - instances gdr.pair: gpu and nic (addresses), rdma, level, nccl.
//
// What is not known has no attribute. All four features are always there, if
// need be without elements. The rate is known to a report of
// pci.Published or more.
func Features(r *report.Report) *v1alpha1.Features { return features(r, Name+".") }

// features names them without the source's name for prefix "", as NFD's sources
// do.
func features(r *report.Report, prefix string) *v1alpha1.Features {
	f := v1alpha1.NewFeatures()
	f.Attributes[prefix+nodeFeature] = v1alpha1.NewAttributeFeatures(maps.Clone(r.Labels))
	f.Instances[prefix+gpuFeature] = instances(r.Matrix.GPUs, func(g *topology.GPU) attrs { return ofFunction(g.Function) })
	f.Instances[prefix+nicFeature] = instances(r.Matrix.NICs, nic)
	f.Instances[prefix+pairFeature] = instances(r.Matrix.Pairs, func(p *topology.Pair) attrs { return pair(&r.Matrix, p) })
	return f
}

func nic(n *topology.NIC) attrs {
	a := attrs{}
	if n.Function != nil {
		a = ofFunction(n.Function)
	}
	a["address"], a["rdma"] = n.Address(), n.Name()
	if n.RDMA != nil {
		if p := telling(n.RDMA.Ports); p != nil {
			a.port(*p)
		}
	}
	return a
}

// telling is the port that stands for its device.
func telling(ports []rdma.Port) *rdma.Port {
	for i := range ports {
		if ports[i].Active() {
			return &ports[i]
		}
	}
	if len(ports) == 0 {
		return nil
	}
	return &ports[0]
}

func pair(m *topology.Matrix, p *topology.Pair) attrs {
	n := &m.NICs[p.NIC]
	a := attrs{"gpu": m.GPUs[p.GPU].Address.String(), "nic": n.Address(), "rdma": n.Name()}
	a.text("level", p.Level.String())
	a.text("nccl", p.NCCL.String())
	return a
}
