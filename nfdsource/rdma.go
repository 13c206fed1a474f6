package nfdsource

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
	"sigs.k8s.io/node-feature-discovery/source"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
)

// RDMA is the source of raw features about the RDMA devices, from
// /sys/class/infiniband. Its features are "device" and "port".
type RDMA struct{ base }

var _ source.FeatureSource = (*RDMA)(nil)

// NewRDMA gives the source gdr-rdma.
func NewRDMA(fs *host.FS) *RDMA { return &RDMA{base{name: "gdr-rdma", fs: fs}} }

// Discover reads the RDMA devices. The error tells that the PCI bus cannot be
// read, without which it is not known which ports must be left alone; then there
// are no features.
func (s *RDMA) Discover() error {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	functions, err := scanPCI(ctx, s.fs, pci.Needed)
	if err != nil {
		return s.failed(err)
	}
	inv, err := deadline.Start(func() (rdma.Inventory, error) {
		return rdma.Scan(ctx, s.fs, &functions, pci.Everything), nil
	})(ctx)
	if err != nil {
		inv.Problems = append(inv.Problems, fmt.Errorf("RDMA devices: %w", err))
	}
	f := v1alpha1.NewFeatures()
	f.Instances["device"] = instances(inv.Devices, device)
	f.Instances["port"] = ports(inv.Devices)
	s.keep(f, inv.Problems)
	return nil
}

// device gives one RDMA device: rdma, its name; address, of its PCI function;
// nodeType, firmware, board (the PSID), and netdevs, the names of the network
// devices of its function with "," between them.
func device(d *rdma.Device) attrs {
	a := attrs{"rdma": d.Name}
	a.address("address", d.PCI)
	a.text("nodeType", d.NodeType)
	a.text("firmware", d.Firmware)
	a.text("board", d.Board)
	a.text("netdevs", strings.Join(d.NetDevs, ","))
	return a
}

// ports gives every port with the attributes of its device, and port, the
// number; state, "ACTIVE" or another; linkLayer, "InfiniBand" or "Ethernet";
// rateGbps in Gbit/s.
func ports(devices []rdma.Device) v1alpha1.InstanceFeatureSet {
	var all []v1alpha1.InstanceFeature
	for i := range devices {
		of := device(&devices[i])
		for _, p := range devices[i].Ports {
			a := maps.Clone(of)
			a["port"] = strconv.Itoa(p.Number)
			a.port(p)
			all = append(all, v1alpha1.InstanceFeature{Attributes: a})
		}
	}
	return v1alpha1.NewInstanceFeatures(all...)
}

func (a attrs) port(p rdma.Port) {
	a.text("state", p.State)
	a.text("linkLayer", p.LinkLayer)
	a.amount("rateGbps", p.RateGbps)
}
