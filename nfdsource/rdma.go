package nfdsource

import (
	"maps"
	"strconv"
	"strings"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/features"
	"gdr-features/source/rdma"
)

// rdmaFeatures returns the raw features of the source gdr-rdma: instances device, every RDMA
// device, and port, every port of every device.
func rdmaFeatures(devices []rdma.Device) *v1alpha1.Features {
	f := v1alpha1.NewFeatures()
	f.Instances["device"] = features.Instances(devices, device)
	f.Instances["port"] = ports(devices)
	return f
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
